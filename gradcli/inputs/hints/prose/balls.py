"""Arguments that documentation says to be points of the unit ball: `u, v: (n, d) points with |u| < 1, |v| < 1`."""

import re
from collections.abc import Iterator, Sequence

from gradcli.inputs.hints.prose.sentences import CASES, IN_BALL, QUOTES

_NORM = re.compile(
    r"(?:(?<![|‖])(?P<bar>\|\|?|‖)\s*(?P<name>[A-Za-z]\w*?)(?:_i|\[i\])?\s*(?P=bar)(?:_2)?|\bnorm\(\s*(?P<argument>\w+)[^()]*\))"
    r"\s*(?:<=?|≤)\s*1(?:\.0*)?(?![\w.]*\w)"
)
_POINTS = re.compile(r"\b(?:points?|vectors?|embeddings?|ball|dis[ck]|hyperbolic|Poincar\w*)\b", re.IGNORECASE)
_FARTHEST = 120
_BETWEEN = (
    r"(?:\s*(?:\([^()]*\)|\[[^\[\]]*\]))?"
    r"(?:[\s,]*\b(?:both|all|are|is|lie|lies|lying|which|that|points?|vectors?|embeddings?)\b)*\s*"
)
"""What may stand between names and words for the ball."""


def points_in_ball(names: Sequence[str], text: str) -> Iterator[str]:
    """The arguments that a text says to have norms below 1.

    `|u| < 1` says so where points, vectors or a ball are spoken of before; else it is about each entry.
    """
    for match in _NORM.finditer(text):
        name = match["name"] or match["argument"]
        before = re.split(r"\n\s*\n", text[max(0, match.start() - _FARTHEST) : match.start()])[-1]
        is_norm = match["bar"] != "|" or _POINTS.search(before) is not None
        if name in names and is_norm and CASES.search(re.split(r"[.;]\s", before)[-1]) is None:
            yield name
    if re.search(IN_BALL, text, re.IGNORECASE) is None:
        return
    one = rf"{QUOTES}(?<![\w.])(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?!\w){QUOTES}"
    listed = re.compile(rf"(?P<names>{one}(?:\s*(?:,|and|&)\s*{one})*){_BETWEEN}(?:{IN_BALL})", re.IGNORECASE)
    for match in listed.finditer(text):
        if CASES.search(re.split(r"[.;]\s|\n\s*\n", text[: match.start()])[-1]) is None:
            yield from (word for word in re.findall(r"\w+", match["names"]) if word in names)
