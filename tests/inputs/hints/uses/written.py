"""Checks of Functions that are written into a file."""

from pathlib import Path

import gradcli
from gradcli.results import CheckResult

IMPORTS = "import enum\nimport typing\n\nimport {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"


def checked(folder: Path, text: str, name: str, framework: str = "gradcli.engine") -> CheckResult:
    """The result of the one case that a text, which uses a framework as `torch`, has under a name."""
    file = folder / "written.py"
    file.write_text(IMPORTS.format(framework=framework) + text)
    (case,) = gradcli.check(f"{file}:{name}", order=1, shrink=False).cases
    return case
