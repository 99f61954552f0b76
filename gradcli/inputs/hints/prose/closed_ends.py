"""What texts count among an argument's values: zeros, and ends of intervals (`w non-negative`, `p in [0, 1]`)."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from gradcli.inputs.domains import interval_of

_PERHAPS = re.compile(r"non-?\s?negative|[<>]=|[≥≤≧≦\[\]]|\binclusive|\bzero\b", re.IGNORECASE)
_FIGURE = r"-?(?:\d+(?:\.\d*)?|\.\d+)"
_ZERO = re.compile(r"\bnon-?\s?negative\b|\bzero or positive\b|\bpositive or zero\b", re.IGNORECASE)
_LOW = re.compile(rf"(?:[>]=|[≥≧])\s*({_FIGURE})|\[\s*({_FIGURE})\s*[,;]|\bat least\s+({_FIGURE})(?![.\w])")
_HIGH = re.compile(rf"(?:[<]=|[≤≦])\s*({_FIGURE})|[,;]\s*({_FIGURE})\s*\]|\bat most\s+({_FIGURE})(?![.\w])")
_BETWEEN = re.compile(rf"({_FIGURE})\s+(?:and|to)\s+({_FIGURE})\s*[,(]?\s*inclusive", re.IGNORECASE)
_BEFORE = re.compile(rf"({_FIGURE})\s*(?:<=|[≤≦])\s*(?:\w+\s*,\s*)*$")
_ZEROS = re.compile(
    r"(?:(?<!no )(?<!not )\bzeros?(?: (?:entries|values|elements))?,? (?:(?:is|are) )?(?:allowed|permitted|included)"
    r"|\b(?:may|can|might) (?:be|contain|have|hold|include) (?:exact(?:ly)? |some )?zeros?"
    r"|\bpossibly (?:with )?zeros?|\bincluding zeros?)(?=\s*(?:$|[^\s\w]|(?:or|and|entries|values|elements|too)\b))",
    re.IGNORECASE,
)
_NEXT = re.compile(r"[.;]\s|\n\s*\n|\n\s*[-*]?\s*[`'\"*]*\w+[`'\"*]*\s*(?:\([^()]*\)\s*)?:")
"""Where what is said of something else begins."""
_FARTHEST = 80


def closed_ends(domains: Mapping[str, str], texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """The ends of arguments' domains that texts count among their values.

    What stands up to the next argument, or the next sentence, behind a name is about it.

    Args:
        domains: of arguments, by name.
        texts: what is written about them.
    """
    found: dict[str, tuple[float, ...]] = {}
    for text in texts if any(_PERHAPS.search(text) for text in texts) else ():
        for name, domain in domains.items():
            low, high = interval_of(domain)
            if name in found or (math.isinf(low) and math.isinf(high)):
                continue
            lows, highs = set[float](), set[float]()
            for before, behind in said_around(name, text, domains):
                lows.update(_figures(_LOW, behind), _figures(_BEFORE, before), {0.0} if _ZERO.search(behind) else ())
                highs.update(_figures(_HIGH, behind))
                for match in _BETWEEN.finditer(behind):
                    lows.add(float(match[1]))
                    highs.add(float(match[2]))
            ends = (*([low] if low in lows else []), *([high] if high in highs else []))
            if ends:
                found[name] = ends
    return found


def zeros_allowed(names: Sequence[str], texts: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Zero for each argument whose entries may be zero according to a text: `x (N,), zeros allowed`."""
    said = [text for text in texts if _ZEROS.search(text) is not None]
    return {
        name: (0.0,)
        for name in names
        if any(_ZEROS.search(behind) for text in said for _, behind in said_around(name, text, names))
    }


def said_around(name: str, text: str, names: Collection[str]) -> Iterator[tuple[str, str]]:
    """What stands before and behind each mention of a name, the latter up to a mention of another."""
    others = [other for other in names if other != name]
    for match in re.finditer(rf"(?<![\w.]){re.escape(name)}(?![\w.(\[])", text):
        behind = _NEXT.split(text[match.end() : match.end() + _FARTHEST])[0]
        if others:
            # In `a, b >= 0` what follows is said of both: only what stands behind a further word ends a description.
            listed = re.match(rf"(?:[\s,&`'\"*]|and\b|\b(?:{'|'.join(map(re.escape, others))})\b)*", behind)
            start = 0 if listed is None else listed.end()
            other = re.search(rf"(?<![\w.])(?:{'|'.join(map(re.escape, others))})(?![\w.])", behind[start:])
            behind = behind if other is None else behind[: start + other.start()]
        yield text[max(0, match.start() - _FARTHEST) : match.start()], behind


def _figures(pattern: re.Pattern[str], text: str) -> Iterator[float]:
    yield from (float(figure) for match in pattern.finditer(text) for figure in match.groups() if figure)
