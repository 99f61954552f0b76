"""The shapes of arguments that docstrings, comments and annotations give, such as `q, k, v: (B, H, T, D)`.

A shape is a tuple of axes: an int is a constant size, a text is the name of a size (`B`), or a sum, difference,
product or quotient of names and numbers (`L // 2 + 1`). `*` and `...` are one axis.
"""

import ast
import inspect
import io
import re
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache

from gradcli.inputs.hints.prose.formulas import names_in
from gradcli.inputs.hints.prose.size_names import USUAL, is_usual, sizes_in_source
from gradcli.sources import tree_of

Axis = int | str

_NAME = r"[A-Za-z]\w*"
_TERM = rf"(?:{_NAME}|\d+{_NAME}|\d+)"
_AXIS = rf"(?:\*\w*|\.\.\.|{_TERM}(?:\s*(?://|[-+*/])\s*{_TERM})*)"
_LETTER = r"(?:\d*(?:[A-Z]\w?|[a-z]\d?)|\d+)(?!\w)"
_LETTERS = rf"(?:\.\.\.|{_LETTER}(?:(?://|[-+*/]){_LETTER})*)"
"""An axis that may stand among others without commas: short, unlike a word of prose."""
_APART_BY_BLANKS = rf"(?![^)\]]*\sx\s)(?:{_LETTERS}[ \t])+{_LETTERS}"
_GROUP = re.compile(
    rf"(?P<open>[(\[])\s*(?P<axes>{_AXIS}(?:\s*(?:,|\sx\s|×)\s*{_AXIS})*|{_APART_BY_BLANKS})\s*(?P<comma>,?)\s*[)\]]"
)
_ENDS = re.compile(r"\.\s|;|->|→|\n\s*\n|\breturns?\b", re.IGNORECASE)
_TENSOR = re.compile(r"(?:tensor|array)$", re.IGNORECASE)
_SHAPE_WORD = re.compile(r"\b(?:shapes?|sizes?|dim(?:ension)?s?)\b", re.IGNORECASE)
_ALSO = re.compile(r"[\s,]*(?:(?:of|with|has|in)\s+)?(?:the\s+)?(?:shape|size)\s*[:=]?\s*", re.IGNORECASE)
"""What stands between the components of an argument and its shape."""
_COMPONENT = re.compile(r"[a-z]?[xyzuvw]|[qxyz]\d|d[rtwhxyz]|[rgb]|lo|hi|re|im|mu|sd")
"""A name of a component: those of a point, a box, a quaternion or a color, or the intrinsics of a camera."""
_ARTICLES = frozenset({"a", "A", "I", "i"})
_AFTER_A_NAME = re.compile(r"\s*[`'\"]*\s*(?:[:,(\[]|(?:and|of|is|must|should|an?|the)\b)")
_BEGINS_SENTENCE = re.compile(r"(?:^|[.;:!?(\n])[-*\s]*[`'\"]*$")
_AFTER_A_SHAPE = re.compile(
    r"\s*(?:$|[^\s\w]|(?:and|or|is|are|must|should|has|have|needs?|may|can|by|of|to|in|into|on|at|for|from|with|via|using|where|times)\b)"
)
"""What follows the shape of a name. A noun follows an article: a (n, m) matrix."""
_OWN = re.compile(r"(?:^|[,.;:(\n]|\b(?:and|with|where|for))[-*\s]*[`'\"]*\w+[`'\"]*\s*:?\s*$")
"""What a description of one argument looks like up to its shape, unlike `the residual r = x - y (N,)`."""
_OPERAND = re.compile(r"(?:\S[ \t]*[-+*/^@=]|[\d)\]])\s*$")
"""What stands before an operand of a formula: the e in `(J J^T)^-1 e, J: (m, n)` has another shape than J."""
_COLON = re.compile(r"[:=]\s*$")
_TYPES = frozenset({"optional", "required", "default", "float", "int", "bool", "str", "none", "real", "complex"})
"""Words in brackets behind several arguments that are not sizes: `eps: (float, optional)`."""
_RANGE = re.compile(r"(?:\bin|\bwithin|\bbetween|∈)\s*$")
_HEAD = re.compile(r"^[-*\s]*(?::param\s+)?[`'\"*]*(?P<name>\w+)[`'\"*]*\s*(?:\([^)]*\)\s*)?:", re.MULTILINE)
"""What begins the description of an argument in a list of arguments."""
_PARAMETER = re.compile(
    r"\s*(?:def\s.*\()?(?P<name>[A-Za-z_]\w*)\s*(?::[^=#]*)?(?:(?:=[^#(]*)?(?:,|\)\s*(?:->.*)?:)\s*)?$"
)
"""The last parameter on a line of a signature."""
_ANNOTATION = re.compile(r"\w+\[\s*[\w.]+\s*,\s*[\"'](?P<axes>[^\"']*)[\"']\s*\]")
_SKIPPED = re.compile(r"^\s*(?:Returns?|Yields?|Outputs?|Raises)\s*:?\s*$", re.IGNORECASE)
_SECTION = re.compile(r"^\s*(?:Args|Arguments|Parameters|Params|Inputs?|Shapes?)\s*:?\s*$", re.IGNORECASE)
_COMPONENTS = re.compile(r"[(\[][^()\[\]]*[)\]]\s*$")
"""The names of entries before a shape, as in `spring = (stiffness, damping) (2,)`."""
_MERGED = rf"\({_LETTERS}(?:[ \t]{_LETTERS})+\)"
"""Axes that are one, as in `x: b n (h d)`."""
_SIZE = rf"(?:{_MERGED}|{_LETTERS}|(?:{'|'.join(sorted(USUAL))})(?!\w))"
_SEPARATORS = (r"[ \t]?,[ \t]?", r"[ \t]x[ \t]", r"[ \t]?×[ \t]?", r"[ \t]")
_SIZES = rf"(?:{'|'.join(f'{_SIZE}(?:{each}{_SIZE})+' for each in _SEPARATORS)}|{_SIZE})"
_FOR_EXAMPLE = re.compile(r"\be\.\s?g\.,?", re.IGNORECASE)
_AFTER_SIZES = rf"(?=\s*(?:$|[;|,]|\.(?:\s|$)|\((?!{_LETTERS}[ \t)])|(?:tensor|array|matrix)\b)|\s{{2,}})"
_BEFORE_A_NAME = r"(?:^|\s{2,}|[;|,.:(-]\s*|\band\s+)"
_CROSSES = re.compile(r"(?<!\w)(?=\w*[A-Z])(?:[A-Z]|\d+)(?:x(?:[A-Z]|\d+))+(?!\w)")
_APART = r"(?:\s{2,}|\s*[,;|]\s*|\s*(?=\(|\.?$))"
"""What stands behind each shape of a line without brackets, `u T,B,3*D   x T,B,D` and `x B T D, head V D`."""
_BETWEEN_SHAPES = re.compile(r"\s*(?:[,;.&+@×x]|and)?\s*")
_LARGEST = 64
"""A larger size, as in `x: (6000,)`, is an example, and stands for any."""
_FARTHEST = 100
"""A shape belongs to a name at most so many characters before it."""


