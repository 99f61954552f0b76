"""The intervals that a text gives for arguments: `u in (0, 1)`, `0 < p < 1`, `|r| < 1`, `e ~ U(-1, 1)`, `a > 0`.

Names and an interval are read wherever they stand next to each other. What stands around them tells whether the
interval is that of the function's inputs: `the quantile of levels u in (0, 1)` says so, `clips u in (0, 1)` does not.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from gradcli.frozen import dataclass
from gradcli.inputs.hints.prose.sentences import CASES, MARKS, sentence_around, tells_apart

_NUMBER = r"[-+−\w.*/π∞]+"
"""What may be a number: `0`, `-1e-3`, `2*pi`, `one`."""
_FIGURE = r"[-+−.\dπ∞][-+−\w.*/π∞]*"
_LESS, _MORE = r"(?:<=?|≤|≦)", r"(?:>=?|≥|≧)"
_ABOVE = r"\b(?:(?:greater|larger|more|bigger)\s+than|above|at\s+least)"
_BELOW = r"\b(?:(?:less|smaller|lower)\s+than|below|at\s+most)"
_NO_PLACES = r"axis|axes|dim\w*|eqs?|equations?|sections?|rows?|columns?|channels?|shapes?|sizes?|steps?|layers?|pairs?"
_WITHIN = rf"(?:(?:\b(?:in|within|inside)\b|∈)\s*(?:the\s+)?(?:(?!(?:{_NO_PLACES})\b)[a-z-]+\s+){{0,2}})"
_FROM_A_UNIFORM = (
    r"(?:(?:~|∼|\bfrom\b)?\s*\b(?:U|Unif|Uniform)\s?(?=[(\[])"
    r"|\buniform(?:ly)?\s+(?:(?:random|noise|samples?|numbers?|values?|variables?|distributed|drawn|sampled)\s+){0,2}"
    r"(?:on|in|over|from)\s+(?:the\s+)?(?:\w+\s+)?)"
)
_UP_TO = r"(?:\s*(?:to|–|\.\.\.?)\s*)"


def _pair(key: str, opens: str, between: str, closes: str) -> str:
    return rf"{opens}(?P<low_{key}>{_NUMBER}){between}(?P<high_{key}>{_NUMBER}){closes}"


_INTERVAL = "|".join((
    _pair("a", rf"(?:{_WITHIN}|{_FROM_A_UNIFORM})[(\[\]]\s*", r"\s*[,;]\s*", r"\s*[)\]\[]"),
    _pair("b", r"\bbetween\s+", r"\s+and\s+", ""),
    _pair("c", r"\b(?:in|within)\s+(?:the\s+)?(?:range|interval)\s+(?:of\s+|from\s+)?", _UP_TO, ""),
    _pair("d", rf"(?:{_MORE}|{_ABOVE})\s*", rf"\s*(?:,|and|&)?\s*(?:{_LESS}|{_BELOW})\s*", ""),
    r"(?P<unit>\b(?:in|within|inside|on|from)\s+the\s+(?:(?:open|closed)\s+)?unit\s+interval\b)",
    r"(?P<above>\b(?:greater|larger|more|bigger)\s+than\s+(?:zero|0(?:\.0*)?)(?![\w.]*\w))",
))  # fmt: skip
"""What follows the names: a relation and two numbers, or words for them."""
_SIGNS = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (r"\\in\b", "∈"), (r"\\(?:le|leq|leqslant)\b", "≤"), (r"\\(?:ge|geq|geqslant)\b", "≥"), (r"\\infty\b", "∞"),
        (r"\\pi\b", "π"), (r"\\sim\b", "~"), (r"\\(?:lvert|rvert|vert)\b|\\\|", "|"),
        (r":math:(?=`)|[`$]|\*\*(?=[\w(])|\\[,; ]|\\left|\\right", ""),
    )
)  # fmt: skip
_LINKS = (
    r"is|are|be|must|should|shall|has|have|needs?|to|which|that|each|all|both|with|entries|elements|values|entrywise"
    r"|elementwise|taken|assumed|given|strictly|lies?|lying|being|belongs?|only|always|uniform(?:ly)?|distributed|drawn"
    r"|sampled|chosen|random(?:ly)?|independent(?:ly)?"
)
"""What stands between names and an interval."""
_SHAPE = r"(?:(?:\s+|,?\s+of\s+(?:shape|size)\s*)(?:\([^()]*\)|\[[^\[\]]*\]))"
_NO_NOUNS = r"where|when|if|at|for|of|with|entries|elements|values"
_NOUNS = rf"(?:\s+(?!(?:{_NO_NOUNS})\b)[a-z]+){{1,2}}(?=\s*[<>≤≥])"
"""What may stand between a shape and a number, as in `tau (M,) maturities > 0`."""
_NO_LEVELS = (
    rf"{_NO_NOUNS}|{_LINKS}|and|or|not|whose|from|to|by|on|than|as|the|an?|linear|constant|zero|quadratic|labels?|ind(?:ex|ices)"
    r"|class(?:es)?|ids?|integers?|ints?|tokens?|positions?|sorted|logits?|logs?|shift(?:s|ed)?"
    r"|(?:clamp|clip|limit|bound|wrap|squash|saturat|restrict|truncat|normali[sz]|rescal|project|constrain|mapp|fold|kept)\w*"
)
_LEVELS = rf"(?:\s+(?!(?:{_NO_LEVELS})\b)[a-z-]+){{0,2}}"
"""What may stand between a shape and an interval, as in `p (K,) mixing weights in (0, 1)`."""
_NAME = r"[`'\"*]*[A-Za-z_]\w*[`'\"*]*"
_NAMES = rf"(?<![\w.])(?P<names>{_NAME}(?:\s*(?:,\s*and\b|,|\band\b|&)\s*{_NAME})*)"
_BEFORE = rf"(?:(?<!\w)(?P<open>\(\s*))?{_NAMES}(?(open)\s*\))(?:{_SHAPE}{_LEVELS})?(?:,?(?:\s*\b(?:{_LINKS})\b)*)\s*$"
"""The names in front of an interval."""
_LINK = re.compile(rf"{_LINKS}|and", re.IGNORECASE)
_COMPARISONS = (
    rf"(?<![\w.<>])(?P<low_x>{_FIGURE})\s*{_LESS}\s*{_NAMES}(?:\s*{_LESS}\s*(?P<high_x>{_NUMBER}))?"
    rf"|(?<![\w.<>])(?P<high_y>{_FIGURE})\s*{_MORE}\s*{_NAMES.replace('names', 'names_y')}"
    rf"(?:\s*{_MORE}\s*(?P<low_y>{_FIGURE}))?"
    rf"|(?:\||\babs\()\s*(?P<names_z>{_NAME})\s*[|)]\s*{_LESS}\s*(?P<size>{_FIGURE})"
    rf"|(?<![<>])(?<![<>]\s){_NAMES.replace('names', 'names_w')}(?:{_SHAPE}(?:{_NOUNS})?)?\s*"
    rf"(?:{_MORE}\s*(?P<low_w>{_FIGURE})|{_LESS}\s*(?P<high_w>{_FIGURE}))"
)
"""Names between two numbers, an absolute value below one, or names beside one number."""
_BEFORE_A_NOUN = (
    r"(?:\b(?:of|for|expects?|takes?|accepts?|requires?|needs?|assumes?)\s+(?:[a-z]+\s+){0,3}?"
    r"(?P<noun>(?!(?:outputs?|results?|gradients?|returns?|axis|axes)\b)[a-z]{3,})|(?P<input>\b(?:inputs?|arguments?)))"
    rf"(?:\s+(?:{_LINKS}))*\s*$"
)
_FARTHEST = 120
"""Names are looked for at most so many characters in front of an interval."""
_ALREADY = r"\b(?:returns?|outputs?|results?|gives?|yields?|produces?)\b"
_STANDS = re.compile(r"(?:^|[.,;:(]|\b(?:with|where|and)\b)\s*$", re.IGNORECASE)
_STANDS_COMPARED = re.compile(
    r"(?:^|[.,;:(\n]|\b(?:with|where|and|(?:all|each|both)(?:\s+of)?|(?:defined|valid|only) for)\b)\s*$", re.IGNORECASE
)
_FOR = r"\bfor\b(?:(?!\b(?:of|by|from|at)\b)[^,])*$"
_CLAUSE = re.compile(r"[,;:(]|\.\s|\n\s*\n|\b(?:where|with|but)\b", re.IGNORECASE)
_ASIDES = (
    r"\b(?:stop\w*|end(?:s|ed|ing)?|terminat\w+|halt\w*|converge[sd]?|break\w*|finish\w*|iterat\w+|raise[sd]?|error\w*"
    r"|nan|inf\w*|undefined|invalid)\s+(?:if|when|once|while|until|outside|beyond|elsewhere|otherwise|at)\b"
)
"""When an iteration ends, and what happens at inputs that are not allowed."""
_NOT = r"(?:\b(?:not|cannot|never|neither|nor|without|unlike|except)\b|n't\b)[^,;:]*$"
_OPERATOR = r"(?:[-+*/^@=><|→·×]|\b(?:minus|plus|times|as|like|than))\s*$"
"""What makes the name behind it a part of a formula or a comparison: `x - y in (0, 1)`, `as many as x in (0, 1)`."""
_ACTS_ON = (
    r"\b(?:(?:clamp|clip|limit|bound|wrap|squash|saturat|restrict|truncat|normali[sz]|rescal|project|constrain|forc|confin)"
    r"(?:e|s|es|ing)?|squashes|folds?|keeps?|kept|pass(?:es|ing)?|selects?|draws?|masks|drops|counts|tests|checks|detects"
    r"|returns?|outputs?|results?|gives?|yields?|produces?)\b(?:(?!\b(?:of|for|from|by|at)\b)[^,])*$"
    r"|\b(?:clamp|clipp|limit|bound|wrapp|squash|saturat|restrict|truncat|normali[sz]|rescal|project|constrain)ed\s*$"
    r"|\b(?:over|across|along|outside|beyond)\s+(?:\w+\s+)?$"
)
"""What is done to the values of an argument, which are then in an interval, as in `clips the input x in (0, 1)`."""
_IS_ANOTHER = (
    r"\b(?:sigmoid|expit|softmax|tanh|erf|sine?|cos(?:ine)?|cdf|gates?|probability|fraction|proportion|percentage|number"
    r"|counts?|share|indicators?|masks?|cases?|half|parts?|signs?|outputs?|results?|outside|clipp?(?:ing)?|clamp(?:ing)?"
    r"|truncation|projection|normali[sz]ation|sums?|integral)\s+of\s+(?:(?:the|an?|all)\s+)?(?:[a-z]+\s+)?$"
)
"""What may be in an interval rather than the argument, as in `the sigmoid of x in (0, 1)`."""
_SOME = r"\b(?:entries|elements|pixels|points|positions|rows|samples|branch|case|region|side|part|half|at|is|are)\s*$"
"""What a comparison selects, as in `the entries x > 0`."""
_COUNTED = r"\b(?:labels?|index|indices|class(?:es)?|ids?|integers?|ints?|tokens?|positions?|axis|axes|dims?)\s*$"
_BY_CASES = (
    r"\b(?:if|else|elsewhere|otherwise|when|whenever|unless|outside|beyond|unchanged|untouched"
    r"|the\s+(?:rest|others?))\b"
)
"""Words of cases wherever they stand in a sentence: `until 1e-10` behind an interval is about something else."""
_PIECES = (
    r"\b(?:outside|beyond|above|below|linear|constant|zero|quadratic"
    r"|(?:saturat|clamp|clip)\w*(?!(?<=ed)\s+(?!for\b|to\b|at\b|and\b)[a-z]))\b"
)
"""Words of the definition of a function by cases: `quadratic for x in (-1, 1) and linear beyond`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """The names and the interval that stand at a place of a text, and whether numbers are compared there."""

    names: tuple[str, ...]
    low: float
    high: float
    start: int
    compares: bool
    is_noun: bool = False


