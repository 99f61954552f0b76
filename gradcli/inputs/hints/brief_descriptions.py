"""Descriptions without a colon or a verb: `tau scalar > 0`, `alpha (C,) positive`, `A (n, n) symmetric`, `0 < p < 1`.

They are easily mistaken. In `x if x > 0 else 0` the words are about a branch, in `the positive x axis` about something
else, and `a positive number` begins with an article. So such a description stands by itself: at the begin of a sentence
or behind a mark, and not in a sentence or beside code that tells cases apart.
"""

import re
from collections.abc import Iterator, Sequence

_GREATER = r">=?\s*0(?![.\d]*[1-9])"
_SIGN = r"(?:positive|non-?\s?negative)"
_WORDS = rf"(?:strictly\s+|real\s+|single\s+|{_SIGN}\s+)*(?:scalars?|{_SIGN})\b(?!\s*[-/]|\s+(?:and|or)\s+negative)"
_SCALAR = rf"(?:an?\s+)?{_WORDS}"
BRIEF = rf"(?:(?:(?:an?|both|all|each)\s+)*(?:\(\s*(?={_SCALAR}[^()]*\))|(?={_WORDS}))|(?={_GREATER}))"
"""What follows a name, and its shape if that is given, at the begin of such a description."""
OF_MATRICES = (
    r"(?<=[)\]]),?\s+(?=(?:an?\s+|real\s+|square\s+|dense\s+)*"
    r"(?:symmetric|SPD|PSD|covariance|lower[- ]triangular|orthogonal|orthonormal|one[- ]?hot|probabilities)\b)"
)
"""What follows the shape of an argument where its values are described, as in `A (n, n) symmetric`."""
_SHAPE = r"[(\[][^()\[\]]*[)\]]"
SHAPE = rf"(?![(\[]\s*{_SCALAR}){_SHAPE}"
"""What may be a shape, unlike in `tau (scalar)`."""
_STANDS_BEHIND = re.compile(
    r"(?:^|[.,;:(\n]|\b(?:with|where|and|(?:all|each|both)(?:\s+of)?|(?:defined|valid|only) for)\b)\s*$", re.IGNORECASE
)
_BEGINS_SENTENCE = re.compile(r"(?:^|[.;:(\n]|,\s*where\b)\s*$", re.IGNORECASE)
_NUMBER = re.compile(r"[-−]?(?:\d+\.?\d*|\.\d+)")
_BOUNDS = re.compile(
    rf"(?<![\w.<>])(?P<low>{_NUMBER.pattern})\s*(?:<=?|≤)\s*(?P<names>[A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\b"
    rf"(?:\s*(?:<=?|≤)\s*(?P<high>{_NUMBER.pattern}|\w+))?"
)
_CASES = re.compile(r"\b(?:if|else|otherwise|elsewhere|when|whenever|unless|until|while)\b", re.IGNORECASE)
_SENTENCE_ENDS = re.compile(r"\.(?=\s|$)|\n\s*\n|;")
_IN_BRACKETS = re.compile(
    rf"(?<![\w.])(?P<name>\w+)\s*\((?:strictly\s+)?{_SIGN}\s*"
    r"(?:[,;](?![^()]*\b(?:negative|zero)\b)[^()]*\)|\)(?=\s*(?:$|[^\s\w])))",
    re.IGNORECASE,
)
_ARTICLES = frozenset(("a", "A", "i", "I"))
_NOUN_IN_BRACKETS = re.compile(
    rf"(?:(?:an?|strictly|real|single|finite)\s+)*{_SIGN}\s+(?:real\s+)?"
    r"(?:scalars?|numbers?|floats?|reals?|vectors?|matri(?:x|ces)|arrays?|tensors?)\s*\)",
    re.IGNORECASE,
)
"""What tells the kind of a name in front of it wherever it stands, unlike `x (positive entries)`."""
_AFTER_BRACKETS = re.compile(
    r"\s*(?:$|[^\s\w]|\n|(?:and|or|by|with|via|using|to|in|into|on|at|for|from|times|is|are|must|should)\b)"
)
"""What follows the description of a name. A noun follows an article: `a (positive scalar) function`."""
_AFTER_A_NAME = r"(?=\s*(?:$|[.,;:)\n]|\(|and\b))"
_BEFORE_AN_ADJECTIVE = r"(?:^|[.,;:(\n]|\b(?:with|of|and)\b)\s*(?:an?\s+)?"
_COMPARES_OR_CUTS = (
    r"\b{0}\b(?:\.abs\(\))?\)?\s*[<>]|[<>]=?\s*\(?{0}\b|(?:clamp|clip|where|minimum|maximum)\w*\([^)]*\b{0}\b"
    r"|\b{0}\.(?:clamp|clip)"
)
_PIECES = re.compile(
    r"\b(?:outside|beyond|above|below|linear|constant|zero|quadratic|saturat\w*|clamp\w*|clip\w*)\b", re.IGNORECASE
)
"""Words of the definition of a function by cases: `quadratic for x in (-1, 1) and linear beyond`."""
_FOR = re.compile(r"\bfor(?:\s+[a-z]\w+){0,2}\s*$", re.IGNORECASE)
"""As in `for all x between -2 and 2` and `for an eccentricity e in (0, 1)`."""
_COMPARED = r"\b{0}\b\)?\s*[<>]=?\s*-?[\d.]|[\d.]\s*[<>]=?\s*{0}\b"


