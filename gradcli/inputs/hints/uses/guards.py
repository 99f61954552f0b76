"""Numbers that only keep a quotient of backward finite, or end a loop: a gradient is right where they are tiny.

What forward gives does not depend on them, but for rounding. So the gradient of `x / (x * x + reg)` in the place of
`1 / x` is that of forward in the limit alone, and an iteration has an exact gradient only where it has converged.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType
from typing import Any, final

from gradcli.inputs.hints.conjugates import own_function
from gradcli.sources import bindings, nodes_of, source_of, tree_of

ADDED, ACCURACY = 1e-15, 1e-12
"""Added to the square of 0.01, the first changes it by a relative 1e-11, which differences do not resolve. In double
precision, a loop that ends at an accuracy reaches the second, but not the first."""
_DEEPEST = 3
_SAVES, _SAVED = "save_for_backward", "saved_tensors"
_INVERTS = frozenset((
    "reciprocal", "rsqrt", "log", "sqrt", "solve", "inv", "inverse", "pinv", "cholesky", "cholesky_ex", "lstsq",
))  # fmt: skip
_LOWER = frozenset(("clamp", "clamp_min", "clamp_", "clamp_min_", "clip", "maximum", "max", "fmax"))
_UPPER = frozenset(("max", "a_max", "max_val"))
_ACCURACIES = frozenset(("atol", "rtol", "rcond", "tol"))


def guards_of(
    saving: ast.Module | None, forward: ast.Module | None, backward: ast.Module | None,
    names: Mapping[str, str], known: Mapping[str, Any],
) -> dict[str, float]:  # fmt: skip
    """For each argument that is only such a number, a value so small that it changes nothing.

    Args:
        saving: the tree of what keeps the arguments, forward or `setup_context`.
        forward: the tree of forward.
        backward: that of backward.
        names: what each argument is called in `saving`, by forward's name for it.
        known: the names outside these functions that they may use.
    """
    if saving is None or forward is None or backward is None:
        return {}
    kept = kept_by(saving)
    found: dict[str, float] = {}
    for name, own in names.items():
        held = kept.get(own, set())
        inside, outside = _Uses(forward, known), _Uses(backward, known)
        read = list(uses_in(forward, own if saving is forward else name, held))
        if not all(inside.guards(each) for each in read) or (read and (inside.is_guard or not inside.ends_a_loop)):
            continue
        if all(outside.guards(each) for each in places_in(backward, held)):
            if inside.ends_a_loop or outside.ends_a_loop:
                found[name] = ACCURACY
            elif outside.is_guard:
                found[name] = ADDED
    return found


def kept_by(saving: ast.Module) -> dict[str, set[str | tuple[int, int]]]:
    """The attributes of ctx that hold a variable, and its position among all saved tensors."""
    found: dict[str, set[str | tuple[int, int]]] = {}
    for node in nodes_of(saving):
        if isinstance(node, ast.Assign):
            for target, value in bindings(node):
                if isinstance(target, ast.Attribute) and isinstance(value, ast.Name):
                    found.setdefault(value.id, set()).add(target.attr)
        elif isinstance(node, ast.Call) and _last(node.func) == _SAVES:
            for position, value in enumerate(node.args):
                if isinstance(value, ast.Name):
                    found.setdefault(value.id, set()).add((position, len(node.args)))
    return found


def uses_in(forward: ast.Module, name: str, held: set[str | tuple[int, int]]) -> Iterator[ast.AST]:
    """Where forward uses an argument otherwise than to keep it."""
    keeping = set[ast.AST]()
    for node in nodes_of(forward):
        match node:
            case ast.Assign():
                keeping |= {value for target, value in bindings(node) if isinstance(target, ast.Attribute)}
            case ast.Call(func=func, args=args) if _last(func) == _SAVES:
                keeping |= set(args)
    for node in nodes_of(forward):
        match node:
            case ast.Name(id=own) if own == name and node not in keeping:
                yield node
            case ast.Attribute(attr=attr, ctx=ast.Load()) if attr in held:
                yield node


def places_in(backward: ast.Module, kept: Iterable[str | tuple[int, int]]) -> Iterator[ast.AST]:
    """Where backward reads what ctx keeps of an argument."""
    positions = [each for each in kept if isinstance(each, tuple)]
    for node in nodes_of(backward):
        match node:
            case ast.Attribute(attr=attr, ctx=ast.Load()) if attr in kept:
                yield node
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Attribute(attr=attr)) if attr == _SAVED:
                yield from (parts[place] for place, count in positions if count == len(parts))
            case ast.Subscript(value=ast.Attribute(attr=attr), slice=ast.Constant(value=int(at))) if attr == _SAVED:
                yield from (node for place, count in positions if at % count == place)


@final
class _Uses:
    """What a function does with a number, followed through its variables and into the user's own functions.

    Afterwards `is_guard` says whether one of the uses is a guard, and `ends_a_loop` whether one ends a loop: a number
    that is only compared may be the width of a surrogate gradient.
    """

    def __init__(self, tree: ast.Module, known: Mapping[str, Any]) -> None:
        self.is_guard = self.ends_a_loop = False
        self._tree, self._known = tree, known
        self._above = {below: node for node in nodes_of(tree) for below in ast.iter_child_nodes(node)}
        self._followed = set[tuple[str, bool]]()

    def guards(self, place: ast.AST) -> bool:
        """Whether the number at a place does nothing else than to be compared, or to guard what is divided by."""
        if isinstance(place, ast.Name) and isinstance(place.ctx, ast.Store):
            return self.variable_guards(place.id, _DEEPEST)
        return self._guards(place, _DEEPEST, added=False)

    def variable_guards(self, name: str, deepest: int, *, added: bool = False) -> bool:
        """The same for a variable or parameter; `added` where the number is a term of it."""
        if (name, added) in self._followed:
            return True
        self._followed.add((name, added))
        read = [n for n in nodes_of(self._tree) if isinstance(n, ast.Name) and n.id == name]
        return all(self._guards(each, deepest, added=added) for each in read if isinstance(each.ctx, ast.Load))

    def _guards(self, node: ast.AST, deepest: int, *, added: bool) -> bool:
        path = {node}
        while (above := self._above.get(node)) is not None:
            path.add(above)
            if (found := self._use(above, node, path, deepest, added=added)) is not None:
                return found
            added = added or _adds(above, node)
            node = above
        return False

    def _use(self, above: ast.AST, node: ast.AST, path: set[ast.AST], deepest: int, *, added: bool) -> bool | None:
        """Whether what an expression is part of makes a guard of it; None where that passes it on."""
        match above:
            case ast.Compare(ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as op], left=left):
                found = self._compared(above, is_less=isinstance(op, ast.Lt | ast.LtE) is (left is node))
            case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
                found = True
            case ast.BinOp(op=ast.Div() | ast.Pow(), right=right) if right is node:
                found = self._inverted(added=added)
            case ast.BinOp(op=ast.Pow(), right=ast.UnaryOp(op=ast.USub())):
                found = self._inverted(added=added)
            case ast.keyword(arg=str(arg)) if arg in _ACCURACIES:
                self.ends_a_loop, found = True, not added
            case ast.Call():
                return self._call_guards(above, node, deepest, added=added)
            case ast.Assign():
                targets = [target for target, value in bindings(above) if value in path]
                found = all(
                    isinstance(t, ast.Name) and self.variable_guards(t.id, deepest, added=added) for t in targets
                )
            case _:
                return False if isinstance(above, ast.stmt) else None
        return found

    def _inverted(self, *, added: bool) -> bool:
        self.is_guard = self.is_guard or added
        return added

    def _call_guards(self, call: ast.Call, node: ast.AST, deepest: int, *, added: bool) -> bool | None:
        """Whether a call makes a guard of its argument; None where it passes it on."""
        helper = own_function(call.func, self._known)
        if helper is None:
            return self._inverted(added=True) if added and _last(call.func) in _INVERTS else None
        tree, parameter = tree_of(source_of(helper)), _parameter(call, node, helper)
        if added or not deepest or tree is None or parameter is None:
            return False
        uses = _Uses(tree, {**self._known, **helper.__globals__})
        guards = uses.variable_guards(parameter, deepest - 1)
        self.is_guard, self.ends_a_loop = self.is_guard or uses.is_guard, self.ends_a_loop or uses.ends_a_loop
        return guards

    def _compared(self, test: ast.AST, *, is_less: bool) -> bool:
        """Whether a comparison, in which the number `is_less` than the rest, does not count the steps of a loop.

        Afterwards `ends_a_loop` is true where the loop ends because something is less than the number.
        """
        node = test
        while (above := self._above.get(node)) is not None and isinstance(above, ast.expr):
            node = above
        if not self._is_in_loop(node):
            return True
        ends = _leaves(above, node)
        if ends is not None:
            self.ends_a_loop = self.ends_a_loop or ends is not is_less
            return ends is not is_less
        if isinstance(above, ast.Assign):
            names = {each.id for each in above.targets if isinstance(each, ast.Name)}
            self.ends_a_loop = self.ends_a_loop or self._decide(names)
        return True

    def _is_in_loop(self, node: ast.AST) -> bool:
        while (above := self._above.get(node)) is not None:
            if isinstance(above, ast.While | ast.For):
                return True
            node = above
        return False

    def _decide(self, names: set[str]) -> bool:
        """Whether a loop ends by variables, or by others that are computed from them."""
        for node in nodes_of(self._tree):
            if isinstance(node, ast.Assign) and _names(node.value) & names:
                names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        tests = (node for node in nodes_of(self._tree) if isinstance(node, ast.If | ast.While))
        return any(_leaves(node, node.test) is not None and _names(node.test) & names for node in tests)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _leaves(statement: ast.AST | None, test: ast.AST) -> bool | None:
    """Whether a loop ends where its test holds, or goes on there; None where the test decides neither."""
    match statement:
        case ast.If(body=body) if any(isinstance(each, ast.Break | ast.Return) for each in body):
            return True
        case ast.While(test=own) if own is test:
            return False
    return None


def _adds(above: ast.AST, node: ast.AST) -> bool:
    """Whether an expression adds a part of it to something, or takes the part as a lower limit."""
    match above:
        case ast.BinOp(op=ast.Add() | ast.Sub()):
            return True
        case ast.Call(func=func, args=args, keywords=keywords) if _last(func) in _LOWER:
            return node is not func and len(args) < 3 and not any(each.arg in _UPPER for each in keywords)
    return False


def _parameter(call: ast.Call, node: ast.AST, helper: FunctionType) -> str | None:
    """The parameter of a function that an argument of its call is for."""
    if isinstance(node, ast.keyword):
        return node.arg
    places = [place for place, each in enumerate(call.args) if each is node]
    return helper.__code__.co_varnames[places[0]] if places and places[0] < helper.__code__.co_argcount else None


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
