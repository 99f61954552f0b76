"""Edits of one expression of backward, each of which undoes a common mistake."""

import ast
import builtins
from collections.abc import Iterator

from gradcli.edits.idiom import Idiom, build, name, over_more_axes
from gradcli.edits.render import Change, Tree
from gradcli.edits.scope import Scope
from gradcli.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """Changes that may fix backward; `cost` counts the nodes of syntax that they add, exchange or remove."""

    cost: float
    changes: tuple[Change, ...]


_SWAPS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Mult),
    ast.Mult: (ast.Div, ast.MatMult),
    ast.Div: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.FloorDiv: (ast.Div,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
_ORDERED = (ast.Sub, ast.Div, ast.MatMult, ast.Pow)
_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Eq: (ast.NotEq, ast.GtE, ast.LtE),
    ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
}
_BY_VALUE = 0.6
"""What a number costs more than others where backward has a name for it: more than that name."""
_FAMILIES = (
    ("sum", "mean"),
    ("sin", "cos"),
    ("sinh", "cosh"),
    ("tril", "triu"),
    ("argmax", "argmin"),
    ("amax", "amin"),
    ("maximum", "minimum"),
    ("log", "log2", "log10", "log1p"),
    ("exp", "expm1"),
    ("ge", "gt", "le", "lt", "eq", "ne"),
    ("add", "sub", "set"),
    ("add_", "sub_"),
    ("scatter", "scatter_add"),
    ("scatter_", "scatter_add_"),
    ("index_copy_", "index_add_"),
    ("mul", "div"),
    ("floor", "ceil"),
    ("sqrt", "rsqrt"),
    ("real", "imag"),
    ("mm", "mul"),
    ("tanh", "sigmoid"),
    ("zeros_like", "ones_like", "empty_like", "rand_like"),
    ("zeros", "ones", "empty", "rand"),
    ("new_zeros", "new_ones", "new_empty"),
)


def expressions_of(statements: list[ast.stmt], tree: Tree) -> list[ast.expr]:
    """The expressions that compute a value, without assignment targets, function names and owners of attributes."""
    found: list[ast.expr] = []
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                parent = tree.parent(node)
                if isinstance(parent, ast.Call) and parent.func is node:
                    continue
                found.append(node)
    return found


def swaps(node: ast.expr, scope: Scope, idiom: Idiom) -> Iterator[Candidate]:
    """The node replaced by another one of its kind, or by a part of itself."""
    for cost, new in _swapped(node, scope, idiom):
        yield Candidate(cost, (Change(node, new),))


