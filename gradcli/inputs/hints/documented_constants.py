"""Arguments that documentation says to get no gradient: `y: observed counts (no gradient)`, `no gradient for y`."""

import re
from collections.abc import Collection, Iterator, Sequence

GRADIENT = r"(?:a\s+)?grad(?:ient)?s?\b(?!\s+(?:clip|penal|check|scal|accum|norm|descent|step|flows? through))"
"""The word for one, and not for what is done with it."""
_CONSTANT = re.compile(
    rf"\b(?:no|without|requires? no|(?:does|do|need|must)(?: not|n't) (?:require|need|get|have|receive)s?) {GRADIENT}"
    r"|\b(?:not|never|non)[-\s]?(?:be\s+)?differentia(?:ted|ble)\b(?!\s+(?:at|where|in|for)\b)"
    r"|\b(?:treated|held|kept|taken|regarded|considered)\s+(?:as\s+)?(?:an?\s+)?(?:constants?|fixed)\b"
    r"|\brequires_grad\s*=\s*False\b|\b(?:is|are)\s+detached\b|\bstop[-_ ]gradient\b",
    re.IGNORECASE,
)
_BEGIN = r"(?:^(?:\s*(?:in|∈)\s*[(\[{][^()\[\]{}]*[)\]}])?|[,;:(\[]|\b(?:is|are)\b)\s*"
"""Of a phrase about an argument, also behind what it lies in: `in (0, 1) noise`."""
_FIXED = re.compile(
    rf"{_BEGIN}"
    r"(?:(?:an?|the|all|both|always|kept|held|given|random|float|real|base|pre-?trained)\s+)*"
    r"(?:(?:frozen|detached|non-?(?:trainable|learnable)|not\s+(?:trained|learn(?:ed|t)|trainable|learnable))\b"
    r"|buffers?(?=\s*(?:$|[.,;:()\]]))|running\s+(?:statistics|stats|means?|variances?|averages?)\b"
    r"|(?:fixed|constants?|ground[- ]truth(?:\s+\w+)?)"
    r"(?=\s*(?:$|[.,;:()])|\s+(?:and|during)\b|\s+(?:random\s+|running\s+)?(?:tensors?|arrays?|vectors?|matri(?:x|ces)"
    r"|weights?|masks?|buffers?|inputs?|noise|parameters?|bas[ei]s|projections?|features?|filters?|kernels?|targets?"
    r"|samples?|statistics|means?|variances?|embeddings?|encodings?|codebooks?)\b))",
    re.IGNORECASE,
)
_LABELS = re.compile(
    r"\s*(?:(?:is|are|an?|the|true|given|class|integer|binary|soft|hard)\s+)*(?:[\w-]+\s+)?(?:labels|targets?)"
    r"(?=\s*(?:$|[.,;:()\]])|\s+(?:in|of|per)\b)",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"(?<=[\w)\]]),\s+(?=(?:no|without)\b)", re.IGNORECASE)