def stands_alone(text: str, start: int, end: int, names: str, code: str) -> bool:
    """Whether a brief description may be one.

    Args:
        text: in which it stands.
        start: where the names begin.
        end: where the description begins.
        names: those that are described, as written.
        code: of the function, which may branch where it compares them.
    """
    inside = _NOUN_IN_BRACKETS.match(text, end) if text[:end].rstrip().endswith("(") else None
    if inside is not None and _CASES.search(_sentence(text, start)) is None:
        is_article = names.strip("`'\"* ") in _ARTICLES and _AFTER_BRACKETS.match(text, inside.end()) is None
        return not is_article
    if _STANDS_BEHIND.search(text[:start].rstrip("`'\"*")) is None or _CASES.search(_sentence(text, start)):
        return False
    compares = re.match(_GREATER, text[end:]) is not None
    if names.strip("`'\"* ") in _ARTICLES and not compares and not re.search(r"[)\]]\s*,?\s*$", text[start:end]):
        return False
    return not compares or not (tells_apart(names, code) or _has_two_cases(names, text))


def holds_for(text: str, start: int, names: str, code: str) -> bool:
    """Whether `for` before some names says where the function is defined, as in `the root, for a, b in (0.05, 0.2)`.

    It introduces a case where the sentence or the code tells cases apart.

    Args:
        text: in which it stands.
        start: where the names begin.
        names: those that are described, as written.
        code: of the function.
    """
    sentence, lines = _sentence(text, start), _without_texts(code).splitlines()
    if _FOR.search(text[:start].rstrip("`'\"*")) is None or _CASES.search(sentence) or _PIECES.search(sentence):
        return False
    patterns = [_COMPARES_OR_CUTS.format(re.escape(name)) for name in re.findall(r"\w+", names)]
    return not any(re.search(pattern, line) for pattern in patterns for line in lines)


def begins_sentence(text: str, start: int) -> bool:
    """Whether what begins at `start` is a sentence of its own, and not one about cases."""
    before = text[:start].rstrip("`'\"*")
    return _BEGINS_SENTENCE.search(before) is not None and _CASES.search(_sentence(text, start)) is None


def tells_apart(names: str, code: str) -> bool:
    """Whether code compares one of some names with a number other than to raise an exception."""
    text = _without_texts(code)
    return any(re.search(_COMPARED.format(re.escape(name)), text) for name in re.findall(r"\w+", names))