def documented_shapes(
    names: Sequence[str], source: str, documentation: str = "", annotations: Mapping[str, str] | None = None
) -> dict[str, tuple[Axis, ...]]:
    """The shapes that are given for arguments; the first one that is found of each.

    Args:
        names: the arguments.
        source: of forward, of which docstring and comments are read.
        documentation: a further text, such as the class's docstring.
        annotations: of the arguments, which may give shapes as `Float[Tensor, "batch dim"]` does.
    """
    found: dict[str, tuple[Axis, ...]] = {}
    for name, annotation in (annotations or {}).items():
        if (match := _ANNOTATION.search(annotation)) is not None:
            found[name] = tuple(_annotated(axis) for axis in match["axes"].split())
    texts = texts_of(source, documentation)
    sizes = {*sizes_in_source(source), *_recurring(texts, names)}
    for text in texts:
        in_text: dict[str, tuple[Axis, ...]] = {}
        kinds: dict[str, _Kind] = {}
        for name, shape, kind, is_stated in _described(names, text, sizes):
            own, former = kind is _Kind.OWN, kinds.get(name)
            is_better = (own and former is _Kind.LIST) or (is_stated and former is _Kind.LOOSE)
            if name not in in_text or kind is _Kind.AGAIN or is_better:
                in_text[name], kinds[name] = shape, kind
        found = {**in_text, **found}
    return found


def shapes_in_a_row(text: str, names: Sequence[str]) -> tuple[str, list[tuple[Axis, ...]]]:
    """The shapes at the end of a text, one right behind the other, and what stands before them."""
    found: list[tuple[Axis, ...]] = []
    end, is_sure = len(text), False
    for group in reversed(list(_GROUP.finditer(text))):
        shape = _shape(group, "of shape ", names)
        if shape is None or _BETWEEN_SHAPES.fullmatch(text, group.end(), end) is None:
            break
        found.insert(0, shape)
        end, is_sure = group.start(), is_sure or _shape(group, "", names) is not None
    return (text[:end], found) if is_sure else (text, [])


