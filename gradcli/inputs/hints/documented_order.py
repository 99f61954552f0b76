"""Which of two sizes documentation says is the larger one, as in `A: (m, n) with m >= n`."""

import re
from collections.abc import Mapping

from gradcli.inputs.hints.documented_shapes import Axis, texts_of

_COMPARED = re.compile(r"(?<![\w.])([A-Za-z]\w*)\s*(>=?|≥|<=?|≤)\s*([A-Za-z]\w*)(?![\w.(\[])")
_TALL = re.compile(r"\b(tall|wide)\b(?:[\s,]+(?:and\s+)?(?:thin|skinny|narrow|full[- ]rank))*\s+matri(?:x|ces)\b")
_MORE = re.compile(
    r"\b(?:(?:has|have|having|with)\s+)(?:more|at least as many)\s+(rows|columns)\s+(?:than|as)\s+(?:rows|columns)\b"
)
_CASE = re.compile(r"(?<!\bonly )(?<!\bvalid )(?<!\bdefined )\b(?:if|when|whenever|unless|whether)\b", re.IGNORECASE)
"""Words that introduce a case: `if m >= n, the inverse is a left one` does not require that m >= n."""

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


def is_of_a_case(text: str, place: int) -> bool:
    """Whether a word such as if stands before a place in its sentence, so that what is said there holds in one case."""
    return _CASE.search(re.split(r"\.\s|;|\n\s*\n", text[:place])[-1]) is not None
