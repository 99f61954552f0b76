"""gradcli: checks hand-written gradients with finite differences and error bounds, and names the mistake."""

from gradcli._version import __version__

TYPE_CHECKING = False  # as type checkers know it: to import typing takes as long as Python's own start
if TYPE_CHECKING:
    from typing import Any

    from gradcli.api import check, trace
    from gradcli.results import Report
    from gradcli.tolerance import GradcheckError, GradcheckWarning, gradcheck, gradgradcheck
    from gradcli.verdict import Verdict

__all__ = [
    "GradcheckError",
    "GradcheckWarning",
    "Report",
    "Verdict",
    "__version__",
    "check",
    "gradcheck",
    "gradgradcheck",
    "trace",
]

_HOME = {
    "check": "gradcli.api",
    "trace": "gradcli.api",
    "gradcheck": "gradcli.tolerance",
    "gradgradcheck": "gradcli.tolerance",
    "GradcheckError": "gradcli.tolerance",
    "GradcheckWarning": "gradcli.tolerance",
    "Report": "gradcli.api",
    "Verdict": "gradcli.verdict",
}


def __getattr__(name: str) -> "Any":
    """Import a public name on first use, so that importing gradcli costs nothing."""
    if name not in _HOME:
        raise AttributeError(f"module 'gradcli' has no attribute {name!r}", name=name)
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