def intervals_named(names: Sequence[str], text: str, code: str, only: str | None = None) -> Iterator[tuple[str, str]]:
    """The domains of arguments of which a text says that they lie in an interval.

    Several intervals of one argument apply together, as in `p > 0 and p < 1`. Where no number lies in all of them, or
    where they are different ranges, the text describes separate cases.

    Args:
        names: the arguments.
        text: what is written about them.
        code: of the function, which may tell cases apart at the ends of an interval.
        only: the argument that `inputs`, or a noun as in `the logit of rates in (0, 1)`, means if none is named.
    """
    text = _unmarked(text)
    given = [*_given(names, text, only)]
    for name in names:
        own = [each for each in given if name in each.names]
        kept = [each for each in own if _is_of_inputs(each, text, code)]
        if not kept or max(each.low for each in own) >= min(each.high for each in own):
            continue
        ranges = {(each.low, each.high) for each in own if math.isfinite(each.low) and math.isfinite(each.high)}
        domain = _domain(max(each.low for each in kept), min(each.high for each in kept))
        if domain is not None and len(ranges) <= 1:
            yield name, domain


def without_intervals(description: str) -> str:
    """A description with each interval as one word, `@unit`, `@positive` or `@between_1_2`, as marks divide it."""
    text = _unmarked(description)
    found = re.sub(_INTERVAL, _as_word, text, flags=re.IGNORECASE)
    return description if found == text else found