@lru_cache(maxsize=64)
def texts_of(source: str, documentation: str) -> tuple[str, ...]:
    """The docstring in a function's source, its comments and a further text, without what they say of results.

    "For example" stands for "e.g.", whose full stops end no sentence.
    """
    texts = (_FOR_EXAMPLE.sub("for example", text) for text in (*_texts(source), documentation))
    return tuple(map(_without_results, texts))


def _without_results(text: str) -> str:
    """A docstring without its sections on what is returned and raised."""
    kept, skips = [], False
    for line in text.splitlines():
        skips = _SKIPPED.match(line) is not None or (skips and _SECTION.match(line) is None)
        kept.append("" if skips else line)
    return "\n".join(kept)


def _texts(source: str) -> Iterator[str]:
    """The docstring in a function's source, and its comments, each after the parameter on its line."""
    tree = tree_of(source)
    if tree is None:
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inspect.cleandoc(ast.get_docstring(node) or "")
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            before = _PARAMETER.match(lines[token.start[0] - 1][: token.start[1]])
            yield ("" if before is None else f"{before['name']}: ") + token.string.lstrip("# ")


def _annotated(axis: str) -> Axis:
    """An axis of an annotation: `3`, `b`, `n=3`, `*batch`, `#broadcast`, `_`."""
    axis = axis.lstrip("#?").split("=")[-1]
    return int(axis) if axis.isdigit() else axis


class _Kind(Enum):
    """How a text gives a shape: to several arguments at once, to one, to one by its own, or once more to the same."""

    LIST = "q, k: (N, D)"
    LOOSE = "the noise that is added to x, of shape (N, D)"
    OWN = "x: (N, D)"
    AGAIN = "(fx, fy), shape (2,) or (fx, fy) (2,)"


