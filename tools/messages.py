"""Print every text that gradcli can show on one sheet, from the code: `python tools/messages.py [FOLDER...]`.

A text is a string of at least three words that is not a docstring, or the docstring of a command, which is its help.
What is filled in while gradcli runs stands in braces, `[a | b]` is one of several texts, `(a)` may be left out; a part
of a message that a table or another file holds has a line of its own. The sheet is for reading aloud: each sentence
must be understood at first reading, without the code. The embedded engine is left out unless it is named,
because its messages are PyTorch's; so are patterns, and texts that are only compared with a framework's message.
"""

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

PACKAGE = Path(__file__).resolve().parent.parent / "gradcli"
LEFT_OUT = ("engine", "examples")
WORDS = 3
DEEPEST = 3
"""Texts are filled into texts up to this depth; below it, a name in braces stands for them."""
SAMPLES = {
    "of_largest": "3 % of the gradient's largest entry",
    "error_size": " by up to 3 % of the gradient's largest entry",
    "measured": ": backward gives 2, finite differences give 1 ± 3e-10",
    "magnitude": "3e-10",
}
"""What functions of other files return that word a number."""
PLUMBING = {"self", "join", "format", "items", "keys", "values", "strip", "removeprefix"}
VAGUE = {"name", "value", "shape", "size", "dtype", "dtype_name"}
FILLED_IN = re.compile(r"\{[^{}]*\}")
PATTERN = re.compile(r"\(\?[:P]|\\[dSw(]|\^ ")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@final
class Texts:
    """The texts of one file."""

    def __init__(self, file: Path) -> None:
        """Read the file, and note which functions return texts and which strings are never shown."""
        self._tree = ast.parse(file.read_text(encoding="utf-8"))
        self._commands = "commands" in file.parts
        self._functions = {node.name: node for node in ast.walk(self._tree) if isinstance(node, Function)}
        self._within: dict[int, Function] = {}
        for function in self._functions.values():
            self._within.update({id(node): function for node in ast.walk(function)})
        self._used = set(self._never_shown())

    def _never_shown(self) -> Iterator[int]:
        """Docstrings, operands of comparisons, and the strings that an f-string is made of."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield id(node.value)
            elif isinstance(node, ast.Compare):
                yield from (id(part) for part in (node.left, *node.comparators))
            elif isinstance(node, ast.JoinedStr):
                yield from (id(part) for part in ast.walk(node) if part is not node)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Each text with its line; a text that is only ever filled into another one is shown there."""
        nodes = [node for node in ast.walk(self._tree) if isinstance(node, ast.Constant | ast.JoinedStr)]
        found = {id(node): self.template(node) for node in nodes if id(node) not in self._used}
        for statement in self._tree.body if self._commands else ():
            if isinstance(statement, ast.FunctionDef) and statement.name.endswith("_command"):
                yield statement.lineno, ast.get_docstring(statement) or ""
        for node in nodes:
            if id(node) not in self._used and is_message(found[id(node)]):
                yield node.lineno, found[id(node)]

    def template(self, node: ast.expr, depth: int = 0) -> str:
        """The text of an expression, with what is filled in."""
        if isinstance(node, ast.JoinedStr):
            return "".join(self.template(part, depth) for part in node.values)
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        value = node.value if isinstance(node, ast.FormattedValue) else node
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in SAMPLES:
            return SAMPLES[value.func.id]
        parts = list(self._filled_in(value)) if depth < DEEPEST else []
        if not parts or not all(isinstance(part, ast.Constant | ast.JoinedStr) for part in parts):
            return placeholder(value)
        self._used.update(id(part) for part in parts)
        texts = dict.fromkeys(self.template(part, depth + 1) for part in parts)
        if not any(text[:1].isalpha() or " " in text for text in texts):
            return placeholder(value)
        some = " | ".join(filter(None, texts))
        return f"({some})" if "" in texts else some if len(texts) == 1 else f"[{some}]"

    def _filled_in(self, value: ast.expr) -> Iterator[ast.expr]:
        """The expressions that a value may be: of a condition, a variable of the function, a function of the file."""
        if isinstance(value, ast.IfExp):
            for branch in (value.body, value.orelse):
                yield from [branch] if isinstance(branch, ast.Constant | ast.JoinedStr) else self._filled_in(branch)
        elif isinstance(value, ast.Name) and id(value) in self._within:
            yield from self._assigned(value)
        elif isinstance(value, ast.Call):
            name = getattr(value.func, "id", getattr(value.func, "attr", ""))
            for node in ast.walk(self._functions.get(name, ast.Pass())):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._branches(node.value)

    def _assigned(self, name: ast.Name) -> Iterator[ast.expr]:
        for node in ast.walk(self._within[id(name)]):
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name.id for t in node.targets):
                yield from self._branches(node.value)

    def _branches(self, value: ast.expr) -> Iterator[ast.expr]:
        """A value, or both values of a condition; anything that is not a text is passed on as it is."""
        if isinstance(value, ast.IfExp):
            yield from self._branches(value.body)
            yield from self._branches(value.orelse)
        else:
            yield value


def placeholder(value: ast.expr) -> str:
    """What is filled in, by the names in the expression; `number of` before the name in a len(), `type of` likewise."""
    if isinstance(value, ast.BinOp) and isinstance(value.left, ast.Constant) and isinstance(value.op, ast.Mult):
        return f"({value.left.value!s})"
    words = []
    for node in ast.walk(value):
        name = getattr(node, "attr", getattr(node, "id", ""))
        if name == "__name__":
            words.append("type of")
        elif name == "len":
            words.append("number of")
        elif name and name not in PLUMBING and not hasattr(builtins, name):
            owner = getattr(getattr(node, "value", None), "attr", getattr(getattr(node, "value", None), "id", "self"))
            words.append(f"{owner} {name}" if name in VAGUE and owner not in PLUMBING else name)
            break
    return "{" + (" ".join(words).strip("_").replace("_", " ") or ast.unparse(value)) + "}"


def is_message(text: str) -> bool:
    """Whether a string reads like a sentence or a part of one: what is filled in counts as a word, but one only."""
    words = sum(word.strip(".,:;()").isalpha() for word in FILLED_IN.sub("", text).split())
    return PATTERN.search(text) is None and words + (words > 1 and "{" in text) >= WORDS


def sheet(folders: Sequence[str]) -> Iterator[str]:
    """The lines of the sheet."""
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE)
        if place.parts[0] not in folders if folders else place.parts[0] in LEFT_OUT:
            continue
        found = sorted(Texts(file))
        if found:
            yield f"\n{place.as_posix()}"
            yield from (f"  {line:4}  {text!r}" if "\n" in text else f"  {line:4}  {text}" for line, text in found)


if __name__ == "__main__":
    print("\n".join(sheet(sys.argv[1:])))