"""What stands before `no gradient` where nothing described gets one: `mean, var: (D,), positive var, no gradient`."""
_NOISE = re.compile(
    rf"{_BEGIN}(?:(?:an?|the|added|sampled|uniform|gaussian|normal|standard|random|white)\s+)*noise"
    r"(?=\s*(?:$|[.,;:()])|\s+(?:tensors?|arrays?|vectors?|samples?|and|in|from|drawn|sampled)\b)",
    re.IGNORECASE,
)
WITHOUT_GRADIENT = r"\(\s*(?=(?:no grad|not differentia|non-?differentia|constant\s*\)))"
"""What follows a name in brackets where it gets no gradient."""
_LIST = r"(?P<names>\w+(?:(?:\s*,\s*|\s+and\s+|\s+or\s+)\w+)*)"
_ASIDE = r"(?:[(\[][^()\[\]]*[)\]])"
_PARTLY = re.compile(
    r"\b(?:where|when|if|for|at|near|inside|outside|above|below|beyond|with|is|are|and|or|but)\b", re.IGNORECASE
)
"""What makes a phrase behind names one about a part of their entries, or a sentence of its own."""
_SAYS = rf"(?:not differentiated|(?:no|without)\s+{GRADIENT})(?!\s+(?:to|for|of|w\.?r\.?t|with|in)\b)"
_FIXED_WORD = r"(?:fixed|frozen|constants?|detached)"
_FIXED_PROSE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_LIST}(?:\s*{_ASIDE})?\s*[(\[]\s*(?:{_FIXED_WORD}|(?:\w+\s+)?(?P<data>noise|labels))\s*[)\]]",
        rf"(?:^|[.;,(\n])\s*(?:[a-z]+\s+){{0,2}}{_LIST}\s*{_ASIDE}(?P<between>(?:\s+(?:[^\s,.;:()\[\]]|\.(?=\d))+){{0,6}})"
        rf"\s*(?:[(\[]\s*{_FIXED_WORD}\s*[)\]]|,\s*{_FIXED_WORD}\s*(?=$|[.,;)\]\n]|->|→))",
    )
)
"""As in `drawn z (noise)` and `x (N,) times > 0 [fixed]`."""
_PROSE = (
    re.compile(
        rf"\bno {GRADIENT}\s+(?:is\s+\w+\s+)?(?:(?:flows\s+)?(?:in)?to|for|of|w\.?r\.?t\.?|with respect to)\s+"
        rf"(?:the\s+)?{_LIST}",
        re.IGNORECASE,
    ),
    re.compile(rf"\bnot differentiated (?:w\.?r\.?t\.?|with respect to|in|for)\s+{_LIST}", re.IGNORECASE),
    re.compile(
        rf"{_LIST}(?:\s*{_ASIDE})?[,:]?\s+(?:(?:which|that)\s+)?(?:(?:is|are)\s+)?"
        rf"{_SAYS}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?:^|[.;,(\n])\s*(?:the\s+)?{_LIST}(?:\s*{_ASIDE})?"
        rf"(?P<between>(?:\s+(?:[^\s,.;:()\[\]]|\.(?=\d))+){{1,6}}\s*{_ASIDE}?)\s*[,(]?\s*{_SAYS}",
        re.IGNORECASE,
    ),
    re.compile(rf"{_LIST}\s+(?:gets?|receives?|has|have|needs?|requires?) no {GRADIENT}", re.IGNORECASE),
)
_EACH_WITH_ITS_SHAPE = re.compile(
    rf"(?P<items>(?:\w+\s*{_ASIDE}\s*(?:,|(?:,\s*)?\band\b)\s*)+)"
    rf"(?P<last>\w+)\s*{_ASIDE}(?P<between>(?:\s+[^\s,.;:()\[\]]+)*\s+\w+(?:s|ices))\s*[,(]?\s*{_SAYS}",
    re.IGNORECASE,
)
"""A noun in the plural is one for all in front of it: `u (N,), v (M,) power vectors, no gradient`."""
_WORDS = r"(?:\s+(?!and\b)[^\s,.;:()\[\]]+){0,4}"
_JOINED = tuple(
    re.compile(
        rf"(?P<items>\w+\s*:?\s*{_ASIDE}{_WORDS}{joint}\s+)"
        rf"(?P<last>\w+)\s*:?\s*{_ASIDE}(?P<between>{_WORDS})\s*,\s*{both}{_SAYS}",
        re.IGNORECASE,
    )
    for joint, both in ((r",?\s+and", r"(?:both\s+)?"), (",", r"both\s+"))
)
"""As in `steps: (N,) lengths and times: (N,) depths, without gradient`."""
_BOTH = re.compile(
    rf"(?P<items>\w+\s*{_ASIDE}\s+and\s+)(?P<last>\w+)\s*{_ASIDE}?(?P<between>)\s*[,(\[]?\s*(?:both\s+)?"
    r"(?:fixed|frozen|constants?|detached)(?=\s*(?:$|[.,;:)\]\n]|->|→))",
    re.IGNORECASE,
)
"""As in `u (N,) and v fixed`, which may say so of v alone."""


def says_constant(description: str, names: Sequence[str], described: Collection[str] = ()) -> bool:
    """Whether the description of an argument says that it gets no gradient; not a sentence that says so of `names`.

    Noise that is drawn gets none. What follows a comma, as in `positive var, no gradient`, is said of all `described`
    arguments, which have this description, if var is one of them.
    """
    if re.match(r"\s*constant\s*\)", description) is not None or _NOISE.search(description) is not None:
        return True
    for sentence in re.split(r"\.\s", description):
        named = [*constants_named(names, sentence)]
        if named and set(named) <= set(described) and re.match(rf"\s*{_LIST},", sentence) is None:
            named = [*constants_named(names, _BESIDE.sub("; ", sentence))]
        if not named and _CONSTANT.search(sentence) is not None:
            return True
    return False


def says_fixed(description: str) -> bool:
    """Whether the description of an argument says that it is a constant, frozen, or labels; not `a spring constant`."""
    return _FIXED.search(description) is not None or _LABELS.match(description) is not None


def constants_named(names: Sequence[str], text: str) -> Iterator[str]:
    """The arguments of which a sentence says so: `no gradient for y`, `y and mask get no gradient`."""
    for pattern in _PROSE:
        yield from _named(pattern, names, text)


def fixed_named(names: Sequence[str], text: str) -> Iterator[str]:
    """The arguments behind which a text calls them fixed without a colon: `z1, z2 (noise)`, `t (n,) times, fixed`."""
    for pattern in _FIXED_PROSE:
        yield from _named(pattern, names, text)


def _named(pattern: re.Pattern[str], names: Sequence[str], text: str) -> Iterator[str]:
    for match in pattern.finditer(text):
        owners = re.findall(r"\w+", match["names"])
        words = " ".join(match.groupdict().get(key) or "" for key in ("between", "data"))
        if not _PARTLY.search(words) and set(names).isdisjoint(re.findall(r"\w+", words)):
            yield from (name for name in owners if name in names)


def constants_together(names: Sequence[str], text: str) -> Iterator[frozenset[str]]:
    """The sets of arguments, each with its shape, that a noun in the plural may be about: the last ones before it."""
    for match in (match for pattern in (_EACH_WITH_ITS_SHAPE, _BOTH, *_JOINED) for match in pattern.finditer(text)):
        owners = re.findall(rf"(\w+)\s*:?\s*{_ASIDE}", match["items"])
        if _PARTLY.search(match["between"]) is None and set(owners) <= set(names):
            yield frozenset((*owners, match["last"]))
