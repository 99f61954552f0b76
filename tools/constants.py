"""Every number in the numerics that decides something, on one page: `python -m tools.constants` writes it.

A named constant is an assignment to a capital name at the top of a module of `gradcli.numerics` whose value is a number
or holds numbers; the string below it says where it comes from. Numbers inside functions are counted, but for those
that any formula has (small whole numbers, a half).
"""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NUMERICS = ROOT / "gradcli" / "numerics"
PAGE = ROOT / "docs" / "constants.md"
MEASURED = ROOT / "tools" / "constants_measured.json"
"""What benchmarks/sensitivity.py found: for every constant, the cases that use it and those whose verdict changes."""
PLAIN = (0, 1, 2, 3, 4, -1, 0.5)
"""Numbers that a formula has without deciding anything."""
HEAD = """# The constants of the numerics

Written by `python -m tools.constants`, from the code. A value without a reason here was chosen because the
[measurements](measurements.md) came out well with it. "Part" means part of the largest entry, value or slope compared.

The last two columns say what happens at half and at twice the value, as `benchmarks/sensitivity.py` measured it on a
sample of the recorded cases: one case whose verdict or wrong entries change, or in how many cases that use the constant
nothing changes. They are empty where no case of the sample uses it.
Defaults of parameters, and constants that are computed from others, kept their values. A small sample shows what a
value decides, not that another would do as well.

"""


@dataclass(frozen=True, slots=True)
class Constant:
    """A name, the expression that it stands for, and why it has that value."""

    file: str
    name: str
    value: str
    why: str


def files() -> list[Path]:
    """The modules of the numerics."""
    return sorted(NUMERICS.rglob("*.py"))


def named(file: Path) -> Iterator[Constant]:
    """The named numbers of one module."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    place = file.relative_to(NUMERICS).as_posix()
    module = importlib.import_module("gradcli.numerics." + ".".join(file.relative_to(NUMERICS).with_suffix("").parts))
    for node, below in zip(body, [*body[1:], ast.Pass()], strict=True):
        for name, value in _assigned(node):
            if name.isupper() and holds_numbers(getattr(module, name)):
                yield Constant(place, name, ast.unparse(value), _text(below))


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement binds, each with its value."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=True)
            yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _text(node: ast.stmt) -> str:
    """A string that stands alone, on one line."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def holds_numbers(value: Any) -> bool:
    """Whether a value is a number, or a collection of nothing else."""
    if isinstance(value, dict):
        return holds_numbers(tuple(value)) and holds_numbers(tuple(value.values()))
    if isinstance(value, tuple):
        return bool(value) and all(map(holds_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def measured() -> dict[str, dict[str, Any]]:
    """What is known of every constant at half and at twice its value, by file and name."""
    return json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}


def _told(found: dict[str, Any] | None, word: str) -> str:
    """What happens at half or twice the value: a case that changes, or how many do not; empty if not measured."""
    if found is None:
        return ""
    return str(found.get(f"{word} case", f"none of {found['cases']}")).replace("|", "/")


def inline(file: Path) -> int:
    """How many numbers stand in the functions of one module, but for plain ones."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    inside = {
        id(node): node.value
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    }
    return sum(value not in PLAIN for value in inside.values())


def constants() -> list[Constant]:
    """All named numbers."""
    return [constant for file in files() for constant in named(file)]


def page() -> str:
    """The page as it is now."""
    known, cases = constants(), measured()
    lines = [f"{len(known)} named constants.", ""]
    for place in sorted({constant.file for constant in known}):
        lines += [f"## `{place}`", "", "| name | value | why | half | twice |", "|---|---|---|---|---|"]
        for one in (constant for constant in known if constant.file == place):
            found = cases.get(f"{place}:{one.name}")
            why = one.why.replace("|", chr(92) + "|")
            lines.append(f"| `{one.name}` | `{one.value}` | {why} | {_told(found, 'half')} | {_told(found, 'twice')} |")
        lines.append("")
    return HEAD + "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
