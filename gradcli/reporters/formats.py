"""The formats in which a finished report can be written, each with its suffix; imported when they are needed."""

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from gradcli.results import Report

WHOLE = {
    "json": (".json", "json_document:json_report"),
    "ndjson": (".ndjson", "ndjson:ndjson_report"),
    "junit": (".xml", "ci.junit:junit_report"),
    "sarif": (".sarif", "ci.sarif:sarif_report"),
    "markdown": (".md", "ci.markdown:markdown_report"),
    "html": (".html", "html.page:html_report"),
    "github": (None, "ci.github:github_report"),
}
FORMATS = ("table", "plain", *(name for name in WHOLE if name != "html"))
"""What --format takes: those for people, and those of a whole report that a terminal or a pipe can show."""
SUFFIXES = {suffix: name for name, (suffix, _) in WHOLE.items() if suffix is not None}


class Renderer(Protocol):
    """A pure function from a report to its text."""

    def __call__(self, report: "Report", /) -> str:
        """The text, which ends with a line feed."""


def renderer(name: str) -> Renderer:
    """The function that renders the format `name`.

    Raises:
        KeyError: there is no such format.
    """
    module, _, function = WHOLE[name][1].partition(":")
    return cast(Renderer, getattr(import_module(f"gradcli.reporters.{module}"), function))