def _unmarked(text: str) -> str:
    """A text with signs for the commands of TeX, and without what marks code and formulas."""
    for pattern, sign in _SIGNS:
        text = pattern.sub(sign, text)
    return text


def _as_word(match: re.Match[str]) -> str:
    low, high = _ends(match)
    domain = _domain(low, high)
    if domain is None:
        return match[0]
    ends = "_".join(f"{end:g}".replace("-", "m").replace(".", "p").replace("+", "") for end in (low, high))
    return f" @between_{ends} " if "(" in domain else f" @{domain} "


def _domain(low: float, high: float) -> str | None:
    """The domain of the numbers between two others, one of which may be infinite; None if both are, or for none."""
    if (low, high) == (0, math.inf):
        return "positive"
    if low >= high or (math.isinf(low) and math.isinf(high)):
        return None
    return "unit" if (low, high) == (0, 1) else f"open-interval({low:g}, {high:g})"


def _ends(match: re.Match[str]) -> tuple[float, float]:
    """The ends of an interval that a pattern found, infinite where it gives none or not a number."""
    found = {key.partition("_")[0]: text for key, text in match.groupdict().items() if text is not None}
    if "unit" in found:
        return 0.0, 1.0
    if "size" in found:
        return -_value(found["size"], math.inf), _value(found["size"], math.inf)
    low = 0.0 if "above" in found else _value(found.get("low", ""), -math.inf)
    return low, _value(found.get("high", ""), math.inf)


