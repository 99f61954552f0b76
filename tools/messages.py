"""Print every text that gradcli can show on one sheet, from the code: `python tools/messages.py [FOLDER...]`.

A text is a string of at least three words that is no docstring, or the docstring of a command, which is its help; what
is filled in while it runs stands in braces. The sheet is for reading aloud: each sentence must be understood at first
reading, without the code. The embedded engine is left out unless it is named, because its messages are PyTorch's.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "gradcli"
LEFT_OUT = ("engine", "examples")
WORDS = 3


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file, each with its line."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.endswith("_command"):
            yield node.lineno, ast.get_docstring(node) or ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))  # a docstring, or a text beside a constant that describes it
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in inside or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = template(node)
        if is_message(text):
            yield node.lineno, text


def template(node: ast.expr) -> str:
    """The text of a string, with what is filled in as `{code}`."""
    if isinstance(node, ast.JoinedStr):
        return "".join(template(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def is_message(text: str) -> bool:
    """Whether a string reads like a sentence or a part of one."""
    return sum(word.strip(".,:;()").isalpha() for word in text.split()) >= WORDS


def sheet(folders: Sequence[str]) -> Iterator[str]:
    """The lines of the sheet."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if place.parts[0] not in folders if folders else place.parts[0] in LEFT_OUT:
            continue
        found = list(texts_of(file))
        if found:
            yield f"\n{place.as_posix()}"
            yield from (f"  {line:4}  {text!r}" if "\n" in text else f"  {line:4}  {text}" for line, text in found)


if __name__ == "__main__":
    print("\n".join(sheet(sys.argv[1:])))
