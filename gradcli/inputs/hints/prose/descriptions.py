"""Where a text describes arguments: behind a colon, a verb, a dash or a shape, right behind the name, or before it.

Without a colon or a verb, as in `tau scalar > 0`, `alpha (C,) positive`, `A (n, n) symmetric`, `boolean mask m` and
`0 < p < 1`, descriptions are easily mistaken. In `x if x > 0 else 0` the words are about a branch, in `the positive x
axis` about something else, and `a positive number` begins with an article. So such a description stands by itself: at
the begin of a sentence or behind a mark, and not in a sentence or beside code that tells cases apart.
"""

import itertools
import re
from collections.abc import Collection, Iterator, Sequence

from gradcli.inputs.hints.documented_constants import WITHOUT_GRADIENT, says_constant, says_fixed
from gradcli.inputs.hints.documented_shapes import mentions, without_shape
from gradcli.inputs.hints.prose.sentences import ARTICLES, CASES, MARKS, QUOTES, sentence_around, tells_apart

_SIGN = r"(?:positive|non-?\s?negative)"
_WITHOUT_AXES = r"(?:0|zero)[- ]?d(?:im(?:ensional)?)?\s+(?:tensors?|arrays?|parameters?)"
_WORDS = (
    rf"(?:(?:strictly|real|single|learnable|trainable|learned|shared|{_SIGN})\s+)*"
    rf"(?:(?:scalars?|{_SIGN})\b(?!\s*[-/]|\s+(?:and|or)\s+negative)|{_WITHOUT_AXES}\b)"
)
_SCALAR = rf"(?:an?\s+)?{_WORDS}"
_BRIEF = (
    rf"(?:(?:(?:an?|both|all|each)\s+)*(?:\(\s*(?={_SCALAR}[^()]*\))|(?={_WORDS}))"
    r"|(?<=\s)(?=\(\s*\)\s*(?:$|[.,;:)\n]|and\b)))"
)
"""What follows a name, and its shape if that is given, at the begin of such a description."""
_KIND = (
    r"(?:bool(?:ean)?|binary|0\s?/\s?1|integers?|int(?:32|64)?|(?:class\s+)?labels|masks?\s+of|class\s+indices|complex(?:-valued)?"
    r"|(?:(?:uniform|gaussian|normal|standard|random|white)\s+)*noise|permutation|frozen|fixed|constants?|detached"
    r"|ground[- ]truth)"
)
_NOUN = (
    r"(?:tensors?|arrays?|vectors?|matri(?:x|ces)|masks?|labels?|targets?|index|indices|numbers?|weights?|signals?|indicators?"
    r"|inputs?|parameters?|factors?|coefficients?|bas[ei]s|projections?)"
)
_ORDER = (
    r"(?:(?:sorted|(?:in\s+)?(?:(?:strictly|monotonically)\s+)?(?:(?:non-?)?(?:in|de)creasing|ascending|descending))\b)"
)
_MODIFIERS = r"(?:(?:an?|the|real|square|dense|float|learnable|trainable|given|random|strictly|distinct|unique)\s+)*"
_OF_KIND = (
    rf"(?:(?<=[)\]]),?\s+(?={_MODIFIERS}"
    r"(?:symmetric|SPD|PSD|covariance|lower[- ]triangular|orthogonal|orthonormal|one[- ]?hot|probabilities|indices"
    r"|real(?:-valued)?(?=\s*(?:$|[.,;:)\n]))"
    rf"|{_ORDER}|{_KIND})\b)"
    rf"|(?<=[\s`])(?={_MODIFIERS}(?:{_KIND}|indices)(?:\s+{_NOUN})?\s*(?:$|[.,;:()\[\]\n]|->|→|and\b|(?<=noise)\s+in\s*[(\[])))"
)
"""What follows an argument where its kind is described, with its shape as in `A (n, n) symmetric` or without."""
_BOUND = r"\s*(?:(?:[<>]=?|[≤≥])\s*[-+]?[.\d]+|(?:\bin|∈)\s*[(\[][^()\[\],]*,[^()\[\],]*[)\]])"
"""What may stand between a name and a description: `tau > 0 scalar`, `rho in (-1, 1) (scalar)`."""
_SHAPE = r"[(\[][^()\[\]]*[)\]]"
_NO_WORDS_SHAPE = rf"(?![(\[]\s*{_SCALAR}){_SHAPE}"
"""What may be a shape, unlike in `tau (scalar)`."""
_STANDS_BEHIND = re.compile(
    r"(?:^|[.,;:(\n]|\b(?:with|where|and|(?:all|each|both)(?:\s+of)?|(?:defined|valid|only) for)\b)\s*$", re.IGNORECASE
)
_BEGINS_SENTENCE = re.compile(r"(?:^|[.;:(\n]|,\s*where\b)\s*$", re.IGNORECASE)
_BEGINS_CLAUSE = re.compile(r"(?:,|,\s*(?:and|with)\b)\s*$", re.IGNORECASE)
_NOUNS = (
    r"(?:(?!(?:of|for|in|on|to|at|by|from|with|over|per|as|than|into|is|are|and|or|if|when|where|each|all|the|an?|its|only|not|no)\b)"
    r"[a-z][a-z-]*[ \t](?!\s)){1,3}"
)
_BEHIND_NOUNS = re.compile(rf"(?:^|[.,;:(\n])\s*{_NOUNS}$")
"""What may stand before a name with its shape, as in `price scalar, times t (n,) positive`."""
_WITHOUT_NOUN = re.compile(rf"(?:strictly\s+)?{_SIGN}(?:\s+(?:is|must|should)\b|\s*(?:$|[.;\n]))", re.IGNORECASE)
"""What follows a name that is an article as well: `a positive is a constant`, unlike `a positive number`."""
_ENDS_SOON = re.compile(r"(?:\w+\s+)?[\w-]+\s*(?:$|[.,;:()\[\]\n])")
_OF_AN_EQUATION = re.compile(
    r"\b(?:(?P<root>\w+)\s+with\s+(?=[^=]*\b(?P=root)\b)|(?:such that|satisf\w+|solv\w+|roots?|inverse)\b)"
    r"[^.;\n]*(?<![<>!=])=(?!=)[^.;\n]*"
    r"\bfor(?:\s+(?:all|any|every|an?))?\s*$", re.IGNORECASE,
)  # fmt: skip
"""As in `x with x exp(x) = y for positive y`: an equation to be solved has no cases, `f(x) = x for positive x` may."""
_OF_A_CALL = re.compile(
    r"(?<![\w=])(?<!= )[A-Za-z]\w*\((?P<called>[\w\s,;]+)\)\s*,?\s*\bfor(?:\s+(?:all|any|every|an?))?\s*$"
)
"""As in `P(a, x) for positive x`: the function itself, and not a branch of it as in `x for positive x`."""
_MINUS, _PLUS = r"[-−]1(?:\.0?)?", r"\+?1(?:\.0?)?"
SIGNS = (
    rf"(?:\bin\s*|∈\s*)?\{{\s*(?:{_MINUS}\s*,\s*{_PLUS}|{_PLUS}\s*,\s*{_MINUS})\s*\}}"
    rf"|(?<![\w.])(?:{_MINUS}\s*(?:/|\bor\b)\s*{_PLUS}|{_PLUS}\s*(?:/|\bor\b)\s*{_MINUS}|(?:±|\+/-)\s?1(?:\.0?)?)(?![\w.]*\w)"
)
"""The labels -1 and 1, as in `{-1, 1}`, `+1 or -1` and `±1`; [-1, 1] is an interval."""
_IF = r"(?:for|if|when)\b"
_BIT = r"[01](?:\.0?)?"
BITS = (
    rf"(?:\bin\s*|∈\s*)?\{{\s*{_BIT}\s*,\s*{_BIT}\s*\}}|(?<![\w.])(?:0\s*(?:/|\bor\b)\s*1|1\s*(?:/|\bor\b)\s*0)(?![\w.]*\w)"
    r"|(?<=\bof )(?:0s? and 1s?|1s? and 0s?|zeros and ones|ones and zeros)(?![\w.]*\w)"
    rf"|(?<![\w.])(?:0(?: {_IF}|\s*=)[^.;()<>≤≥]*\b1(?: {_IF}| otherwise\b|\s*=)"
    rf"|1(?: {_IF}|\s*[=:])[^.;()<>≤≥]*\b0(?: {_IF}| otherwise\b|\s*[=:]))"
)
"""The labels 0 and 1, as in `{0, 1}`, `0/1`, `mask of 0 and 1` and `0 for the negative class and 1 for the other`.

`0: real part, 1: imaginary part` names the places along an axis, unlike `1: observed, 0: censored`.
"""
_BEFORE_A_NOUN = re.compile(r"\b(?:for|of|by|to|from|against)\s*$", re.IGNORECASE)
_IN_BRACKETS = re.compile(
    rf"(?<![\w.])(?P<name>\w+)\s*\((?:strictly\s+)?{_SIGN}\s*"
    r"(?:[,;](?![^()]*\b(?:negative|zero)\b)[^()]*\)|\)(?=\s*(?:$|[^\s\w])))",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|whenever|unless|while|until|where|for|once)\s+(?:the\s+|an?\s+)?[`'\"*]*$", re.I)
_NEGATIVE = re.compile(r"(?<!non)(?<!non-)(?<!non )\bnegative\b", re.IGNORECASE)
_PHRASE = re.compile(r"[^,.;:()\[\]\n]*?(?=[,.;:()\[\]\n]|\s(?:of|for|in|from|to|at|with|by|per)\s|$)")
_SMALL_WORDS = r"with|of|for|from|by|the|an?|to|at|on|using|against|into|over|under|between|plus|minus|times"
BEFORE_A_KIND = rf"(?:^|[.,;:(\n]|\b(?:{_SMALL_WORDS}|and)\b)\s*"
PARTS = re.compile(r"\b(?:pairs?|stored|interleaved|imaginary|stacked)\b", re.IGNORECASE)
"""Words that say how complex numbers are kept as real ones."""
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
AFTER_A_NAME = r"(?=\s*(?:$|[.,;:)\n]|\(|(?:and|by|with|via|using|to|in|into|on|at|for|from|is|are|must|should)\b))"
_BEFORE_AN_ADJECTIVE = r"(?:^|[.,;:(\n]|\b(?:with|of|and)\b)\s*(?:an?\s+)?"


_RESULT = r"->|→|\breturns?\b(?!\s*(?:[.,;)\]]|of\b|$))"
"""What ends a description; not the noun: `r: (T,) returns, fixed`."""
_IS_OF_RESULT = re.compile(r"(?:->|→)[^.;\n]*[\w)\]][`'\"* \t]+$")
"""What stands before a name that tells what the outputs are, as in `a (N, 3) -> nearest in b (M, 3): distances`."""
_IS_SCALAR = r"(?:\s*(?:[<>]=?|[≤≥])\s*[-+.\de]+)?\s*\((?:(?:an?|real|positive)\s+)*scalars?\)(?!\s+\w)"
"""What says in brackets behind a name, or its limit, that it is a single number: `rate > 0 (scalar)`."""
_LOG_SCALARS = r"(?:(?:are|is|both|an?|real)\s+)*scalars?\s*(?:$|[^\s\w]|and\b)"
"""What follows names of which the logarithms are given: `log q and log r scalars`."""


def descriptions(names: Sequence[str], text: str, code: str) -> Iterator[tuple[str, str, bool]]:
    """The arguments that a text describes, each with its description, and whether that has a colon or a "must"."""
    if not mentions(text, names):
        return
    one = rf"{QUOTES}(?<![\w.])(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?!\w){QUOTES}"
    head = re.compile(
        rf"(?:^[ \t]*(?:[-*][ \t]+)?(?::(?:param|type)\s+(?:[\w.]+\s+)?)?)?{_several(one)}\s*"
        rf"(?:(?P<type>\([^()]*\))?\s*:(?![:=])|(?:{_NO_WORDS_SHAPE}\s*)?"
        rf"(?:(?=(?P<verb>is|are|must|should|has to|have to|needs? to)\s)|(?=(?P<range>in\s*[(\[{{]|∈|between\s))"
        rf"|(?P<dash>--?|–|—)\s+(?!{one})|(?P<brief>)(?:(?P<kind>){_OF_KIND}|(?:(?<=[)\]]),\s*)?(?:{_BRIEF}|{WITHOUT_GRADIENT}))))",
        re.MULTILINE,
    )
    text = _without_bounds(text, one)
    heads = [
        each
        for each in head.finditer(text)
        if (each["dash"] is None or not text[: each.start("names")].rpartition("\n")[2].strip(" \t-*"))
        and _IS_OF_RESULT.search(text, 0, each.start("names")) is None
    ]
    heads = [
        each
        for each in heads
        if each["brief"] is None
        or (
            _stands_alone(text, each.start("names"), each.end(), each["names"], is_kind=each["kind"] is not None)
            and not _is_of_next(text, each.end(), set(names).difference(re.findall(r"\w+", each["names"])))
        )
    ]
    for match, following in itertools.zip_longest(heads, heads[1:]):
        indent = _indent(text, match.start("names"))
        end = len(text) if following is None else following.start()
        described = re.findall(r"\w+", match["names"])
        body = _without_others(_body(text[match.end() : end], indent), [n for n in names if n not in described])
        body = without_shape(body, names)
        before = text[max(0, match.start("names") - 40) : match.start("names")]
        is_stated = (
            match["verb"] is None
            or re.match(r"\s*(?:(?:is|are) assumed|must|should|ha|need)", body) is not None
            or _begins_sentence(text, match.start("names"), match["names"], code)
        )
        if (
            match["verb"] is not None
            and _CONDITION.search(before) is not None
            and not before.rstrip(" `").endswith("where")
        ):
            continue
        if match["range"] is not None:
            from gradcli.inputs.hints.prose.intervals import says_where_defined

            is_set = re.match(r"(?:in\s*)?[{∈]", body.lstrip()) is not None
            is_of_inputs = is_set and says_where_defined(described, text, match.start("names"), code)
            is_constant = not is_set and (says_constant(body, names) or says_fixed(body))  # `u in (0, 1) noise`
            if not (is_of_inputs or is_constant) or _ranges_differ(heads, match["names"], text):
                continue  # an interval is read elsewhere
        for name in names:
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", match["names"]):
                yield name, f"{match['type'] or ''} {body}", is_stated


def _several(one: str) -> str:
    """The pattern of one or several names that are described together; `one` is that of a single name.

    In `y^3 = x, x positive` the second x is described, and not both; so is the second y of `x / y, y positive`. In `for
    positive x, b positive` the second is described alone.
    """
    another = rf"(?!(?P=first)(?!\w))(?P<last>{one})(?!,\s*(?P=last)(?!\w))"
    own = rf"(?:(?<!positive )(?<!negative )|(?!{one}\s*,))"
    return rf"(?P<names>{own}(?P<first>{one})(?:\s*(?:,|and|&|/)\s*{another})*)"


def _indent(text: str, start: int) -> int:
    """How far the line is indented that names at `start` begin; -1 where something else stands before them."""
    line = text[text.rfind("\n", 0, start) + 1 :]
    begins = text[:start].rpartition("\n")[2].strip(" \t-*:").split(" ")[0] in ("", "param", "type")
    return len(line) - len(line.lstrip()) if begins else -1


def _without_bounds(text: str, one: str) -> str:
    """A text without what stands between some names and a brief description of them; `one` is a pattern of a name."""
    others = rf"(?:\s*(?:,\s*and\b|,|\band\b|&)\s*{one}(?:{_BOUND})?)*"
    return re.sub(rf"(?P<name>{one}){_BOUND}(?={others}\s+{_BRIEF})", r"\g<name>", text)


def _ranges_differ(heads: Sequence[re.Match[str]], names: str, text: str) -> bool:
    """Whether a text gives the same names other ranges elsewhere, as the definition of a function by cases does."""
    ranges = [head.end() for head in heads if head["range"] is not None and head["names"] == names]
    return len({re.split(r"(?<=[)\]}])", text[end:], maxsplit=1)[0] for end in ranges}) > 1


def _body(text: str, indent: int) -> str:
    """The lines of a description: to a blank one, or one that is not indented more than the name at its begin.

    Nouns at its end belong to the name that follows.
    """
    own = _BEHIND_NOUNS.sub(lambda found: found[0][:1], text)
    first, *others = re.split(_RESULT, own, maxsplit=1, flags=re.IGNORECASE)[0].split("\n")
    kept = [first]
    for line in others:
        if not line.strip() or len(line) - len(line.lstrip()) <= indent:
            break
        kept.append(line.strip())
    return " ".join(kept)


def _stands_alone(text: str, start: int, end: int, names: str, *, is_kind: bool) -> bool:
    """Whether a brief description may be one.

    Args:
        text: in which it stands.
        start: where the names begin.
        end: where the description begins.
        names: those that are described, as written.
        is_kind: whether it says of what kind they are, as a sentence that tells cases apart does not.
    """
    inside = _NOUN_IN_BRACKETS.match(text, end) if text[:end].rstrip().endswith("(") else None
    if inside is not None and CASES.search(sentence_around(text, start)) is None:
        return names.strip(f"{MARKS} ") not in ARTICLES or _AFTER_BRACKETS.match(text, inside.end()) is not None
    before, own = text[:start].rstrip(MARKS), names.strip(f"{MARKS} ")
    is_inside = before.strip() != "" and _BEGINS_SENTENCE.search(before) is None
    is_article = own in ARTICLES and not (own.isupper() and is_inside)  # `root of A (n, n) symmetric` names A
    stands = _STANDS_BEHIND.search(before) or (is_kind and not is_article and _BEFORE_A_NOUN.search(before))
    if not stands and not is_article and text[start:end].rstrip(" ,").endswith((")", "]")):
        stands = _ENDS_SOON.match(text, end) and _BEHIND_NOUNS.search(before)
    if not stands or CASES.search(sentence_around(text, start)):
        return False
    has_shape = re.search(r"[)\]]\s*,?\s*$", text[start:end]) is not None
    return not is_article or has_shape or _WITHOUT_NOUN.match(text, end) is not None


def _begins_sentence(text: str, start: int, names: str, code: str) -> bool:
    """Whether what begins at `start`, with some names, is a sentence or clause of its own, and not one about cases."""
    before, own = text[:start].rstrip(MARKS), re.findall(r"\w+", names)
    begins = _BEGINS_SENTENCE.search(before) or (_BEGINS_CLAUSE.search(before) and not tells_apart(own, code))
    return bool(begins) and CASES.search(sentence_around(text, start)) is None


def positives_named(names: Sequence[str], text: str) -> Iterator[str]:
    """The arguments that follow the word, as in `x (N, C), positive alpha (C,)`; not in `for positive x`.

    There they count behind an equation that is solved, as in `x with x exp(x) = y for positive y`.

    And those that it follows in brackets, as in `temperature T (positive, in kelvin)`, or `T (positive)` at the end of
    a phrase; not in `passes x (positive) through`.
    """
    for match in _IN_BRACKETS.finditer(text):
        if (
            match["name"] in names
            and match["name"] not in ARTICLES
            and not CASES.search(sentence_around(text, match.start()))
        ):
            yield match["name"]
    before = rf"(?:{_BEFORE_AN_ADJECTIVE}|(?P<for>\bfor(?:\s+(?:all|any|every|an?))?\s+))"
    pattern = rf"{before}(?:strictly\s+)?{_SIGN}\s+(?P<names>\w+(?:(?:,|\s+and)\s+\w+)*){AFTER_A_NAME}"
    for match in re.finditer(pattern, text, re.IGNORECASE):
        if _is_next_line(text, match.start("names"), match.end("names")):
            continue
        owners = re.split(r",\s+|\s+and\s+", match["names"])
        sentence = sentence_around(text, match.start())
        if match["for"] is not None and not _is_where_defined(text[: match.end("for")], owners[0], sentence):
            continue
        if owners[0] in names and not CASES.search(sentence) and not _NEGATIVE.search(sentence):
            yield from (name for name in owners if name in names)


def _is_where_defined(before: str, name: str, sentence: str) -> bool:
    """Whether a `for` at the end of a text, in front of a name, says where the function is defined at all."""
    call = _OF_A_CALL.search(before)
    is_whole = call is not None and name in re.findall(r"\w+", call["called"])
    is_only = len(re.findall(r"\bfor\b", sentence)) == 1 and not re.search(
        r"\b(?:0|zero|below|rest|others?)\b", sentence
    )
    return _OF_AN_EQUATION.search(before) is not None or (is_whole and is_only)


def _is_next_line(text: str, start: int, end: int) -> bool:
    """Whether a name begins a line that describes it, so that the words at the end of the line above are not about it.

    A sentence may be broken before a name and its shape, as in `with the positive` above `rates (N,)`.
    """
    above, line = text[:start].rpartition("\n")[::2]
    following = re.match(r"\s*[:(\[]", text[end:])
    if not above or line.strip(f" \t-{MARKS}") or following is None:
        return False
    last = re.split(r"[.,;:()\n]", above)[-1]
    return following[0].endswith(":") or re.search(rf"\b(?:{_SMALL_WORDS})\b", last) is None


def _is_of_next(text: str, end: int, names: Collection[str]) -> bool:
    """Whether a phrase is about one of some names, at its end, as in `x (N, C), boolean mask m (N,)`."""
    phrase = _PHRASE.match(text, end)
    last = None if phrase is None else re.search(r"(\w+)[`'\"*]*\s*$", phrase[0])
    return last is not None and last[1] in names


def kinds_named(names: Sequence[str], text: str) -> Iterator[tuple[str, str]]:
    """The arguments in front of which a text says what kind of input they are, as in `boolean mask m`, with the kind.

    Not a noun that is described by a name: in `constant c term` the term is the constant. And those behind which it
    says in brackets that they are scalars, or whose logarithms are: `log q and log r scalars`.
    """
    if not mentions(text, names):
        return
    one = rf"[`'\"*]*(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})[`'\"*]*"
    pattern = (
        rf"{BEFORE_A_KIND}(?P<kind>{_MODIFIERS}(?:{_KIND}|scalars?)(?:\s+{_NOUN})?)\s+"
        rf"(?P<names>{one}(?:(?:,|\s+and)\s+{one})*)(?!\w)(?:{AFTER_A_NAME}|(?=\s*[^\s\w]))"
    )
    for match in re.finditer(pattern, text, re.IGNORECASE):
        sentence = sentence_around(text, match.start())
        if _is_next_line(text, match.start("names"), match.end("names")):
            continue
        if CASES.search(sentence) is None and PARTS.search(sentence) is None:
            yield from ((name, match["kind"]) for name in re.findall(r"\w+", match["names"]) if name in names)
    for match in re.finditer(rf"(?<![\w.])(\w+){_IS_SCALAR}", text):
        if match[1] in names:
            yield match[1], "scalar"
    if "log" in text and "scalar" in text:
        yield from ((name, "scalar") for name in names if _is_scalar_logarithm(name, text))


def _is_scalar_logarithm(name: str, text: str) -> bool:
    """Whether a text lists an argument, called `q` or `log_q`, as `log q` among scalars."""
    own = rf"log[- ]{re.escape(re.sub('^log_?(?=.)', '', name))}(?!\w)"
    more = r"(?:(?:,|,?\s+and)\s+(?:log[- ])?\w+)*"
    listed = rf"(?:log[- ]\w+(?:,|,?\s+and)\s+)*{own}{more}"
    return (
        re.search(rf"\bscalars?\s+{listed}\s*(?:$|[^\s\w])|{BEFORE_A_KIND}{listed}\s+{_LOG_SCALARS}", text) is not None
    )


def _without_others(description: str, names: Sequence[str]) -> str:
    """A description up to where a clause begins with another argument's name: `(n, m), tau the temperature`."""
    others = sorted(set(names) - ARTICLES, key=len, reverse=True)
    if not others:
        return description
    one = "|".join(map(re.escape, others))
    begins = rf"[,;]\s*(?:(?:and\s+|with\s+)?(?:{one})(?=\s+(?:[a-z]|\(|>)|\s*[:(\[>])|{_NOUNS}(?:{one})(?=\s*[(\[]))"
    found = re.search(begins, _masked(description))
    return description if found is None else description[: found.start()]


def _masked(text: str) -> str:
    """The text with what stands in brackets replaced, so that the axes of a shape are no names."""
    return re.sub(_SHAPE, lambda match: "(" + "_" * (len(match[0]) - 2) + ")", text)
