"""Sizes that documentation calls even, odd, multiples of a number, or powers of two: `q: (B, D) with D even`."""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache

from gradcli.inputs.hints.documented_order import is_of_a_case
from gradcli.inputs.hints.prose.sentences import QUOTES

_PERHAPS = re.compile(r"\b(?:even|odd|divisible|divides|multiples?|powers?|mod)\b|%", re.IGNORECASE)
_IS = (
    r"\s*[(,:]?\s*(?:(?:is|are|being|to be|(?:must|has to|have to|should|needs? to|shall)(?:\s+be)?)\s+)?"
    r"(?:(?:assumed|required)\s+(?:to be\s+)?)?(?:(?:always|both)\s+)?(?:an?\s+)?"
)
_OF = r"(?:the\s+)?(?:(?:number|size|length)\s+of\s+(?:\w+\s+)??)?"
_NO_ENTRIES = (
    r"(?!\s*(?:-|(?:if|though|when|where|then|entries|indices|ones|positions|rows|columns|samples|terms|part)\b))"
)
"""What does not follow where a size is called even: `every other column of D, even entries first`."""
_WORDS = {"two": "2", "three": "3", "four": "4", "even": "2", "odd": "2"}
_DENIED = re.compile(r"\b(?:not|never|no|may|can)\s+(?:an?\s+|be\s+)?$", re.IGNORECASE)
_EITHER = re.compile(r"\b(?:even (?:or|and|as well as) odd|odd (?:or|and|as well as) even)\b", re.IGNORECASE)
_LAST = re.compile(
    r"\b(?:the\s+)?(?:size of the\s+)?(?:last|final|trailing|feature|head|hidden|model|embedding)[ _-]"
    r"(?:dim(?:ension)?|axis|size)\b(?:\s+size)?",
    re.IGNORECASE,
)
_CHANNELS = re.compile(r"\b(?:the\s+)?(?:number\s+of\s+)?channels\b", re.IGNORECASE)


def divisors_named(
    text: str, sizes: Collection[str], known: Collection[str], last: str | None = None
) -> Iterator[tuple[str, str]]:
    """The sizes that a text says to be multiples, each with a formula of them: `2 * D_per_2` for an even D.

    What is said of both even and odd sizes, or of one case, as in `if D is even`, counts for nothing.

    Args:
        text: a docstring or comment.
        sizes: names of sizes.
        known: these, and numbers among the arguments, which they may be multiples of.
        last: the size that words such as "the last dimension" mean.
    """
    if not sizes or _PERHAPS.search(text) is None or _EITHER.search(text) is not None:
        return
    for noun, name in ((_LAST, last), (_CHANNELS, "C")):
        if name is not None and name in sizes:  # `the head dimension D`, `an even number of channels`
            text = noun.sub(f"{name} ", re.sub(rf"(?:{noun.pattern})\s+{QUOTES}{name}\b", name, text, flags=re.I))
    found: dict[str, set[str]] = {}
    for pattern in _patterns(frozenset(sizes), frozenset(known)):
        for match in pattern.finditer(text):
            if is_of_a_case(text, match.start()) or _DENIED.search(text[: match.start()]) is not None:
                continue
            for name in re.findall(r"\b(?!and\b)[A-Za-z]\w*", match["names"]):
                if (formula := _formula(name, match.groupdict())) is not None:
                    found.setdefault(name, set()).add(formula)
    yield from ((name, min(formulas)) for name, formulas in found.items() if len(formulas) == 1)


@lru_cache(maxsize=8)
def _patterns(sizes: frozenset[str], known: frozenset[str]) -> tuple[re.Pattern[str], ...]:
    one, other = ("|".join(sorted(map(re.escape, each), key=len, reverse=True)) for each in (sizes, known))
    name = rf"{QUOTES}(?:{one})(?!\w){QUOTES}"
    names = rf"(?<![\w.])(?P<names>{name}(?:\s*(?:,|and|&)\s*{name})*)"
    by = rf"(?<![\w.]){QUOTES}(?P<by>two|three|four|\d|1\d|{other})(?!\w){QUOTES}(?![(\[]|\.\w)"
    return tuple(
        re.compile(pattern)
        for pattern in (
            rf"{names}{_IS}(?P<parity>even|odd)\b{_NO_ENTRIES}",
            rf"\b(?P<parity>even|odd)(?:-sized|-length)?\s+(?:(?:number\s+of|size|length)\s+(?:\w+\s+)??)?{names}",
            rf"{names}{_IS}(?:divisible\s+by|(?:integer\s+|whole\s+)?multiples?\s+of)\s+{_OF}{by}",
            rf"{names}\s*(?:%|\bmod)\s*{by}\s*==?\s*(?P<rest>\d)\b",
            rf"{by}\s+(?:evenly\s+)?divides\s+{names}",
            rf"{names}{_IS}(?:integer\s+)?(?P<power>power)s?[-\s]of[-\s](?:two|2)\b",
            rf"\b(?P<power>power)[-\s]of[-\s](?:two|2)\s+(?:size\s+|length\s+)?{names}",
        )
    )


def _formula(name: str, given: dict[str, str | None]) -> str | None:
    if given.get("power"):
        return f"2 ** {name}_log2"
    word = given.get("by") or given.get("parity") or ""
    by, rest = _WORDS.get(word, word), 1 if word == "odd" else int(given.get("rest") or 0)
    if by == name or (by.isdigit() and int(by) <= max(1, rest)):
        return None
    return f"{by} * {name}_per_{by}" + (f" + {rest}" if rest else "")
