"""Which arguments a text says to be in order, as in `knots: (K,) increasing` and `x_0 < x_1 < ... < x_n`.

Only what a text says of the values themselves counts: `sorted by time` is about something else, and so is
`values at increasing x` in the description of the values. What forward sorts itself needs no order.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

_UP = r"(?<!non)(?<!non[- ])(?:increasing|ascending)|non-?\s?(?:decreasing|descending)"
_DOWN = r"(?<!non)(?<!non[- ])(?:decreasing|descending)|non-?\s?(?:increasing|ascending)"
_ADVERBS = r"(?:(?:strictly|monotonically|monotonic|monotone|weakly|numerically)\s+)*"
_RELATED = r"(?<!\bby\s)(?<!\bof\s)(?<!\bwith\s)(?<!\bat\s)(?<!\bfor\s)(?<!\bunder\s)(?<!\bto\s)"
_NO_VALUES = r"(?!\s+(?:in|with|as|order|functions?|maps?|mapping|transform\w*|bijection|schedule)\b)"
"""What follows where a function increases, or something else does with the values."""


def _words(direction: str, from_to: str) -> re.Pattern[str]:
    return re.compile(
        rf"\bin\s+{_ADVERBS}(?:{direction})\s+order\b(?!\s+of\b)"
        rf"|\b(?:sorted|ordered|arranged)\s+(?:in\s+)?{_ADVERBS}(?:{direction})(?:ly)?\b"
        rf"|{_RELATED}(?<![\w-]){_ADVERBS}(?:{direction})\b{_NO_VALUES}"
        rf"|\b(?:sorted|ordered)\s+from\s+(?:{from_to})\b",
        re.IGNORECASE,
    )


_ASCENDING = _words(_UP, r"low|lowest|small|smallest|least|early|earliest|left|first")
_DESCENDING = _words(_DOWN, r"high|highest|large|largest|big|biggest|greatest|late|latest|right|last")
_SORTED = re.compile(
    r"(?<![\w-])sorted\b"
    r"(?!\s+(?:by|according|internally|inside|here|first|before|in\s?-?place|out|copy|version|values of)\b)",
    re.IGNORECASE,
)
_NAMED = re.compile(r"\b(?:knots|break-?\s?points|bin\s+(?:edges|boundaries)|time-?\s?stamps)\b", re.IGNORECASE)
"""What is in order by its name."""
_PLACE = r"\s*(?:_?\{?\s*(?:0|1|[ijkmn])\s*\}?|\[\s*(?:0|1|[ijkmn])\s*\]|\[\s*:\s*-\s*1\s*\])"
_CHAIN = re.compile(
    rf"(?<![\w.])(?P<one>[A-Za-z](?:\w*[A-Za-z])?)(?:{_PLACE})\s*(?P<sign><=?|≤|>=?|≥)\s*"
    r"(?P=one)\s*(?:_?\{?\s*(?:[12]|[ijkmn]\s*\+\s*1)\s*\}?|\[\s*(?:[12]|[ijkmn]\s*\+\s*1|1\s*:)\s*\])"
)
"""`x_0 < x_1`, `x[i] < x[i + 1]` and `x[:-1] < x[1:]`."""
_BESIDE = (
    rf"\b(?:(?:at|between|through|given|takes|expects|requires|needs|assumes)\s+(?:the\s+)?{_ADVERBS}"
    rf"|(?:for|with)\s+(?:the\s+)?(?:(?:strictly|monotonically)\s+|(?=sorted|ascending|descending)))"
    rf"(?P<order>{_UP}|{_DOWN}|sorted)\s+"
)
"""What stands in front of a name that is in order. `with increasing x the output saturates` says something else."""
_PERHAPS = re.compile(r"(?:in|de)creasing|(?:a|de)scending|sorted", re.IGNORECASE)
"""What a text has that says so beside a name; most have none."""
_NEGATED = re.compile(r"\b(?:not|never|no|without|if|unless|whether|when)\b", re.IGNORECASE)
_SEARCHED = re.compile(
    r"\b(?:searchsorted\(|(?:bucketize|digitize|interp)\([^,()]*(?:\([^()]*\)[^,()]*)*,)\s*(?P<name>\w+)\s*[,)]"
)
"""The sequence in `searchsorted(a, v)`, `bucketize(v, a)`, `digitize(v, a)` and `interp(v, a, f)`."""
_ENDS = {"positive": "(0, 2)", "unit": "(0, 1)"}


def order_said(description: str) -> str | None:
    """The order that a description gives to values, "ascending" or "descending"; None where it gives none or both.

    Args:
        description: without what it denies.
    """
    up = _ASCENDING.search(description) is not None
    down = _DESCENDING.search(description) is not None
    if up or down:
        return None if up and down else "ascending" if up else "descending"
    return "ascending" if _SORTED.search(description) or _NAMED.search(description) else None


def orders_named(names: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    """The arguments that a text says to be in order other than in a description: by a chain, or beside an adjective."""
    for match in _CHAIN.finditer(text):
        owner = next((name for name in names if match["one"] in (name, name.removesuffix("s"))), None)
        if owner is not None and _NEGATED.search(_before(text, match.start())) is None:
            yield owner, "ascending" if match["sign"] in ("<", "<=", "≤") else "descending"
    for name in names if _PERHAPS.search(text) is not None else ():
        for match in re.finditer(rf"{_BESIDE}[`'\"*]*{re.escape(name)}(?!\w)", text, re.IGNORECASE):
            order = order_said(f" {match['order']}")
            if order is not None and _NEGATED.search(_before(text, match.start())) is None:
                yield name, order


def in_order(names: Sequence[str], domains: Mapping[str, str], orders: Mapping[str, str], code: str) -> dict[str, str]:
    """The domains with those of arguments that are in order, inside the intervals that they have.

    Args:
        names: of the arguments.
        domains: what else is said of the arguments.
        orders: "ascending" or "descending", by name.
        code: of the function; what it sorts itself may be given in any order, and what it searches may not.
    """
    found = dict(domains)
    searched = {match["name"]: "ascending" for match in _SEARCHED.finditer(code) if match["name"] in names}
    for name, order in {**searched, **orders}.items():
        domain, _, ends = found.get(name, "").partition("(")
        own = re.escape(name)
        is_made_there = re.search(
            rf"(?<![a-z])(?:arg|lex)?sort\w*\([^()]*\b{own}\b|\b{own}\.(?:arg)?sort\(|(?m:^\s*{own}\s*=(?!=))", code
        )
        if domain in ("", *_ENDS, "open-interval") and is_made_there is None:
            found[name] = order + (f"({ends}" if ends else _ENDS.get(domain, ""))
    return found


def _before(text: str, end: int) -> str:
    """What stands in the same sentence before a place."""
    return re.split(r"\.\s|;|\n\s*\n", text[:end])[-1]
