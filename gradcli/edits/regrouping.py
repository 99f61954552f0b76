"""Short edits of one expression: other parentheses or order, the whole grad_output, an inverse, other copies."""

import ast
import itertools
from collections.abc import Iterator
from typing import TypeGuard

from gradcli.edits.expressions import Candidate
from gradcli.edits.idiom import Idiom, build
from gradcli.edits.products import untransposed
from gradcli.edits.render import Change
from gradcli.edits.scope import Scope

_NAMESPACES = ("torch", "np", "numpy", "jnp")
_MOST_WAYS = 8
"""Of the ways to turn the signs in a list so many are tried."""


def regrouped(node: ast.expr) -> Iterator[Candidate]:
    """A sum and a product in other parentheses: `a * b - c` and `a * (b - c)`, `a - b - c` and `a - (b - c)`."""
    if not isinstance(node, ast.BinOp):
        return
    left, right, op = node.left, node.right, node.op
    made: list[ast.expr] = []
    if isinstance(op, ast.Add | ast.Sub):
        if _is(left, ast.Mult):
            made.append(_times(left.left, ast.BinOp(left=left.right, op=op, right=right)))
        if _is(right, ast.Mult):
            made.append(_times(ast.BinOp(left=left, op=op, right=right.left), right.right))
        if _is(left, ast.Sub):
            made.append(ast.BinOp(left=left.left, op=ast.Sub(), right=ast.BinOp(left=left.right, op=op, right=right)))
    if isinstance(op, ast.Mult):
        if _is(right, ast.Add, ast.Sub):
            made.append(ast.BinOp(left=_times(left, right.left), op=right.op, right=right.right))
        if _is(left, ast.Add, ast.Sub):
            made.append(ast.BinOp(left=left.left, op=left.op, right=_times(left.right, right)))
    for new in made:
        yield Candidate(1.2, (Change(node, new),))


def with_whole_cotangent(node: ast.expr, scope: Scope) -> Iterator[Candidate]:
    """grad_output with an axis for broadcasting, in the place of one entry of it, or of a factor of zero."""
    for atom in scope.cotangents:
        whole = [build(f"G[{index}]", G=atom.node) for index in (":, None", "..., None")]
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == atom.text:
            yield from (Candidate(1.5, (Change(node, new),)) for new in whole)
        if _is(node, ast.Mult) and isinstance(node.right, ast.Constant) and node.right.value == 0:
            yield from (Candidate(2, (Change(node.right, new),)) for new in (atom.node, *whole))


def of_other_methods(node: ast.expr) -> Iterator[Candidate]:
    """`reshape` for `view`, which some strides do not allow, and `index_put` that adds what has the same index."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return
    if node.func.attr == "view":
        func = ast.Attribute(value=node.func.value, attr="reshape", ctx=ast.Load())
        yield Candidate(1, (Change(node, ast.Call(func=func, args=node.args, keywords=node.keywords)),))
    if node.func.attr in ("index_put", "index_put_") and not node.keywords and len(node.args) == 2:
        adding = [ast.keyword(arg="accumulate", value=ast.Constant(value=True))]
        yield Candidate(1.5, (Change(node, ast.Call(func=node.func, args=node.args, keywords=adding)),))


def as_elsewhere(node: ast.expr, above: ast.AST | None, definition: ast.AST) -> Iterator[Candidate]:
    """An operand with the operation that it undergoes elsewhere in a function: `var + eps` or `var.abs()` for `var`.

    `above` is the node that it is an operand of; what is saved as it is may be meant.
    """
    if not isinstance(node, ast.Name | ast.Attribute) or not (
        isinstance(above, ast.Compare | ast.UnaryOp) or node in _operands(above)
    ):
        return
    own = ast.unparse(node)
    made = {}
    for longer in ast.walk(definition):
        operands = _operands(longer)
        if isinstance(longer, ast.expr) and node not in operands and own in map(ast.unparse, operands):
            made[ast.unparse(longer)] = longer
    yield from (Candidate(1.4, (Change(node, new),)) for new in made.values())


def _operands(node: ast.AST | None) -> list[ast.expr]:
    """The operands of an operation, or the tensor and the arguments of a call that computes something."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.func.attr.startswith("save_"):
        return [node.func.value, *node.args]
    return []


def _is(node: ast.expr, *operations: type[ast.operator]) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, operations)


def _times(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left=left, op=ast.Mult(), right=right)


def with_cotangents_exchanged(node: ast.expr, scope: Scope) -> Iterator[Candidate]:
    """Two gradients of outputs that an expression uses, each in the place of the other."""
    uses = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    given = [atom.node for atom in scope.cotangents if isinstance(atom.node, ast.Name)]
    for one, other in itertools.combinations(given, 2):
        first, second = ([n for n in uses if n.id == each.id] for each in (one, other))
        if first and second:
            changes = [*(Change(n, other) for n in first), *(Change(n, one) for n in second)]
            yield Candidate(len(changes), tuple(changes))


def reordered(node: ast.expr) -> Iterator[Candidate]:
    """A tuple with two neighbours exchanged: `F.pad(x, (0, k))` for `F.pad(x, (k, 0))`, or an order of axes."""
    elements = node.elts if isinstance(node, ast.Tuple) else []
    for i, (first, second) in enumerate(itertools.pairwise(elements)):
        if ast.dump(first) != ast.dump(second):
            others = [*elements[:i], second, first, *elements[i + 2 :]]
            yield Candidate(1.5, (Change(node, ast.Tuple(elts=others, ctx=ast.Load())),))


