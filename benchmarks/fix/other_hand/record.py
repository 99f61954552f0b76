"""Mistakes planted in right Functions: how a family of them is written down, and the source of both twins."""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SIZES = {"N": 3, "M": 4, "K": 5, "L": 2, "B": 2, "T": 6, "D": 4}
"""The sizes that the letters in a description of inputs stand for where gradcli is given flags."""


@dataclass(frozen=True)
class Case:
    """A right Function, and the same one with a mistake.

    `inputs` are flags of gradcli with letters for sizes, `name:value` for an argument with a fixed value; gradcli gets
    them as flags if `flags`, and infers its inputs if not. `accepted` are the findings' names that say what the mistake
    is, `wrong_inputs` those whose gradients are wrong. For NumPy `grad` is the name of the vjp.
    """

    family: str
    backend: str
    target: str
    kind: str
    accepted: frozenset[str]
    wrong_inputs: tuple[str, ...]
    inputs: str
    flags: bool
    right: str
    wrong: str
    number: int = 1

    @property
    def name(self) -> str:
        """The case's name, unique within the corpus."""
        suffix = "" if self.number == 1 else f"-{self.number}"
        return f"{self.family}/{self.target}/{self.kind}{suffix}"

    @property
    def grad(self) -> str | None:
        """The name of the vjp that belongs to the target, if it is a NumPy function."""
        return f"{self.target}_vjp" if self.backend == "numpy" else None


@dataclass
class Family:
    """Functions of one field and backend, written in one file, each with the mistakes made in it."""

    name: str
    backend: str
    file: str
    cases: list[Case] = field(default_factory=list)
    rights: dict[str, tuple[str, str]] = field(default_factory=dict)
    _kinds: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __call__(self, target: str, inputs: str, *slips: tuple[str, str, str, str, str], flags: bool = False) -> None:
        """Plant mistakes in a Function of the file.

        Args:
            target: the Function's name.
            inputs: gradcli's flags for it, with letters for sizes, as in "x=NxM weight=KxM slope:0.2".
            slips: (kind, accepted findings, wrong inputs, the right text, the wrong text); the right text occurs once.
            flags: whether gradcli is given the inputs instead of inferring them.
        """
        names = (target, f"{target}_vjp") if self.backend == "numpy" else (target,)
        right = source_of(Path(self.file).read_text(encoding="utf-8"), names)
        self.rights[target] = (inputs, right)
        for kind, accepted, wrong_inputs, before, after in slips:
            self._kinds[target, kind] += 1
            self.cases.append(
                Case(
                    family=self.name,
                    backend=self.backend,
                    target=target,
                    kind=kind,
                    accepted=frozenset(accepted.split()),
                    wrong_inputs=tuple(wrong_inputs.split()),
                    inputs=inputs,
                    flags=flags,
                    right=right,
                    wrong=replaced(right, before, after, f"{target}/{kind}"),
                    number=self._kinds[target, kind],
                )
            )


def replaced(source: str, before: str, after: str, where: str) -> str:
    """The source with the one occurrence of a text replaced. Raises ValueError unless it occurs exactly once."""
    if (count := source.count(before)) != 1:
        raise ValueError(f"{where}: {before!r} occurs {count} times")
    changed = source.replace(before, after)
    ast.parse(changed)
    return changed


def source_of(text: str, names: Iterable[str]) -> str:
    """A module of its own with the definitions of `names`, all that they use, and the imports, which a mistake may use."""
    lines = text.splitlines()
    statements = [s for s in ast.parse(text).body if not _plants(s)]
    imports = [s for s in statements if isinstance(s, ast.Import | ast.ImportFrom)]
    wanted, kept = set(names), set[int]()
    while True:
        found = {
            i
            for i, s in enumerate(statements)
            if s not in imports and (_defines(s) & wanted or (_is_call(s) and _used(s) & wanted & _owners(s)))
        }
        if found == kept:
            break
        kept = found
        wanted |= set().union(*(_used(statements[i]) for i in kept))
    parts = [_text(lines, s) for s in imports if "Family" not in _defines(s)]
    body = [_text(lines, statements[i]) for i in sorted(kept)]
    return "\n".join(parts) + "\n\n\n" + "\n\n\n".join(body) + "\n"


def _plants(statement: ast.stmt) -> bool:
    """Whether a statement belongs to the corpus and not to the code: a docstring, `PLANT = ...` or `PLANT(...)`."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        return isinstance(call, ast.Constant) or (isinstance(call, ast.Call) and ast.unparse(call.func) == "PLANT")
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "PLANT"


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr)


def _owners(statement: ast.stmt) -> set[str]:
    """The object whose method an expression statement calls, as `f` in `f.defvjp(forward, backward)`."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return _used(function.value) if isinstance(function, ast.Attribute) else set()


def _defines(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(a.asname or a.name).partition(".")[0] for a in statement.names}
    return {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _used(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _text(lines: list[str], statement: ast.stmt) -> str:
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
    return "\n".join(lines[first - 1 : statement.end_lineno])


def flags_of(inputs: str, sizes: Mapping[str, int] = SIZES) -> list[tuple[str, str]]:
    """The flags that a description of inputs means: ("-i", "x=3x4") and ("-a", "slope=0.2")."""
    found = []
    for part in inputs.split():
        name, equals, rest = part.partition("=")
        if equals and ":" not in name:
            found.append(("-i", f"{name}={_sized(rest, sizes)}"))
        else:
            name, _, value = part.partition(":")
            found.append(("-a", f"{name}={_braced(value, sizes)}"))
    return found


def _sized(text: str, sizes: Mapping[str, int]) -> str:
    return re.sub(r"[A-Z]", lambda match: str(sizes[match[0]]), _braced(text, sizes))


def _braced(text: str, sizes: Mapping[str, int]) -> str:
    """The text with sums and products of sizes in braces worked out, as in x={2*N}xM."""
    return re.sub(r"\{(.*?)\}", lambda match: str(eval(match[1], {}, dict(sizes))), text)


def changed_nodes(before: str, after: str) -> int:
    """How many nodes of the syntax tree a change takes away and adds, in the order of the source."""
    from difflib import SequenceMatcher

    one, other = (list(_tokens(ast.parse(inspect.cleandoc(text)))) for text in (before, after))
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return len(one) + len(other) - 2 * same


def _tokens(node: ast.AST) -> Iterable[str]:
    """The nodes of a tree from the top, each by its type and what it holds that is not a node."""
    if isinstance(node, ast.expr_context):
        return
    held = [v for _, v in ast.iter_fields(node) if isinstance(v, str | int | float | complex)]
    yield " ".join([type(node).__name__, *map(repr, held)])
    for child in ast.iter_child_nodes(node):
        yield from _tokens(child)
