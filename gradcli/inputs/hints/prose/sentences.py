"""The sentence around a place in a text, and whether the text or the code beside it tells cases apart."""

import ast
import math
import re
from collections.abc import Iterator, Sequence

from gradcli.sources import nodes_of, tree_of

MARKS = "`'\"*"
QUOTES = rf"[{MARKS}]*"
ARTICLES = frozenset(("a", "A", "i", "I"))
CASES = re.compile(r"\b(?:if|else|otherwise|elsewhere|when|whenever|unless|until|while)\b", re.IGNORECASE)
_SENTENCE_ENDS = re.compile(r"\.(?=\s|$)|\n\s*\n|;")
_CUTS = frozenset(("clamp", "clip", "clamp_", "clip_", "minimum", "maximum", "hardtanh"))
_TINY = 1e-9
"""What stands for a number that is called `eps` or the like."""
_SMALL = re.compile(r"(?:.*_)?(?:eps\w*|tiny|tol\w*|smallest_normal)", re.IGNORECASE)
_BALL = (
    r"(?:(?:open|closed|unit|hyperbolic|Poincar\S+|Euclidean)[- ])+(?:ball|dis[ck])s?\b"
    r"|(?:open |closed )?ball of radius (?:1|one)\b"
)
_BELOW_ONE = r"(?:is |are )?(?:strictly )?(?:less than|smaller than|below|under|<) ?(?:1(?:\.0*)?|one)(?![\w.]*\w)"
IN_BALL = (
    rf"\b(?:in|inside|within|from|(?:points|vectors|embeddings|elements) of) (?:the |an? )?(?:{_BALL})(?: model)?"
    rf"|\b(?:of|with|have|has|having|whose|and) (?:(?:an?|the|Euclidean|L2|2-) ?)*norms? {_BELOW_ONE}"
)
"""What follows vectors of norm below 1."""


def sentence_around(text: str, start: int) -> str:
    """The sentence around a place, without what a colon or brackets divide."""
    begin = max((match.end() for match in _SENTENCE_ENDS.finditer(text, 0, start)), default=0)
    end = _SENTENCE_ENDS.search(text, start)
    return text[begin : len(text) if end is None else end.start()]


def tells_apart(
    names: Sequence[str], code: str, interval: tuple[float, float] = (math.inf, -math.inf), *, cuts: bool = False
) -> bool:
    """Whether code compares one of some names with a number other than to raise an exception.

    Args:
        names: of arguments.
        code: a function's.
        interval: numbers inside it do not count: inputs that are drawn from it lie on both sides of these.
        cuts: whether clamping counts as well.
    """
    low, high = interval
    return any(not low < number < high for name in names for number in _compared(name, code, cuts=cuts))


def _compared(name: str, code: str, *, cuts: bool) -> Iterator[float]:
    """The numbers that code compares an argument with, NaN for one that is unknown."""
    tree = tree_of(code)
    if tree is None:
        return
    checks = [node for node in nodes_of(tree) if isinstance(node, ast.Assert) or _raises(node)]
    skipped = {id(inner) for node in checks for inner in ast.walk(node)}
    for node in nodes_of(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            own = [side for side in sides if _is_about(side, name)]
            others = [number for side in sides if side not in own for number in _numbers(side)]
            if own and any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
                yield from _mirrored(own, others)
        elif cuts and isinstance(node, ast.Call) and _called(node.func) in _CUTS:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            own = [each for each in (*given, node.func) if _mentions(each, name)]
            ends = [each for each in given if each not in own and not _is_none(each)]
            if own:
                yield from _mirrored(own, [n for each in ends for n in (_numbers(each) or [math.nan])])


def _raises(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and any(isinstance(inner, ast.Raise) for inner in node.body)


def _is_about(node: ast.expr, name: str) -> bool:
    """Whether an operand is an argument, its negative, absolute value or the like: `-x`, `abs(x)`, `x[0]`."""
    match node:
        case ast.Name(id=called):
            return called == name
        case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner) | ast.Attribute(value=inner):
            return _is_about(inner, name)
        case ast.Call(func=ast.Attribute(value=inner), args=[]):
            return _is_about(inner, name)
        case ast.Call(args=[inner, *_]):
            return _is_about(inner, name)
    return False


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node))


def _mirrored(own: Sequence[ast.AST], numbers: Sequence[float]) -> Iterator[float]:
    """Some numbers, and their negatives where the absolute value or the negative of an argument is compared."""
    both = any("abs" in ast.dump(each) or isinstance(each, ast.UnaryOp) for each in own)
    yield from numbers
    yield from (-number for number in numbers if both)


def _called(function: ast.expr) -> str:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _numbers(node: ast.expr) -> list[float]:
    """The value of `1`, `-0.5` or `1 - eps`; none where it is unknown."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return [float(value)]
        case ast.Name(id=name) | ast.Attribute(attr=name) if _SMALL.fullmatch(name):
            return [_TINY]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return [-value for value in _numbers(inner)]
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            sign = 1 if isinstance(op, ast.Add) else -1
            return [one + sign * other for one in _numbers(left) for other in _numbers(right)]
    return []


_DESCRIBED = rf"(?={QUOTES}\s*(?:\([A-Z]\w*(?:,\s*\w+)*,?\)|in\s*[(\[]|∈))"
"""A shape or an interval."""


def in_singular(text: str, names: Sequence[str]) -> str:
    """The text with the arguments' names in place of their plurals: `alphas (R, S) in (0, 1)` describes `alpha`.

    Names of one or two letters stay as they are: `as` is not a plural.
    """
    for name in names:
        if len(name) > 2 and not name.endswith("s") and f"{name}s" not in names:
            text = re.sub(rf"(?<![\w.]){re.escape(name)}s(?!\w){_DESCRIBED}", name, text)
    return text