def _value(text: str, unknown: float) -> float:
    """The number that a text writes, as `-1e-3`, `2*pi` or `π/2`."""
    text = text.replace("−", "-").lower()
    sign, body = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if body == "∞" or re.fullmatch(r"inf(?:inity|ty)?", body):
        return sign * math.inf
    top, _, below = body.partition("/")
    number = re.sub(r"\*?(?:[a-z]\w*\.)?(?:pi|π)$", "", top)
    known = {"zero": "0", "one": "1", "": "1" if number != top else ""}
    try:
        return sign * float(known.get(number, number)) * (1 if number == top else math.pi) / float(below or 1)
    except (ValueError, ZeroDivisionError):
        return unknown


def _given(names: Sequence[str], text: str, only: str | None) -> Iterator[_Given]:
    for match in re.finditer(_COMPARISONS, text) if re.search("[<>≤≥≦≧]", text) else ():
        key = next(key for key in match.groupdict() if key.startswith("names") and match[key] is not None)
        found = [word for word in re.findall(r"\w+", match[key]) if word != "and"]
        owners = _last_of(found, names)
        low, high = _ends(match)
        if key == "names_w" and len(owners) > 1 and _has(_OPERATOR, text[: match.start(key)]):  # `y = q, p > 0`
            owners, found = owners[1:], found[1:]
        if owners and (key == "names_w" or len(owners) == len(found)):
            start = _start(match, key, owners[0]) if key == "names_w" else match.start()
            yield _Given(names=owners, low=low, high=high, start=start, compares=True)
    for match in re.finditer(_INTERVAL, text, re.IGNORECASE):
        low, high = _ends(match)
        compares = match["above"] is not None or match["low_d"] is not None
        before, begin = text[: match.start()], max(0, match.start() - _FARTHEST)
        start, owners = _owners_before(before, begin, names)
        if owners:
            yield _Given(names=owners, low=low, high=high, start=start, compares=compares)
            continue
        lone = re.compile(_BEFORE_A_NOUN, re.IGNORECASE).search(before, begin)
        if lone is not None and only is not None and not compares:
            start = lone.start("input" if lone["noun"] is None else "noun")
            yield _Given(names=(only,), low=low, high=high, start=start, compares=False, is_noun=True)


