"""Write the gallery of findings, docs/findings/*.md, from its examples; each screen is what the command prints.

`python tools/gallery.py` writes all pages, `python tools/gallery.py wrong-factor` one. An example is a file in
docs/findings/examples: a docstring that says what is wrong, a class `Wrong`, and the same thing as `Fixed`.
"""

import contextlib
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from gradcli.findings import FindingKind

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.screens import empty_folder, run

DOCS = Path(__file__).resolve().parent.parent / "docs"
EXAMPLES = DOCS / "findings" / "examples"
FRAMEWORKS = ("torch", "jax", "gradcli")
GROUPS = {
    "1": ("Wrong values", "The gradient that backward returns is not the derivative of forward."),
    "2": ("Wrong form", "The gradient has a shape, type or precision that it should not have."),
    "3": ("Broken rules of a Function", "The gradient is right in a plain call and wrong in another ordinary one."),
    "4": ("Higher orders and transforms", "First derivatives in a plain call are right, and others are not."),
    "5": ("Around the call", "Memory, and special values."),
}
"""The titles of the groups, by the first digit of a finding's code."""


@dataclass(frozen=True)
class Example:
    """One example of the gallery."""

    kind: FindingKind
    title: str
    story: str
    options: tuple[str, ...]
    framework: str
    wrong: str
    fixed: str
    code: dict[str, str]

    @property
    def file(self) -> str:
        """The name of its file."""
        return file_of(self.kind).name

    def command(self, name: str) -> list[str]:
        """The arguments of `gradcli` that check `name`."""
        return ["check", f"{self.file}:{name}", *self.options]


def file_of(kind: FindingKind) -> Path:
    """The file with the example of a finding."""
    return EXAMPLES / f"{kind.value.replace('-', '_')}.py"


def example_of(kind: FindingKind) -> Example:
    """The example of a finding, read from its file."""
    text = file_of(kind).read_text(encoding="utf-8")
    docstring, _, body = text.removeprefix('"""').partition('"""\n')
    title, _, rest = docstring.strip().partition("\n")
    run = re.search(r"^Run: (.*)$", rest, re.M)
    story = re.sub(r"^Run: .*$", "", rest, flags=re.M).strip()
    wrong = "wrong" if "def wrong(" in body else "Wrong"
    fixed = wrong.replace("rong", "ixed").replace("W", "F").replace("w", "f")
    before, cut, after = body.strip().partition(re.search(rf"\n\n\n(?:@.*\n)?(?:class|def) {fixed}", body)[0])
    return Example(
        kind=kind,
        title=title,
        story=story,
        options=tuple(shlex.split(run[1])) if run else (),
        framework=next(
            name for name in ("torch", "jax", "gradcli") if re.search(rf"^(from|import) {name}", body, re.M)
        ),
        wrong=wrong,
        fixed=fixed,
        code={"wrong": before, "fixed": (cut + after).strip()},
    )


@contextlib.contextmanager
def workshop() -> Iterator[None]:
    """A temporary folder with the examples as the working directory."""
    with empty_folder() as folder:
        for file in EXAMPLES.glob("*.py"):
            shutil.copy(file, folder)
        yield


def page(example: Example, screen: str, bugs: Sequence[Sequence[str]]) -> str:
    """The page of a finding."""
    kind = example.kind
    command = shlex.join(["gradcli", *example.command(example.wrong)])
    parts = [
        f"# {kind.value}",
        f"`{kind.code}` · {kind.sentence}",
        f"**{example.title}** {example.story}",
        fenced(example.code["wrong"], "python"),
        fenced(f"$ {command}\n{screen.rstrip()}", "console"),
        "## How it is detected",
        kind.detection,
        "## The fix",
        kind.remedy,
        fenced(example.code["fixed"], "python"),
        f"The file is [{example.file}](examples/{example.file}); `{example.fixed}` passes.",
    ]
    if bugs:
        parts += ["## Seen in public", "\n".join(seen(*bug) for bug in bugs)]
    return "\n\n".join(parts) + "\n"


def fenced(text: str, language: str) -> str:
    """A fenced block."""
    return f"```{language}\n{text.strip()}\n```"


def linked(reference: str) -> str:
    """A link to an issue or pull request, `owner/name#number`, or to a repository."""
    repository, _, number = reference.partition("#")
    address = f"https://github.com/{repository}" + (f"/issues/{number}" if number else "")
    return f"[{reference}]({address})"


def seen(reference: str, what: str, case: str | None = None) -> str:
    """A line about a public bug, with a link to the Function on the page of reports that stands for it."""
    function = "" if case is None else f" As a Function, with its patch: [{case}](reports.md#{anchor(case)})."
    return f"* {linked(reference)}: {what}.{function}"


def anchor(case: str) -> str:
    """Where the page of reports has a case."""
    return case.lower().replace("/", "")


def index() -> str:
    """The page that lists all findings."""
    parts = [
        "# The findings",
        "Every mistake that gradcli names, with the smallest Function that makes it, what the command prints, the fix "
        "and public bugs of the same kind. `gradcli explain NAME` shows the text of a finding on a terminal.",
        "The examples run on the embedded engine; on PyTorch the import is `from torch.autograd import Function`. The "
        "bugs come from projects that found, reported and mostly fixed them in the open.",
    ]
    for digit, (title, sentence) in GROUPS.items():
        rows = ["| finding | code | what is wrong |", "|---|---|---|"]
        kinds = [kind for kind in FindingKind if kind.code[2] == digit]
        rows += [f"| [{kind.value}]({kind.value}.md) | {kind.code} | {kind.sentence} |" for kind in kinds]
        parts += [f"## {title}", sentence, "\n".join(rows)]
    parts.append(
        "[Public reports](reports.md) of such bugs, each as a Function that runs, with the patch that is found."
    )
    return "\n\n".join(parts) + "\n"


def bugs_of(kind: FindingKind) -> list[list[str]]:
    """The public bugs of a kind."""
    found: dict[str, list[list[str]]] = yaml.safe_load((DOCS / "findings" / "bugs.yaml").read_text(encoding="utf-8"))
    return found.get(kind.value, [])


def main(names: Sequence[str]) -> None:
    """Write the pages of the findings called `names`, or of all."""
    (DOCS / "findings" / "index.md").write_text(index(), encoding="utf-8")
    for kind in FindingKind:
        if names and kind.value not in names:
            continue
        example = example_of(kind)
        with workshop():
            code, screen = run(example.command(example.wrong))
        if code != 1 or f"[{kind.value}]" not in screen:
            raise SystemExit(f"{example.file}:{example.wrong} is not found to be {kind.value}:\n{screen}")
        target = DOCS / "findings" / f"{kind.value}.md"
        target.write_text(page(example, screen, bugs_of(kind)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