def _swapped(node: ast.expr, scope: Scope, idiom: Idiom) -> Iterator[tuple[float, ast.AST]]:
    if isinstance(node, ast.Constant):
        yield from ((cost + _BY_VALUE * _has_value(new, scope), new) for cost, new in _constants(node, idiom))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        yield from _unsigned(node, idiom)
    elif isinstance(node, ast.BinOp):
        yield from _operations(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in _COMPARISONS.get(type(node.ops[0]), ()):
            yield 1, ast.Compare(left=node.left, ops=[other()], comparators=node.comparators)
        masks = (a for a in scope.tensors if "bool" in str(getattr(scope.value_of(a), "dtype", "")))
        yield from ((a.length - 0.1, a.node) for a in masks)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT", "H", "real"):
        yield 1, node.value
    elif isinstance(node, ast.Subscript) and not _is_size(node):
        yield from ((1, summed) for summed in _index_summed(node, idiom))
        yield from ((1, inverted) for inverted in _index_inverted(node))
        flags = isinstance(node.value, ast.Attribute) and node.value.attr == "needs_input_grad"
        yield 1.1, build("any(E)", E=node.value) if flags else node.value
    if _is_size(node):
        yield from ((0.1 + atom.length, atom.node) for atom in scope.numbers)
        yield from ((1.2, size) for _, size in size_factors(scope, idiom))
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        yield from _named(node, scope)
    elif _is_number(node, float):  # the whole of `-1`, before its `1`
        own = 0.3 if isinstance(node, ast.Constant) else 0.2
        yield from ((own + atom.length, atom.node) for atom in scope.numbers)


def _named(node: ast.expr, scope: Scope) -> Iterator[tuple[float, ast.AST]]:
    """Other values that backward has, in the place of one; a tensor with an axis more, as another one has."""
    shown = ast.unparse(node)
    if any(atom.text == shown for atom in scope.atoms):
        yield from ((atom.length, atom.node) for atom in scope.atoms if atom.text != shown)
        ranks = {atom.text: len(atom.shape) for atom in scope.atoms if atom.is_tensor}
        if shown in ranks and ranks[shown] + 1 in ranks.values():
            yield 1.6, build("E[..., None]", E=node)


def _has_value(node: ast.AST, scope: Scope) -> bool:
    """Whether a number is the value of one that backward has a name for."""
    return any(scope.value_of(atom) == getattr(node, "value", None) for atom in scope.numbers)


def _unsigned(node: ast.UnaryOp, idiom: Idiom) -> Iterator[tuple[float, ast.AST]]:
    """What has a sign without it; a number with one as another number, such as `-1` as `0`."""
    yield 0.7, node.operand
    if isinstance(node.op, ast.USub) and _is_number(node.operand):
        yield from _constants(ast.Constant(value=ast.literal_eval(node)), idiom)


def _index_summed(node: ast.Subscript, idiom: Idiom) -> Iterator[ast.expr]:
    """A sum over the axes at which an index is a number: `g.sum((0, 2))` for `g[0, :, -1]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    numbers = tuple(axis for axis, part in enumerate(parts) if _is_number(part))
    whole = all(
        isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)
        for part in parts
        if not _is_number(part)
    )
    if numbers and whole:
        yield idiom.summed(node.value, numbers, keep=False)


def _index_inverted(node: ast.Subscript) -> Iterator[ast.expr]:
    """The entries in the order of the inverse permutation: `g[..., order.argsort()]` for `g[..., order]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for place, part in enumerate(parts):
        if isinstance(part, ast.Name | ast.Attribute):
            turned = [*parts[:place], build("E.argsort()", E=part), *parts[place + 1 :]]
            index = turned[0] if len(turned) == 1 else ast.Tuple(elts=turned, ctx=ast.Load())
            yield ast.Subscript(value=node.value, slice=index, ctx=ast.Load())


def _is_number(node: ast.expr, *kinds: type) -> bool:
    """Whether an expression is an integer literal, or one of the other `kinds`, with or without a sign."""
    operand = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(operand, ast.Constant) and type(operand.value) in (int, *kinds)


def _is_size(node: ast.expr) -> bool:
    """Whether an expression is the size of an axis, or the number of entries."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return called in ("size", "numel", "len")
    return isinstance(node, ast.Attribute) and node.attr == "size"


def _constants(node: ast.Constant, idiom: Idiom) -> Iterator[tuple[float, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield 1, ast.Constant(value=not value)
    elif isinstance(value, int | float):
        others = [-1 if value == 0 else value + 1, value - 1, 2 * value, -value, 0, 1, -1, 2, value / 2, 3]
        if value:
            others.append(1 / value)
        seen = {value}
        for other in others:
            tidy = int(other) if other == int(other) and isinstance(value, int) else other
            if tidy not in seen:
                seen.add(tidy)
                yield 1 if tidy >= 0 or idiom.from_last else 1.3, number(tidy)


def number(value: float) -> ast.expr:
    """A number as it is written."""
    return ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=-value)) if value < 0 else ast.Constant(value=value)


def _operations(node: ast.BinOp) -> Iterator[tuple[float, ast.AST]]:
    for place, other in enumerate(_SWAPS.get(type(node.op), ())):
        yield 1 + 0.3 * place, ast.BinOp(left=node.left, op=other(), right=node.right)
    yield 0.8, node.left
    yield 0.8, node.right
    if isinstance(node.op, ast.Sub):
        yield 0.9, ast.UnaryOp(op=ast.USub(), operand=node.right)
    if isinstance(node.op, _ORDERED):
        yield 0.85 + 0.1 * _length(node), ast.BinOp(left=node.right, op=node.op, right=node.left)
    if isinstance(node.op, ast.Pow):
        for op in (ast.Sub, ast.Add):
            by_one = ast.BinOp(left=node.right, op=op(), right=ast.Constant(value=1))
            yield 1.5, ast.BinOp(left=node.left, op=ast.Pow(), right=by_one)


def _length(node: ast.BinOp) -> int:
    """How many names, numbers and operations the operands consist of."""
    return sum(isinstance(n, ast.expr) for n in ast.walk(node)) - 1


def _functions(node: ast.Call, called: str) -> Iterator[tuple[float, ast.AST]]:
    """Another function of the same family, a triangle from another diagonal, and a sum over one more axis."""
    if called in ("sum", "mean"):
        yield from ((1.1, wider) for wider in over_more_axes(node))
    for family in _FAMILIES:
        for other in family if called in family else ():
            if other != called:
                func = (
                    ast.Attribute(value=node.func.value, attr=other, ctx=ast.Load())
                    if isinstance(node.func, ast.Attribute)
                    else ast.Name(id=other, ctx=ast.Load())
                )
                yield 1, ast.Call(func=func, args=node.args, keywords=node.keywords)
    if called in ("tril", "triu") and not node.keywords and not any(map(_is_number, node.args)) and len(node.args) < 2:
        for diagonal in (-1, 1):
            yield 1, ast.Call(func=node.func, args=[*node.args, number(diagonal)], keywords=[])


def _calls(node: ast.Call) -> Iterator[tuple[float, ast.AST]]:
    """Another function, its argument alone, operands exchanged, and axes kept or given."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    yield from _functions(node, called)
    if isinstance(node.func, ast.Attribute):
        turns = called in ("transpose", "swapaxes", "swapdims")
        yield 0.6 if turns else 1 + 0.1 * (len(node.args) + len(node.keywords)), node.func.value
        if len(node.args) == 1:
            func = ast.Attribute(value=node.args[0], attr=node.func.attr, ctx=ast.Load())
            yield 0.9, ast.Call(func=func, args=[node.func.value], keywords=node.keywords)
    for argument in node.args:
        yield 1, argument
    if len(node.args) >= 2:
        for i in range(len(node.args) - 1):
            args = [*node.args[:i], node.args[i + 1], node.args[i], *node.args[i + 2 :]]
            yield 1.5, ast.Call(func=node.func, args=args, keywords=node.keywords)
    for i, keyword in enumerate(node.keywords):
        yield 1, ast.Call(func=node.func, args=node.args, keywords=node.keywords[:i] + node.keywords[i + 1 :])
        del keyword
    if called in ("sum", "mean", "amax", "amin", "max", "min", "prod") and (node.args or node.keywords):
        for key in ("keepdim", "keepdims"):
            if all(k.arg not in ("keepdim", "keepdims") for k in node.keywords):
                keywords = [*node.keywords, ast.keyword(arg=key, value=ast.Constant(value=True))]
                yield 1, ast.Call(func=node.func, args=node.args, keywords=keywords)


def wraps(node: ast.expr, idiom: Idiom, rank: int, *, is_complex: bool) -> Iterator[Candidate]:
    """A sign, a transposition, a conjugation or a reduction put round the node."""
    yield Candidate(1.1, (Change(node, ast.UnaryOp(op=ast.USub(), operand=node)),))
    if is_complex:
        yield Candidate(1 if isinstance(node, ast.Name) else 1.05, (Change(node, idiom.conjugate(node)),))
    for turned in idiom.transposes(node, rank):
        yield Candidate(1.5, (Change(node, turned),))
    for axes in [(idiom.axis(axis, rank),) for axis in range(rank)]:
        yield Candidate(2, (Change(node, idiom.summed(node, axes, keep=False)),))
        yield Candidate(2.5, (Change(node, idiom.summed(node, axes, keep=True)),))
    yield Candidate(2, (Change(node, idiom.summed(node, None, keep=False)),))
    if rank > 3 and (turned_round := idiom.flipped(node, idiom.axis(-2, rank), idiom.axis(-1, rank))) is not None:
        yield Candidate(2.3, (Change(node, turned_round),))
    for axis in (idiom.axis(axis, rank) for axis in range(min(rank, 3))):
        if (flipped := idiom.flipped(node, axis)) is not None:
            yield Candidate(2, (Change(node, flipped),))
        for by in (1, -1):
            if (rolled := idiom.rolled(node, by, axis)) is not None:
                yield Candidate(2.5, (Change(node, rolled),))


_CUMULATIVE = ("cumsum", "cumprod", "logcumsumexp")


def reversed_runs(node: ast.expr, idiom: Idiom) -> Iterator[Candidate]:
    """A running sum from the other end, or a function of the user's, such as a filter, that runs along an axis."""
    if not isinstance(node, ast.Call):
        return
    called, given = node.func, node.args
    is_own = isinstance(called, ast.Name) and not hasattr(builtins, called.id) and bool(given)
    if is_own and isinstance(given[0], ast.Starred | ast.Constant):
        return
    if not is_own and not (isinstance(called, ast.Attribute) and called.attr in _CUMULATIVE):
        return
    method = called if isinstance(called, ast.Attribute) and len(given) + len(node.keywords) <= 1 else None
    for axis in (-1, 0, 1, 2) if idiom.from_last else (0, 1, 2, -1):
        inner = idiom.flipped(given[0] if method is None else method.value, axis)
        if inner is None:
            return
        if method is not None:
            func = ast.Attribute(value=inner, attr=method.attr, ctx=ast.Load())
            call = ast.Call(func=func, args=node.args, keywords=node.keywords)
        else:
            call = ast.Call(func=node.func, args=[inner, *node.args[1:]], keywords=node.keywords)
        whole = idiom.flipped(call, axis)
        if whole is not None:
            yield Candidate(3, (Change(node, whole),))


def centred(node: ast.expr, scope: Scope, idiom: Idiom, rank: int) -> Iterator[Candidate]:
    """The node minus its mean or another sum of it over an axis: terms of backward of normalisations and softmax."""
    for axis in [idiom.axis(-n, rank) for n in range(1, rank + 1)]:
        mean = idiom.summed(node, (axis,), keep=True, mean=True)
        yield Candidate(4, (Change(node, ast.BinOp(left=node, op=ast.Sub(), right=mean)),))
        for atom in scope.tensors:
            a = atom.node
            for cost, is_mean in ((5.0, False), (5.1, True)):
                inner = idiom.summed(build("E * A", E=node, A=a), (axis,), keep=True, mean=is_mean)
                yield Candidate(cost, (Change(node, build("E - S", E=node, S=inner)),))
                yield Candidate(cost + 1, (Change(node, build("E - A * S", E=node, A=a, S=inner)),))
            total = idiom.summed(node, (axis,), keep=True)
            yield Candidate(5, (Change(node, build("E - A * S", E=node, A=a, S=total)),))


def of_function(node: ast.expr, idiom: Idiom) -> Iterator[Candidate]:
    """A common function of the node in its place."""
    for called in ("exp", "log", "sqrt", "sin", "cos", "tanh", "abs", "sign"):
        made = idiom.function(called, node)
        if made is not None:
            yield Candidate(2, (Change(node, made),))
    for pattern in ("E ** 2", "1 / E"):
        yield Candidate(2, (Change(node, build(pattern, E=node)),))


def scaled(node: ast.expr, factors: list[tuple[float, ast.expr]]) -> Iterator[Candidate]:
    """The node times a factor, or divided by it."""
    for cost, factor in factors:
        yield Candidate(cost + 1, (Change(node, ast.BinOp(left=node, op=ast.Mult(), right=factor)),))
        if cost <= 2:
            yield Candidate(cost + 1.25, (Change(node, ast.BinOp(left=node, op=ast.Div(), right=factor)),))


def shifted(node: ast.expr, terms: list[tuple[float, ast.expr]]) -> Iterator[Candidate]:
    """The node plus a term, minus a term, or a term minus the node."""
    for cost, term in terms:
        yield Candidate(cost + 1, (Change(node, ast.BinOp(left=node, op=ast.Add(), right=term)),))
        yield Candidate(cost + 1, (Change(node, ast.BinOp(left=node, op=ast.Sub(), right=term)),))
        yield Candidate(cost + 1.25, (Change(node, ast.BinOp(left=term, op=ast.Sub(), right=node)),))


def simple_factors(scope: Scope) -> list[tuple[float, ast.expr]]:
    """Numbers, names and sizes that a product may lack."""
    numbers: list[tuple[float, ast.expr]] = [(1, name(text)) for text in ("2", "0.5", "3")]
    names = [(atom.length, atom.node) for atom in (*scope.tensors, *scope.numbers, *scope.cotangents)]
    return [*names, *numbers]


def derived_factors(scope: Scope, idiom: Idiom) -> list[tuple[float, ast.expr]]:
    """Derivatives of common functions at values that backward has: factors that a chain rule may lack."""
    found: list[tuple[float, ast.expr]] = []
    for atom in scope.tensors:
        a = atom.node
        found += [
            (3, build("A ** 2", A=a)),
            (3, build("1 - A", A=a)),
            (5, build("1 - A ** 2", A=a)),
            (5, build("A * (1 - A)", A=a)),
            (3, build("A > 0", A=a)),
        ]
        for called in ("exp", "cos", "sin", "sqrt", "log", "tanh", "sign", "sigmoid"):
            made = idiom.function(called, a)
            if made is not None and not (called == "sigmoid" and not idiom.by_methods):
                found.append((2, made))
                if called in ("tanh",):
                    found.append((6, build("1 - F ** 2", F=made)))
                if called in ("sigmoid",):
                    found.append((7, build("F * (1 - F)", F=made)))
    return found


def size_factors(scope: Scope, idiom: Idiom) -> list[tuple[float, ast.expr]]:
    """Sizes of axes and numbers of entries."""
    found: list[tuple[float, ast.expr]] = []
    for atom in (*scope.tensors, *scope.cotangents):
        whole = "A.numel()" if idiom.by_methods else "A.size"
        if atom.shape:
            found.append((2, build(whole, A=atom.node)))
            if idiom.calls_len:
                found.append((2.05, build("len(A)", A=atom.node)))
            axes = [idiom.axis(axis, len(atom.shape)) for axis in range(len(atom.shape))]
            found += [(2.1, build(f"A.shape[{axis}]", A=atom.node)) for axis in axes]
    return found