def _recurring(texts: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """The words in the brackets of two arguments, as seqlen in `x: (seqlen, headdim), angles: (seqlen, half)`.

    The entries of two tensors have the same names only where all have: `p: (loc, scale), q: (loc, scale)`.
    """
    found = [group for text in texts for group in _GROUP.finditer(text) if _COLON.search(text[: group.start()])]
    groups = {_axes(group["axes"]) for group in found}
    words = Counter(word for group in groups for word in {word for axis in group for word in names_in(str(axis))})
    yield from (word for word, count in words.items() if count > 1 and word not in _TYPES.union(names))


def _described(
    names: Sequence[str], text: str, sizes: Collection[str]
) -> Iterator[tuple[str, tuple[Axis, ...], _Kind, bool]]:
    """The arguments with their shapes, and how the text gives them, also whether after a colon.

    `sizes` are words known to be names of sizes.
    """
    text = _CROSSES.sub(lambda match: match[0].replace("x", " x "), text)
    end, owners, shape = 0, list[str](), None
    for group in _GROUP.finditer(text):
        between = text[end : group.start()]
        if shape is not None and not between.strip() and group["axes"] == str(len(shape)):
            yield from ((name, (len(shape),), _Kind.AGAIN, False) for name in owners)
            continue
        shape = _shape(group, between, names, sizes)
        if shape is None:
            continue
        end = group.end()
        if _ALSO.fullmatch(between) is not None:
            yield from ((name, shape, _Kind.AGAIN, False) for name in owners)
            continue
        between = _ENDS.split(between)[-1][-_FARTHEST:]
        owners = _owners(between, names, text[end:])
        kind = _Kind.LIST if len(owners) > 1 else _Kind.OWN if _OWN.search(between) else _Kind.LOOSE
        yield from ((name, shape, kind, _COLON.search(between) is not None) for name in owners)
    for name, shape in _unbracketed(names, text):
        yield name, shape, _Kind.OWN, False


def mentions(text: str, names: Sequence[str]) -> bool:
    """Whether a text has any of the names; to compile a pattern of them takes longer than most texts are worth."""
    return any(name in text for name in names)


def _unbracketed(names: Sequence[str], text: str) -> Iterator[tuple[str, tuple[Axis, ...]]]:
    """The shapes in lines without brackets: `u, v: B L D   A: D N`, and without colons where they give nothing else."""
    if not mentions(text, names):
        return
    name = rf"[`'\"*]*(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})(?!\w)[`'\"*]*"
    several = rf"(?P<names>{name}(?:(?:\s*[,&/]\s*|\s+and\s+|[ \t](?![A-Z])){name})*)"
    own = re.compile(rf"{several}(?:\s*:\s*|\s)(?P<axes>{_AXIS}(?:\s?,\s?{_AXIS})*|{_SIZES}){_APART}")
    inside = re.compile(rf"{_BEFORE_A_NAME}{several}\s*:\s*(?P<axes>{_SIZES}){_AFTER_SIZES}")
    known: set[Axis] = set()
    for whole in text.splitlines():
        line = re.split(r"->|→|\breturns?\b", whole.strip(" \t#-*"), maxsplit=1, flags=re.IGNORECASE)[0].rstrip()
        row = list(_from_the_begin(own, line))
        found = max(list(inside.finditer(line)), row if len(row) > 1 else [], key=len)
        given = [(re.findall(r"\w+", each["names"]), _axes(each["axes"])) for each in found]
        if any(_is_a_shape(shape, names) or (len(shape) == 1 and shape[0] in known) for _, shape in given):
            known.update(axis for _, shape in given for axis in shape)
            yield from ((name, shape) for owners, shape in given for name in owners if name in names)


def _from_the_begin(pattern: re.Pattern[str], line: str) -> Iterator[re.Match[str]]:
    """The matches at the begin of a line, one right behind the other."""
    match = pattern.match(line)
    while match is not None:
        yield match
        match = pattern.match(line, match.end())


def _is_a_shape(shape: tuple[Axis, ...], names: Sequence[str]) -> bool:
    """Whether axes without brackets are a shape for sure: not arguments, nor components, nor two words of prose."""
    words = [axis for axis in shape if isinstance(axis, str)]
    is_prose = len(shape) == 2 and all(word in USUAL for word in words)
    are_names = all(word in names and word.islower() for word in words)
    return len(shape) > 1 and bool(words) and not (is_prose or are_names or _are_components(shape))


def _axes(text: str) -> tuple[Axis, ...]:
    """The axes in a text that commas, blanks or crosses divide; `(h d)` is a product."""
    text = re.sub(_MERGED, lambda match: re.sub(r"\s+", "*", match[0][1:-1]), text)
    parts = re.split(r",|\sx\s|×", text)
    if len(parts) == 1 and re.fullmatch(_SIZES, text) is not None:
        parts = text.split()
    return tuple(int(each) if each.isdigit() else _spelt_out(each) for each in map(str.strip, parts))


def without_shape(description: str, names: Sequence[str]) -> str:
    """The description of an argument without the shape in brackets at its begin, as in `A: (n, n), symmetric`."""
    group = _GROUP.match(description, len(description) - len(description.lstrip()))
    if group is None or _shape(group, "", names) is None:
        return description
    return re.sub(r"^\s*,", "", description[group.end() :])


def _shape(
    group: re.Match[str], before: str, names: Sequence[str], sizes: Collection[str] = ()
) -> tuple[Axis, ...] | None:
    """The shape in brackets; None where they rather hold prose, the arguments of a call, or an index: `f(x)[i]`."""
    is_index = group["open"] == "[" and group.string[: group.start()].endswith((")", "]"))
    word = re.search(r"\w+$", before)
    if is_index or (word is not None and _TENSOR.search(word[0]) is None) or _RANGE.search(before) is not None:
        return None
    shape = _axes(group["axes"])
    numbers = [axis for axis in shape if isinstance(axis, int)]
    if numbers and not 0 < min(numbers) <= max(numbers) <= _LARGEST:
        if not (group["comma"] or shape[1:]) or not _may_be_large(shape, before, names):
            return None
        shape = tuple(f"N{axis}" if isinstance(axis, int) and axis > _LARGEST else axis for axis in shape)
    words = [axis for axis in shape if isinstance(axis, str)]
    if re.fullmatch(_APART_BY_BLANKS, group["axes"]) is not None and not (words and _may_precede(before, names)):
        return None
    if len(shape) > 1 and all(word in names for word in words) and len(words) == len(shape):
        return None
    if len(shape) > 1 and not _is_announced(before) and _are_components(shape):
        return None
    parts = [part for each in words for part in names_in(each) or [each]]
    likely = any(len(each) <= 2 or not each.islower() or is_usual(each) or each in sizes for each in parts)
    sure = likely or word is not None or _SHAPE_WORD.search(before[-_FARTHEST:]) is not None
    if len(shape) == 1 and not group["comma"] and group["open"] == "(":
        is_known = _COLON.search(before) is not None and any(each in sizes for each in parts)
        sure = bool(words) and (is_known or (words[0].isupper() and (len(words[0]) <= 2 or sure)))
    if len(shape) == 1 and not words and group["comma"]:
        named = re.search(r"(\w+)[`'\"*]*\s*([:=]?)\s*$", _COMPONENTS.sub("", before))
        sure = sure or (word is None and named is not None and (bool(named[2]) or named[1] in names))
    return shape if sure or (not words and len(shape) > 1) else None


def _may_precede(before: str, names: Sequence[str]) -> bool:
    """Whether axes in brackets without commas may follow a text: a product does in `E / (R T)`."""
    word = re.search(r"(\w+)[`'\"*]*\s*:?\s*$", before)
    return _is_announced(before) or (word is not None and word[1] in names)


def _may_be_large(shape: Sequence[Axis], before: str, names: Sequence[str]) -> bool:
    """Whether brackets with large numbers hold a shape, and not a range or a pair of values."""
    numbers = [axis for axis in shape if isinstance(axis, int)]
    named = re.search(r"(\w+)[`'\"*]*\s*:\s*$", before)
    is_sure = len(numbers) < len(shape) or _is_announced(before) or (named is not None and named[1] in names)
    return is_sure and min(numbers) > 0 and not (1 in numbers and len(shape) == 2)


def _is_announced(before: str) -> bool:
    """Whether a word right before brackets says that they hold a shape."""
    word = re.search(r"(\w+)\s*(?:of|is|=|:)?\s*$", before)
    return word is not None and (_SHAPE_WORD.fullmatch(word[1]) or _TENSOR.search(word[1])) is not None


def _are_components(shape: Sequence[Axis]) -> bool:
    """Whether axes are rather the names of an argument's entries, as in `intrinsics (fx, fy, cx, cy)`."""
    different = len(set(shape)) == len(shape)
    return different and all(isinstance(axis, str) and _COMPONENT.fullmatch(axis) is not None for axis in shape)


def _spelt_out(axis: str) -> str:
    """An axis in Python's syntax: `3H` is `3*H`, and a quotient is an integer."""
    return re.sub(r"/+", "//", re.sub(rf"\b(\d+)({_NAME})", r"\1*\2", axis))


def _owners(text: str, names: Sequence[str], after: str) -> list[str]:
    """The arguments whose shape follows `text`: those that its line describes, or else the last ones named.

    `after` is what follows the shape.
    """
    places = [
        match
        for match in re.finditer(r"(?<![\w.])[A-Za-z_]\w*", text)
        if match[0] in names and (match[0] not in _ARTICLES or _is_name(text, match, after))
    ]
    heads = {match.start("name") for match in _HEAD.finditer(text)}
    last = len(places) - 1
    if places and re.fullmatch(r"[`'\"*:\s]*", text[places[-1].end() :]) is None:
        last = max((n for n, place in enumerate(places) if place.start() in heads), default=last)
    if not places:
        word = re.search(rf"({_NAME})[`'\"*:\s]*$", text)
        short = [] if word is None else [name for name in names if _is_short_for(name, word[1])]
        return short if len(short) == 1 else []
    owners = [places[last][0]]
    listed = re.split(r"[,;)\]\n]", text[: places[last].end()])[-1].split()
    all_names = all(word in names for word in listed)
    for one, other in zip(reversed(places[:last]), reversed(places[1 : last + 1]), strict=True):
        between = text[one.end() : other.start()]
        if re.fullmatch(r"[`'\"\s]*(?:,|and|&|/|,\s*and)[`'\"\s]*", between) is None and not (
            not between.strip() and all_names
        ):
            break
        if _OPERAND.search(text[: one.start()]) is not None:
            break
        owners.append(one[0])
    return owners


def _is_short_for(name: str, word: str) -> bool:
    """Whether a name is the beginning of a word, or has its first and some further letters, as `pts` of `points`."""
    short, long = name.lower(), word.lower()
    letters = iter(long[1:])
    some = len(short) > 2 and short[0] == long[0] and all(letter in letters for letter in short[1:])
    return len(short) > 1 and (some or long.startswith(short))


def _is_name(text: str, letter: re.Match[str], after: str) -> bool:
    """Whether a letter that may be an article is a name, from what surrounds it in `text` and follows the shape.

    A capital letter inside a sentence is one: `for A a matrix`.
    """
    if letter[0].isupper() and _BEGINS_SENTENCE.search(text[: letter.start()]) is None:
        return True
    if re.fullmatch(r"[`'\"*\s]*", text[letter.end() :]) is not None:
        return _AFTER_A_SHAPE.match(after) is not None
    return _AFTER_A_NAME.match(text, letter.end()) is not None
