"""Many forms at one place at once: their values are the rows of a matrix; text is made only of those that fit."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.slips.forms import Form, times
from gradcli.frozen import dataclass

_Numbers = NDArray[np.intp]
_CHUNK = 1 << 18
"""Numbers in a matrix of products: 2 MiB, which a core's cache holds."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Values at the entries of a place, concatenated over all benches; the cost of each form; and its text."""

    values: FloatArray
    costs: FloatArray
    spelled: Callable[[int], Form]

    def __len__(self) -> int:
        """How many forms there are."""
        return len(self.values)

    def first(self, most: int) -> "Rows":
        """The first ones."""
        return Rows(self.values[:most], self.costs[:most], self.spelled)


def spread(forms: Sequence[Form], shapes: Sequence[tuple[int, ...]]) -> Rows:
    """The forms that have the shape at each bench, or broadcast to it, and are finite there."""
    fitting = [f for f in forms if all(map(_reaches, f.values, shapes))]
    values = np.empty((len(fitting), sum(int(np.prod(shape)) for shape in shapes)))
    start = 0
    for number, shape in enumerate(shapes):
        where = slice(start, start := start + int(np.prod(shape)))
        for row, form in zip(values, fitting, strict=True):
            row[where].reshape(shape)[...] = form.values[number]
    return _finite(Rows(values, np.array([f.cost for f in fitting]), fitting.__getitem__))


def _reaches(value: NDArray[Any], shape: tuple[int, ...]) -> bool:
    """Whether a value is broadcast to a shape."""
    own = value.shape
    return len(own) <= len(shape) and all(a in (1, b) for a, b in zip(own[::-1], shape[::-1], strict=False))


def squared(rows: Rows) -> Iterator[Rows]:
    """The products of each two forms of the same rows."""
    yield from _combined(rows, rows, *np.triu_indices(len(rows)))


def quotients(rows: Rows) -> Iterator[Rows]:
    """Each form divided by each other one."""
    yield from _combined(rows, rows, *np.nonzero(~np.eye(len(rows), dtype=bool)), divided=True)


def products(left: Rows, right: Rows) -> Iterator[Rows]:
    """Each form of the one times each of the other."""
    one, other = np.divmod(np.arange(len(left) * len(right)), max(len(right), 1))
    yield from _combined(left, right, one, other)


def _combined(left: Rows, right: Rows, one: _Numbers, other: _Numbers, *, divided: bool = False) -> Iterator[Rows]:
    """The products or quotients of forms number `one` and `other`, in matrices of about `_CHUNK` numbers at most."""
    step = max(1, _CHUNK // max(1, left.values.shape[1]))
    for start in range(0, len(one), step):
        yield _together(left, right, one[start : start + step], other[start : start + step], divided)


def _together(left: Rows, right: Rows, one: _Numbers, other: _Numbers, divided: bool) -> Rows:
    with np.errstate(all="ignore"):
        first, second = left.values[one], right.values[other]
        values = np.divide(first, second, out=first) if divided else np.multiply(first, second, out=first)

    def spelled(number: int) -> Form:
        made = times(left.spelled(int(one[number])), right.spelled(int(other[number])), divided=divided)
        assert made is not None  # noqa: S101 - both are broadcast to the place's shape; for the type checker
        return made

    return _finite(Rows(values, left.costs[one] + right.costs[other] + 0.5, spelled))


def _finite(rows: Rows) -> Rows:
    good = np.isfinite(rows.values).all(axis=1)
    if good.all():
        return rows
    kept = np.flatnonzero(good)
    return Rows(rows.values[kept], rows.costs[kept], lambda number: rows.spelled(int(kept[number])))
