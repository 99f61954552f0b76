"""One wrong expression of backward, with the one that makes the gradients right."""

import ast
from enum import Enum
from typing import Any

from gradcli.edits.render import Change
from gradcli.frozen import dataclass


class Role(Enum):
    """What an edit does to the expression that it replaces."""

    FACTOR = "multiplied"
    TERM = "added to"
    OTHER = "replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """The expression `old`, number `number`, and its replacement `new`; `part` is the factor or term that is added.

    `cost` counts what the edit adds, exchanges or removes; `fixes` are the active inputs whose gradients it makes
    right; `borrowed` says that it uses names of forward's that backward does not have; `more` are further changes of
    the same edit; `at_these_ranks` says that the gradient is still wrong where inputs have an axis more, `first_alone`
    that its own derivative is wrong. For statements, and what is not an expression, `number` is None; a statement that
    should not be there has `pass` in its place.
    """

    cost: float
    number: int | None
    old: ast.AST
    new: ast.AST
    fixes: frozenset[int]
    role: Role = Role.OTHER
    part: str = ""
    borrowed: bool = False
    more: tuple[Change, ...] = ()
    at_these_ranks: bool = False
    first_alone: bool = False

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes of the edit."""
        return (Change(self.old, () if self.drops else self.new), *self.more)

    @property
    def drops(self) -> bool:
        """Whether a statement is left out."""
        return isinstance(self.new, ast.Pass)

    @property
    def line(self) -> int:
        """Its line in the file."""
        found: Any = self.old
        return int(found.lineno)