def _owners_before(text: str, begin: int, names: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The arguments at the end of a text, of which an interval is given behind it, and where they begin."""
    pattern = re.compile(_BEFORE, re.IGNORECASE)
    found = pattern.search(text, begin)
    while found is not None:
        owners = _last_of(re.findall(r"\w+", found["names"]), names)
        if owners:
            return _start(found, "names", owners[0]) if found["open"] is None else found.start(), owners
        found = pattern.search(text, found.end("names"))  # `quantiles (u, v)` may be a name with its shape
    return 0, ()


def _last_of(words: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The arguments at the end of a list of words: u and v of `the rates, u and v, both`, one x of `root of x, x`."""
    kept = [*words]
    while kept and kept[-1] not in names and _LINK.fullmatch(kept[-1]):
        kept.pop()
    found: list[str] = []
    for word in takewhile(lambda word: word in names or word == "and", reversed(kept)):
        if word in found and word != "and":
            break
        found.append(word)
    return tuple(found[::-1])


def _start(match: re.Match[str], key: str, owner: str) -> int:
    """Where an owner stands last in the names that a pattern found."""
    places = [place.start() for place in re.finditer(rf"(?<!\w){re.escape(owner)}(?!\w)", match[key])]
    return match.start(key) + max(places, default=0)


def _is_of_inputs(given: _Given, text: str, code: str) -> bool:
    """Whether an interval is the one of a function's inputs, and not one that the text tells cases apart with."""
    before, sentence = text[: given.start].rstrip("|"), _sentence(text, given.start)
    interval, clause = (given.low, given.high), _clause(before)
    if given.compares and _STANDS_COMPARED.search(before.rstrip(MARKS)) is not None:
        return not _has(_BY_CASES, sentence) and not tells_apart(given.names, code, interval)
    if given.is_noun and _has(_ALREADY, clause):
        return False
    if (given.compares and _has(_SOME, clause)) or _has(_COUNTED, clause):
        return False
    return says_where_defined(given.names, text, given.start, code, interval)


def says_where_defined(
    names: Sequence[str], text: str, start: int, code: str, interval: tuple[float, float] = (math.inf, -math.inf)
) -> bool:
    """Whether a range of some names, as in `y in {0, 1}`, is that of a function's inputs: not in `clips y in {0, 1}`.

    Args:
        names: those that are described.
        text: in which they are.
        start: where the names begin.
        code: of the function, which may tell cases apart.
        interval: of the range, if it is one.
    """
    before = text[:start].rstrip("|" + MARKS)
    if _STANDS.search(before) is not None:
        return True
    clause, sentence = _clause(before), _sentence(text, start)
    if CASES.search(clause) or _has(_BY_CASES, sentence):
        return False
    if any(_has(pattern, clause) for pattern in (_NOT, _OPERATOR, _ACTS_ON, _IS_ANOTHER)):
        return False
    if _has(_FOR, clause) and _has(_PIECES, sentence):
        return False
    return not tells_apart(names, code, interval, cuts=True)


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _sentence(text: str, start: int) -> str:
    """The sentence around a place without asides on when an iteration ends."""
    return re.sub(_ASIDES, " ", sentence_around(text, start), flags=re.IGNORECASE)


def _clause(before: str) -> str:
    return _CLAUSE.split(before.rstrip(MARKS))[-1]
