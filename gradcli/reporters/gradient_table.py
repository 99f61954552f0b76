"""Entries of gradients beside differences of forward, and a map of the errors, as text."""

import math
from collections.abc import Iterable, Iterator
from itertools import groupby

from gradcli.figures import GradientEntry, GradientTable
from gradcli.reporters.wording import digits_of, index, magnitude, number, ordinal

_WIDTH = 32
_MARGIN = 3.0
"""Beyond so many bounds a difference is taken for an error, as by the checks."""
_LEGEND = "· = under 1, + = 1 to 3, # = over 3, ? = unknown"
_REFERENCES = {
    "autodiff": "the framework's own derivative of forward's body",
    "finite-difference": "finite differences",
    "algebra": "algebra",
}

_BEYOND = (
    "a difference of more than 3 error bounds is accepted if it is too small to count as an error, or if a note "
    "below explains it, such as a symmetric argument or an iteration that stops early"
)

Text = tuple[str, bool]
"""A line, and whether it may be folded."""


def table_lines(tables: Iterable[GradientTable], *, passed: bool) -> Iterator[Text]:
    """Every table of a case, those of one order below a common heading."""
    tables = tuple(tables)
    for order, group in groupby(tables, key=lambda table: table.order):
        own = tuple(group)
        yield _heading(order, own), True
        rows = [(table, row) for table in own for row in _rows(table)]
        widths = [max(len(row[column]) for _, row in rows) for column in range(3)]
        for place, (table, row) in enumerate(rows):
            cells = (row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].ljust(widths[2]), row[3])
            yield f"  {'   '.join(cells)}".rstrip(), False
            if place + 1 == len(rows) or rows[place + 1][0] is not table:
                yield from ((f"  {line}", False) for line in _map(table))
    if any(table.errors for table in tables):
        yield f"each mark shows an error divided by its error bound: {_LEGEND}", True
    if passed and any(entry.why is None and entry.in_bounds > _MARGIN for table in tables for entry in table.entries):
        yield _BEYOND, True


def _heading(order: int, tables: tuple[GradientTable, ...]) -> str:
    of_ones = tables[0].of_ones
    ones = of_ones if order == 1 else tables[0].at_ones
    seed = "ones" if ones else "random numbers, since ones would hide errors that sum to zero"
    if order == 1:
        what, differentiated = f"gradient for a grad_output of {seed}", "forward"
    else:
        combined = "the sum" if of_ones else "a random combination"
        what = f"{ordinal(order)} derivative, of {combined} of backward's gradients for a grad_output of {seed}"
        differentiated = "backward"
    references = dict.fromkeys(_REFERENCES.get(r, r) for table in tables for r in table.references)
    verdict = f"; the verdict rests on {' and '.join(references)}" if references else ""
    return f"{what}; numeric: finite differences of {differentiated}{verdict}"


def _rows(table: GradientTable) -> Iterator[tuple[str, ...]]:
    """The heading, and a row for each entry."""
    yield f"{table.input} {'×'.join(map(str, table.shape)) or 'scalar'}", "returned", "numeric", "error / bound"
    yield from ((index(entry.index) or "value", *_values(entry)) for entry in table.entries)


def _values(entry: GradientEntry) -> tuple[str, str, str]:
    """What was returned, what was measured, and their difference; nine digits, more where they show an error."""
    digits = digits_of(entry.analytic, entry.numeric) if entry.in_bounds > _MARGIN else 9
    analytic = number(entry.analytic, digits)
    if entry.why is not None or not math.isfinite(entry.bound):
        return analytic, entry.why or "no bound", ""
    return analytic, f"{number(entry.numeric, digits)} ± {magnitude(entry.bound)}", magnitude(entry.in_bounds)


def _map(table: GradientTable) -> Iterator[str]:
    if not table.errors:
        return
    marks = "".join(_mark(error) for error in table.errors)
    share = math.ceil(table.entries_total / len(table.errors))
    each = "one mark each" if share == 1 else f"{share:,} per mark"
    lines = [marks[start : start + _WIDTH] for start in range(0, len(marks), _WIDTH)]
    label = f"{table.entries_total:,} entries, {each}: "
    yield label + lines[0]
    yield from (" " * len(label) + line for line in lines[1:])


def _mark(error: float) -> str:
    if math.isnan(error):
        return "?"
    return "·" if error < 1 else "+" if error <= _MARGIN else "#"