def with_signs(node: ast.expr) -> Iterator[Candidate]:
    """A list, such as a row of a matrix, with the sign of one entry turned."""
    entries = node.elts if isinstance(node, ast.List) else []
    for i, entry in enumerate(entries):
        if not isinstance(entry, ast.List | ast.Starred):
            others = [*entries[:i], ast.UnaryOp(op=ast.USub(), operand=entry), *entries[i + 1 :]]
            yield Candidate(1.1, (Change(node, ast.List(elts=others, ctx=ast.Load())),))


def with_opposite_signs(node: ast.expr) -> Iterator[Candidate]:
    """A list, such as coordinates, with + for - and - for + in all its sums, as in a rotation the other way.

    Of a sum either term may be the one that is taken off: the inverse of `[c*x - s*y, s*x + c*y]` has `c*y - s*x`.
    """
    if isinstance(node, ast.List | ast.Tuple) and isinstance(node.ctx, ast.Load):
        sums = [n for n in node.elts if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add | ast.Sub)]
        if len(sums) > 1:
            ways = itertools.product(*(_of_opposite_sign(n) for n in sums))
            for turned in itertools.islice(ways, _MOST_WAYS):
                made = dict(zip(sums, turned, strict=True))
                elts = [made.get(n, n) if isinstance(n, ast.BinOp) else n for n in node.elts]
                yield Candidate(1.1 * len(sums), (Change(node, type(node)(elts=elts, ctx=ast.Load())),))


def _of_opposite_sign(node: ast.BinOp) -> list[ast.BinOp]:
    if isinstance(node.op, ast.Sub):
        return [ast.BinOp(left=node.left, op=ast.Add(), right=node.right)]
    pairs = ((node.left, node.right), (node.right, node.left))
    return [ast.BinOp(left=one, op=ast.Sub(), right=other) for one, other in pairs]


def inverted(node: ast.expr) -> Iterator[Candidate]:
    """The entries that a mask leaves out."""
    if isinstance(node, ast.Name) or _is(node, ast.BitAnd, ast.BitOr, ast.BitXor):
        yield Candidate(1, (Change(node, ast.UnaryOp(op=ast.Invert(), operand=node)),))


def solved(node: ast.expr, idiom: Idiom) -> Iterator[Candidate]:
    """A matrix inverted, or a system of equations solved for a product."""
    if isinstance(node, ast.Name) and (inverse := idiom.inverse(node)) is not None:
        yield Candidate(2, (Change(node, inverse),))
    if _is(node, ast.MatMult) and (solution := idiom.solved(node.left, node.right)) is not None:
        yield Candidate(2, (Change(node, solution),))


def interleaved(node: ast.expr) -> Iterator[Candidate]:
    """Each entry repeated in the place of the whole: `g.repeat_interleave(n, 1)` for `g.repeat(1, n)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "repeat":
        return
    more = [(i, a) for i, a in enumerate(node.args) if not isinstance(a, ast.Constant) or a.value != 1]
    if len(more) == 1 and not node.keywords:
        (axis, times), whole = more[0], node.func.value
        yield Candidate(2, (Change(node, build(f"E.repeat_interleave(N, {axis})", E=whole, N=times)),))


def deconvolved(node: ast.expr) -> Iterator[Candidate]:
    """A convolution transposed: `F.conv_transpose2d(g, w)` for `F.conv2d(g, w.transpose(0, 1))`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or len(node.args) < 2:
        return
    if node.func.attr in ("conv1d", "conv2d", "conv3d"):
        func = ast.Attribute(value=node.func.value, attr=f"conv_transpose{node.func.attr[-2:]}", ctx=ast.Load())
        args = [node.args[0], untransposed(node.args[1]) or node.args[1], *node.args[2:]]
        yield Candidate(1.5, (Change(node, ast.Call(func=func, args=args, keywords=node.keywords)),))


def exclusive(node: ast.expr) -> Iterator[Candidate]:
    """A cumulative sum without the entry itself, as that over what lies behind it: `x.cumsum(0) - x`."""
    inner = _unflipped(node)
    summed = _argument(inner, "cumsum")
    term = summed if summed is None or inner is node else _unflipped(summed)
    if term is not None and (inner is node or term is not summed):
        yield Candidate(0.75, (Change(node, ast.BinOp(left=node, op=ast.Sub(), right=term)),))


def _unflipped(node: ast.expr) -> ast.expr:
    """What is turned round in an expression; any other as it is."""
    if isinstance(node, ast.Subscript) and any(
        isinstance(part, ast.Slice) and part.step is not None and ast.unparse(part.step) == "-1"
        for part in (node.slice, *getattr(node.slice, "elts", ()))
    ):
        return node.value
    return _argument(node, "flip") or node


def _argument(node: ast.expr, name: str) -> ast.expr | None:
    """What a function or method of this name is called for, `x` in `x.flip(0)` and in `torch.flip(x, (0,))`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != name:
        return None
    is_function = isinstance(node.func.value, ast.Name) and node.func.value.id in _NAMESPACES
    return node.args[0] if is_function and node.args else None if is_function else node.func.value
