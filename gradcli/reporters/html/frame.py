"""The frame of every page: one file, no network, and a policy that allows the page's own style and script alone."""

import base64
import hashlib
from collections.abc import Iterable
from importlib.resources import files

from gradcli._version import __version__
from gradcli.reporters.escaping import markup


def page(title: str, *, style: str, script: str, body: Iterable[str], about: str = "") -> str:
    """The page around `body`, which is markup already; `about` follows the version in the footer."""
    policy = f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    parts = (
        "<!doctype html>",
        '<html lang="en">',
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{markup(title)}</title>",
        f"<style>{style}</style></head>",
        "<body>",
        *body,
        f"<footer>gradcli {__version__}{about}</footer>",
        f"<script>{script}</script>",
        "</body></html>",
    )
    return "\n".join(parts) + "\n"


def asset(name: str) -> str:
    """A file that is shipped beside this module: a style or a script."""
    return files("gradcli.reporters.html").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The hash by which a content security policy allows an inline style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
