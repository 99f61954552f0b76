"""Edits of whole statements of backward: what it returns and where, what it writes into, which branch it takes."""

import ast
import itertools
from collections.abc import Iterator

from gradcli.edits.expressions import Candidate
from gradcli.edits.idiom import Idiom, build
from gradcli.edits.render import Change
from gradcli.edits.scope import Scope

_MOST_RETURNED = 6
_MOST_WRITTEN = 4
"""Numbers of a statement of which each two are exchanged."""
_NONE = ast.Constant(value=None)


def returned_values(definition: ast.FunctionDef | ast.Lambda) -> list[tuple[ast.AST, ast.expr]]:
    """Every value that a definition returns, with the node that holds it."""
    if isinstance(definition, ast.Lambda):
        return [(definition, definition.body)]
    return [(n, n.value) for n in _own(definition) if isinstance(n, ast.Return) and n.value is not None]


def _own(definition: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    waiting: list[ast.AST] = list(definition.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            waiting += list(ast.iter_child_nodes(node))


def rearranged(definition: ast.FunctionDef | ast.Lambda, parameters: int, scope: Scope) -> Iterator[Candidate]:
    """The values returned in another order, one put in the place of None, one more or less of them."""
    for _, value in returned_values(definition):
        elements = list(value.elts) if isinstance(value, ast.Tuple) else [value]
        if any(isinstance(e, ast.Starred) for e in elements):
            continue
        yield from _exchanged(value, elements)
        yield from _counted(value, elements, parameters, scope)


def _exchanged(value: ast.expr, elements: list[ast.expr]) -> Iterator[Candidate]:
    for i, j in itertools.combinations(range(len(elements)), 2):
        changes = (Change(elements[i], elements[j]), Change(elements[j], elements[i]))
        yield Candidate(1.5, changes)
        yield Candidate(1, (Change(elements[j], elements[i]),))
        yield Candidate(1, (Change(elements[i], elements[j]),))
    if 3 <= len(elements) <= 4:
        for order in itertools.permutations(range(len(elements))):
            if sum(a != b for a, b in enumerate(order)) > 2:
                yield Candidate(2.5, tuple(Change(elements[a], elements[b]) for a, b in enumerate(order) if a != b))
    for i, element in enumerate(elements):
        if not _is_none(element):
            yield (
                Candidate(1, (Change(element, _NONE),)) if len(elements) > 1 else Candidate(9, (Change(value, _NONE),))
            )
        del i


def _counted(value: ast.expr, elements: list[ast.expr], parameters: int, scope: Scope) -> Iterator[Candidate]:
    lacking = parameters - len(elements)
    if 0 < lacking <= _MOST_RETURNED:
        for places in itertools.combinations(range(parameters), lacking):
            left = iter(elements)
            made = [_NONE if i in places else next(left) for i in range(parameters)]
            yield Candidate(
                1 + 0.01 * (parameters - min(places)), (Change(value, ast.Tuple(elts=made, ctx=ast.Load())),)
            )
        for atom in scope.atoms if lacking == 1 else ():
            for place in range(parameters):
                made = [*elements[:place], atom.node, *elements[place:]]
                if atom.is_tensor:
                    yield Candidate(1.5, (Change(value, ast.Tuple(elts=made, ctx=ast.Load())),))
    elif lacking < 0:
        for kept in itertools.combinations(elements, parameters):
            new = ast.Tuple(elts=list(kept), ctx=ast.Load()) if parameters > 1 else kept[0]
            yield Candidate(0.9, (Change(value, new),))


def filled(definition: ast.FunctionDef | ast.Lambda, scope: Scope) -> Iterator[Candidate]:
    """Something that backward has a name for, returned in the place of None."""
    for _, value in returned_values(definition):
        for element in value.elts if isinstance(value, ast.Tuple) else [value]:
            if _is_none(element):
                yield from (Candidate(1, (Change(element, a.node),)) for a in scope.atoms if a.is_tensor)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def assigned(definition: ast.FunctionDef | ast.Lambda) -> Iterator[Candidate]:
    """An assignment to another name that backward has: a gradient put into the wrong variable."""
    names = sorted({n.id for n in ast.walk(definition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            for other in names:
                if other != node.id:
                    yield Candidate(1, (Change(node, ast.Name(id=other, ctx=ast.Store())),))


def unpacked(definition: ast.FunctionDef | ast.Lambda) -> Iterator[Candidate]:
    """Saved values unpacked in another order."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = node.targets[0].elts
            for i, j in itertools.combinations(range(len(names)), 2):
                if isinstance(names[i], ast.Name) and isinstance(names[j], ast.Name):
                    yield Candidate(2, (Change(names[i], names[j]), Change(names[j], names[i])))


def sliced(definition: ast.FunctionDef | ast.Lambda) -> Iterator[Candidate]:
    """A range of an index that begins or ends one entry earlier or later: `1:` for `:-1`."""
    for node in ast.walk(definition):
        if isinstance(node, ast.Slice) and node.step is None:
            bounds = (_whole(node.lower, 0), _whole(node.upper, 0))
            if bounds[0] is None or bounds[1] is None:
                continue
            for lower, upper in ((1, 0), (0, -1), (0, 0), (1, -1), (2, 0), (0, -2)):
                if (lower, upper) != bounds:
                    yield Candidate(1.2, (Change(node, ast.Slice(lower=_bound(lower), upper=_bound(upper))),))


def _whole(node: ast.expr | None, nothing: int) -> int | None:
    """The number that a bound is; None where it is something else."""
    if node is None:
        return nothing
    sign = -1 if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else 1
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    value = inner.value if isinstance(inner, ast.Constant) else None
    return sign * value if isinstance(value, int) and not isinstance(value, bool) else None


def _bound(number: int) -> ast.expr | None:
    if number == 0:
        return None
    value = ast.Constant(value=abs(number))
    return ast.UnaryOp(op=ast.USub(), operand=value) if number < 0 else value


def summed_up(definition: ast.FunctionDef | ast.Lambda) -> Iterator[Candidate]:
    """`=` replaced by `+=` or `-=`, and `+=` and `-=` exchanged."""
    for node in ast.walk(definition):
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield Candidate(1, (Change(node, ast.AugAssign(target=node.target, op=other, value=node.value)),))
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name | ast.Subscript):
            for operation in (ast.Add(), ast.Sub()):
                yield Candidate(1.5, (Change(node, _combined(node.targets[0], operation, node.value)),))


def _combined(target: ast.Name | ast.Subscript, operation: ast.operator, value: ast.expr) -> ast.stmt:
    """`x[i] += value`, but `x = x + value`: what x holds may be needed, in a list or to differentiate backward."""
    if isinstance(target, ast.Subscript):
        return ast.AugAssign(target=target, op=operation, value=value)
    left = ast.Name(id=target.id, ctx=ast.Load())
    return ast.Assign(targets=[target], value=ast.BinOp(left=left, op=operation, right=value), lineno=1)


def of_statements(definition: ast.FunctionDef | ast.Lambda, scope: Scope, idiom: Idiom) -> Iterator[Candidate]:
    """A statement left out; two numbers or all uses of a matrix in one statement, changed at once."""
    yield from dropped(definition)
    yield from with_numbers(definition, scope)
    yield from with_transposes(definition, scope, idiom)


def dropped(definition: ast.FunctionDef | ast.Lambda) -> Iterator[Candidate]:
    """A statement left out that changes what a name or a tensor held before: `r[k] = 1.01 * r[k]`, `g.mul_(2)`."""
    for node in _own(definition) if isinstance(definition, ast.FunctionDef) else ():
        inner = node  # of a loop or a branch with one statement nothing is left without that
        while isinstance(inner, ast.For | ast.If) and len(inner.body) == 1 and not inner.orelse:
            inner = inner.body[0]
        if isinstance(inner, ast.AugAssign) or (isinstance(inner, ast.Assign) and _changes(inner)) or _writes(inner):
            yield Candidate(0.9, (Change(node, ()),))


def _changes(node: ast.Assign) -> bool:
    """Whether an assignment writes entries of a tensor, or computes a name from its own value."""
    read = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
    return all(isinstance(t, ast.Subscript) or (isinstance(t, ast.Name) and t.id in read) for t in node.targets)


def _writes(node: ast.AST) -> bool:
    """Whether a statement only calls a method that writes into its tensor."""
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr.endswith("_") and not called.attr.endswith("__")


def with_transposes(definition: ast.FunctionDef | ast.Lambda, scope: Scope, idiom: Idiom) -> Iterator[Candidate]:
    """A matrix that a statement uses more than once, transposed everywhere in it: `B.T @ g @ B.T`."""
    ranks = {atom.text: len(atom.shape) for atom in scope.tensors if len(atom.shape) > 1 and atom.text.isidentifier()}
    for statement in _own(definition) if ranks and not isinstance(definition, ast.Lambda) else ():
        if not isinstance(statement, ast.Assign | ast.Return) or statement.value is None:
            continue
        owners = [n.value for n in ast.walk(statement.value) if isinstance(n, ast.Attribute)]
        names = [n for n in ast.walk(statement.value) if isinstance(n, ast.Name) and n not in owners]
        for name, rank in ranks.items():
            uses = [n for n in names if n.id == name]
            if len(uses) > 1:
                yield Candidate(1.9, tuple(Change(n, idiom.transposes(n, rank)[0]) for n in uses))
                if idiom.by_methods:
                    yield Candidate(2, tuple(Change(n, build("E.mT", E=n)) for n in uses))


def with_numbers(definition: ast.FunctionDef | ast.Lambda, scope: Scope) -> Iterator[Candidate]:
    """Two numbers written in one statement as values that backward has: `clamp(-c, c)` for `clamp(-1, 1)`.

    Equal ones as the same value, opposite ones as a value and its negative, and any two as two values.
    """
    if isinstance(definition, ast.Lambda) or not scope.numbers:
        return
    for statement in _own(definition):
        written = _literals(statement) if isinstance(statement, ast.stmt) else []
        for (one, first), (two, second) in itertools.combinations(written, 2) if len(written) <= _MOST_WRITTEN else ():
            for a, b in itertools.product(scope.numbers, scope.numbers):
                if a is not b:
                    yield Candidate(2.5, (Change(one, a.node), Change(two, b.node)))
                elif first == second:
                    yield Candidate(1.8, (Change(one, a.node), Change(two, b.node)))
                elif first == -second:
                    new = [ast.UnaryOp(op=ast.USub(), operand=a.node) if n < 0 else a.node for n in (first, second)]
                    yield Candidate(1.9, (Change(one, new[0]), Change(two, new[1])))


def _literals(statement: ast.stmt) -> list[tuple[ast.expr, float]]:
    """The numbers written in a statement, without those of statements in it, each with its sign; not as an index."""
    found: list[tuple[ast.expr, float]] = []
    waiting: list[ast.AST] = list(ast.iter_child_nodes(statement))
    while waiting:
        node = waiting.pop(0)
        inner = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float) and isinstance(node, ast.expr):
            size = float(inner.value)  # type: ignore[arg-type]  # a number
            found.append((node, size if inner is node else -size))
        elif isinstance(node, ast.Subscript):
            waiting.append(node.value)
        elif not isinstance(node, ast.stmt):
            waiting += list(ast.iter_child_nodes(node))
    return found


def out_of_place(definition: ast.FunctionDef | ast.Lambda, idiom: Idiom) -> Iterator[Candidate]:
    """Writes into tensors that are not backward's own, made on a copy or replaced by out-of-place operations."""
    if isinstance(definition, ast.Lambda):
        return
    for statement in _own(definition):
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            yield Candidate(2, (Change(statement, _combined(statement.target, statement.op, statement.value)),))
        if isinstance(statement, ast.Assign | ast.AugAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
                yield Candidate(3, (Change(statement, (_copy(target.value.id, idiom), statement)),))
                yield from _masked(definition, statement, target.value.id, idiom)
        if isinstance(statement, ast.Expr | ast.Assign | ast.Return):
            yield from _methods(statement, idiom)


def _copy(name: str, idiom: Idiom) -> ast.stmt:
    copied = idiom.copied(ast.Name(id=name, ctx=ast.Load()))
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=copied, lineno=1)


def _masked(definition: ast.FunctionDef, statement: ast.stmt, name: str, idiom: Idiom) -> Iterator[Candidate]:
    """The copy taken where the name was bound to the tensor that is written into: `y = g` becomes `y = g.clone()`."""
    for other in _own(definition):
        if isinstance(other, ast.Assign) and other.lineno < statement.lineno:
            first = other.targets[0]
            if isinstance(first, ast.Name) and first.id == name:
                yield Candidate(2, (Change(other.value, idiom.copied(other.value)),))


def _methods(statement: ast.Expr | ast.Assign | ast.Return, idiom: Idiom) -> Iterator[Candidate]:
    """`x.mul_(y)` as `x.mul(y)`, its result bound to the name where nobody took it."""
    for node in ast.walk(statement):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        called = node.func.attr
        if called.endswith("_") and not called.endswith("__"):
            plain = ast.Attribute(value=node.func.value, attr=called.rstrip("_"), ctx=ast.Load())
            call = ast.Call(func=plain, args=node.args, keywords=node.keywords)
            if node is getattr(statement, "value", None) and isinstance(statement, ast.Expr):
                owner = node.func.value
                if isinstance(owner, ast.Name):
                    target = ast.Name(id=owner.id, ctx=ast.Store())
                    yield Candidate(2, (Change(statement, ast.Assign(targets=[target], value=call, lineno=1)),))
            else:
                yield Candidate(1, (Change(node, call),))
            yield Candidate(2.5, (Change(node.func.value, idiom.copied(node.func.value)),))


def accumulated(definition: ast.FunctionDef | ast.Lambda, idiom: Idiom) -> Iterator[Candidate]:
    """Entries added where they were assigned, by one statement or by all: an index may name one more than once."""
    if isinstance(definition, ast.Lambda):
        return
    found = [change for node in _own(definition) if (change := _accumulated(node, idiom)) is not None]
    for change in found:
        yield Candidate(3, (change,))
    repeated = tuple(change for change in found if isinstance(change.old, ast.AugAssign))
    if len(repeated) > 1:
        yield Candidate(4, repeated)


def _accumulated(node: ast.AST, idiom: Idiom) -> Change | None:
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    is_sum = isinstance(node, ast.Assign) or (
        isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub)
    )
    if not isinstance(node, ast.Assign | ast.AugAssign) or not is_sum or not isinstance(target, ast.Subscript):
        return None
    taken = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Sub)
    value = build("-V", V=node.value) if taken else node.value
    parts = {"A": target.value, "I": target.slice, "V": value}
    if idiom.by_methods:
        return Change(node, ast.Expr(value=build("A.index_put_((I,), V, accumulate=True)", **parts)))
    if idiom.namespace is None:
        return None
    return Change(node, ast.Expr(value=build(f"{idiom.namespace}.add.at(A, I, V)", **parts)))


def multiplied_by_cotangent(value: ast.expr, scope: Scope) -> Iterator[Candidate]:
    """A value that ignores grad_output, times it."""
    for atom in scope.cotangents:
        yield Candidate(2, (Change(value, build("G * E", G=atom.node, E=value)),))