def _without_texts(code: str) -> str:
    """Code without comments, docstrings, assertions and tests that raise an exception."""
    lines = [line.partition("#")[0] for line in code.splitlines()]
    kept = [
        line
        for number, line in enumerate(lines)
        if not line.lstrip().startswith("assert") and "raise" not in " ".join(lines[number : number + 2])
    ]
    return re.sub(r"(\"\"\"|''').*?\1", "", "\n".join(kept), flags=re.DOTALL)


def positives_named(names: Sequence[str], text: str) -> Iterator[str]:
    """The arguments that follow the word, as in `x (N, C), positive alpha (C,)`; not in `for positive x`.

    And those that it follows in brackets, as in `temperature T (positive, in kelvin)`, or `T (positive)` at the end of
    a phrase; not in `passes x (positive) through`.
    """
    for match in _IN_BRACKETS.finditer(text):
        if (
            match["name"] in names
            and match["name"] not in _ARTICLES
            and not _CASES.search(_sentence(text, match.start()))
        ):
            yield match["name"]
    pattern = rf"{_BEFORE_AN_ADJECTIVE}(?:strictly\s+)?{_SIGN}\s+(?P<names>\w+(?:(?:,|\s+and)\s+\w+)*){_AFTER_A_NAME}"
    for match in re.finditer(pattern, text, re.IGNORECASE):
        owners = re.split(r",\s+|\s+and\s+", match["names"])
        if owners[0] in names and owners[0] not in _ARTICLES and not _CASES.search(_sentence(text, match.start())):
            yield from (name for name in owners if name in names)


def bounded(names: Sequence[str], text: str, code: str) -> Iterator[tuple[str, str]]:
    """The domains of arguments between two numbers, as in `0 < p < 1`, `0 <= t` and `-0.5 < a, b < 0.5`."""
    for match in _BOUNDS.finditer(text):
        owners, high = re.findall(r"\w+", match["names"]), match["high"]
        domain = _between(float(match["low"].replace("−", "-")), high)
        if domain is None or not set(owners) <= set(names) or _CASES.search(_sentence(text, match.start())):
            continue
        stands = _STANDS_BEHIND.search(text[: match.start()]) and not tells_apart(match["names"], code)
        if stands or holds_for(text, match.start(), match["names"], code):
            yield from ((name, domain) for name in owners)


def _between(low: float, high: str | None) -> str | None:
    """The domain of what lies above a number, and below another one or something that has a name."""
    if high is None or _NUMBER.fullmatch(high) is None:
        return "positive" if low == 0 else None
    top = float(high.replace("−", "-"))
    return "unit" if (low, top) == (0, 1) else f"open-interval({low:g}, {top:g})" if low < top else None


def without_others(description: str, names: Sequence[str]) -> str:
    """A description up to where a clause begins with another argument's name: `(n, m), tau the temperature`."""
    others = sorted(set(names) - _ARTICLES, key=len, reverse=True)
    if not others:
        return description
    one = "|".join(map(re.escape, others))
    found = re.search(rf"[,;]\s*(?:and\s+|with\s+)?(?:{one})(?=\s+(?:[a-z]|\(|>)|\s*[:(\[>])", _masked(description))
    return description if found is None else description[: found.start()]


def _masked(text: str) -> str:
    """The text with what stands in brackets replaced, so that the axes of a shape are no names."""
    return re.sub(_SHAPE, lambda match: "(" + "_" * (len(match[0]) - 2) + ")", text)


def _has_two_cases(names: str, text: str) -> bool:
    """Whether a text compares one of some names more than once, as the definition of a function by cases does."""
    return any(len(re.findall(rf"\b{re.escape(name)}\s*[<>]", text)) > 1 for name in re.findall(r"\w+", names))


def _sentence(text: str, start: int) -> str:
    """The sentence around a place, without what a colon or brackets divide."""
    begin = max((match.end() for match in _SENTENCE_ENDS.finditer(text, 0, start)), default=0)
    end = _SENTENCE_ENDS.search(text, start)
    return text[begin : len(text) if end is None else end.start()]
