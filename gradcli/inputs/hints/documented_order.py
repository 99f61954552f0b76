"""Which of two sizes documentation says is the larger one, as in `A: (m, n) with m >= n`."""

import re
from collections.abc import Collection, Mapping

from gradcli.inputs.hints.documented_shapes import Axis, texts_of
from gradcli.inputs.hints.prose.formulas import names_in, size_of

_COMPARED = re.compile(r"(?<![\w.])([A-Za-z]\w*)\s*(>=?|≥|<=?|≤)\s*([A-Za-z]\w*)(?![\w.(\[])")
_TALL = re.compile(r"\b(tall|wide)\b(?:[\s,]+(?:and\s+)?(?:thin|skinny|narrow|full[- ]rank))*\s+matri(?:x|ces)\b")
_MORE = re.compile(
    r"\b(?:(?:has|have|having|with)\s+)(?:more|at least as many)\s+(rows|columns)\s+(?:than|as)\s+(?:rows|columns)\b"
)
_CASE = re.compile(r"(?<!\bonly )(?<!\bvalid )(?<!\bdefined )\b(?:if|when|whenever|unless|whether)\b", re.IGNORECASE)
"""Words that introduce a case: `if m >= n, the inverse is a left one` does not require that m >= n."""

_SUM = r"(?:[A-Za-z]\w*|\d+)(?:\s*[-+*]\s*(?:[A-Za-z]\w*|\d+))*"
_NAMES = r"(?<![\w.*+/-])(?P<names>[A-Za-z]\w*(?:\s*(?:,|and)\s*[A-Za-z]\w*)*)"
_BEHIND = r"(?![\w.(\[]|\s*[-+*/^])"
_LEAST = (
    re.compile(rf"{_NAMES}\s*(?:(?P<strict>>(?!=))|>=|≥)\s*(?P<least>{_SUM})(?:(?=\.(?!\d))|{_BEHIND})"),
    re.compile(rf"(?<![\w.)\]])(?<![-+*/] )(?P<least>{_SUM})\s*(?:(?P<strict><(?!=))|<=|≤)\s*{_NAMES}{_BEHIND}"),
    re.compile(rf"{_NAMES}\s+(?:\w+\s+){{0,2}}?at\s+least\s+(?P<least>\d+|two|three|four)(?P<strict>\b\B)?\b"),
)
"""A size and what it is at least."""
_WORDS = {"two": "2", "three": "3", "four": "4"}
_LARGEST = 16
"""A larger number, as in `n >= 100`, is about accuracy."""
Order = tuple[tuple[str, str], ...]


def documented_order(shapes: Mapping[str, tuple[Axis, ...]], source: str, documentation: str = "") -> Order:
    """The pairs of names of sizes of which the first is the larger one, as docstrings and comments say.

    `a tall matrix` and `with more rows than columns` say so of the one matrix whose shape is given by two names.

    Args:
        shapes: the documented shapes of arguments; only names of their axes count.
        source: of forward, of which docstring and comments are read.
        documentation: a further text, such as the class's docstring.
    """
    names = {axis for shape in shapes.values() for axis in shape}
    matrices = {shape for shape in shapes.values() if len(shape) == 2 and shape[0] != shape[1]}
    found: list[tuple[str, str]] = []
    for text in texts_of(source, documentation):
        for match in _COMPARED.finditer(text):
            one, sign, other = match.groups()
            if one != other and {one, other} <= names and not is_of_a_case(text, match.start()):
                found.append((one, other) if sign in (">", ">=", "≥") else (other, one))
        word = _TALL.search(text) or _MORE.search(text)
        if word is not None and len(matrices) == 1:
            rows, columns = next(iter(matrices))
            if isinstance(rows, str) and isinstance(columns, str):
                found.append((rows, columns) if word[1] in ("tall", "rows") else (columns, rows))
    return tuple(pair for pair in dict.fromkeys(found) if pair[::-1] not in found)


def documented_least(
    shapes: Mapping[str, tuple[Axis, ...]], source: str, documentation: str = "", numbers: Collection[str] = ()
) -> Order:
    """The names of sizes with formulas of what each is at least, as `T >= 2 * S + 1` and `n > 1` say.

    Args:
        shapes: the documented shapes of arguments.
        source: of forward, of which docstring and comments are read.
        documentation: a further text, such as the class's docstring.
        numbers: arguments that may be numbers in a formula.
    """
    sizes = {name for shape in shapes.values() for axis in shape if isinstance(axis, str) for name in names_in(axis)}
    found: list[tuple[str, str]] = []
    for text in texts_of(source, documentation):
        for pattern in _LEAST:
            for match in pattern.finditer(text):
                formula, words = match["least"], re.findall(r"[A-Za-z]\w*", match["names"])
                formula = _WORDS.get(formula, formula)
                is_known = {*names_in(formula)} <= {*sizes, *numbers} and formula not in sizes
                if is_known and not is_of_a_case(text, match.start()) and (size_of(formula, {}) or 0) <= _LARGEST:
                    least = f"{formula} + 1" if match["strict"] else formula
                    found += [(word, least) for word in words if word in sizes and word not in names_in(formula)]
    return tuple(dict.fromkeys(found))


def is_of_a_case(text: str, place: int) -> bool:
    """Whether a word such as if stands before a place in its sentence, so that what is said there holds in one case."""
    return _CASE.search(re.split(r"\.\s|;|\n\s*\n", text[:place])[-1]) is not None
