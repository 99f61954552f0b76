"""The statement of backward that a wrong value comes from, where what is returned only passes it on.

`return g * d` and `dx = padded[1:-1]` calculate little: the statement that assigned `d` or `padded` is shown. Where
several gradients are wrong, the mistake lies in what all of them are computed from, and no right one is.
"""

import ast
from collections.abc import Collection, Sequence

_PASSED_ON = (
    ast.Name, ast.Subscript, ast.Attribute, ast.Slice, ast.Tuple, ast.Constant, ast.UnaryOp, ast.USub, ast.Add, ast.Sub,
    ast.BinOp, ast.Mult, ast.expr_context,
)  # fmt: skip
"""What an expression that passes a value on consists of; sums only in indices."""

Made = tuple[ast.stmt, str]
"""An assignment, and one of the names that it binds."""


class Ancestry:
    """The assignments of one backward that ran."""

    def __init__(self, backward: ast.FunctionDef, executed: Collection[int]) -> None:
        """`executed` are the lines that ran."""
        self._made: list[tuple[ast.stmt, set[str], ast.expr | None]] = []
        self._anew = {id(node) for node in backward.body if isinstance(node, ast.Assign) and _is_whole(node)}
        for node in ast.walk(backward):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and _ran(node, executed):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = {name for target in targets for name in _assigned(target)}
                self._made.append((node, names, node.value))
            elif isinstance(node, ast.For):
                self._made.append((node, set(_assigned(node.target)), None))
        made = [names for _, names, value in self._made if value is None or _calculates(value)]
        self._calculated = set().union(*made)
        for _, names, value in sorted(self._made, key=lambda each: each[0].lineno):
            if value is not None and _names(value) & self._calculated:
                self._calculated |= names

    def source_of(
        self, value: ast.expr, right: Collection[Made] = (), *, is_exchanged: bool = False
    ) -> ast.stmt | None:
        """The last statement that calculated the one value which an expression passes on; None if it calculates itself.

        A factor that backward is given, such as grad_output, does not count, nor does a value in `right`. A sum of
        terms that a loop collects passes the terms on; and what another backward or Function returned is right where
        this one calculates further with it. `autograd.grad(y, x, g)` passes on what autodiff makes of y, unless the
        value `is_exchanged` with another gradient.
        """
        found: ast.stmt | None = None
        line = value.lineno
        for _ in self._made:
            value = (None if is_exchanged else self._differentiated(value)) or value
            names = _names(value) & self._calculated if _passes_on(value) else set()
            if not isinstance(value, ast.Name):
                names -= {name for name in _read_whole(value) if self._are_in(name, line, right)}
            if len(names) != 1:
                break
            (name,) = names
            own = [(node, held) for node, held in self._reaching(name, line) if held is not None]
            if not own:
                break
            last, held = max(own, key=lambda each: each[0].lineno)
            if _is_delegated(held) and not isinstance(value, ast.Name):
                break
            found, value, line = last, _added(last, held) or held, last.lineno
            if isinstance(found, ast.AugAssign) and value is held:
                break
        return found

    def _differentiated(self, value: ast.expr) -> ast.Name | None:
        """The y of `autograd.grad(y, inputs, g)` where g is what backward is given; None for other expressions."""
        if not isinstance(value, ast.Call) or _called(value) != "grad" or len(value.args) < 2:
            return None
        y, inputs, *further = [*value.args, *(k.value for k in value.keywords if k.arg == "grad_outputs")]
        named = isinstance(y, ast.Name) and not any(isinstance(node, ast.Call) for node in ast.walk(inputs))
        given = further and not any(_calculates(g) or _names(g) & self._calculated for g in further[:1])
        return y if named and given and isinstance(y, ast.Name) else None

    def behind_whole(self, values: Sequence[ast.expr]) -> set[Made]:
        """The assignments whose whole value goes into one of these values, not an entry of it alone."""
        found = set[Made]()
        wanted = [(name, value.lineno) for value in values for name in _read_whole(value)]
        while wanted:
            name, line = wanted.pop()
            for node, held in self._reaching(name, line):
                if (node, name) not in found:
                    found.add((node, name))
                    wanted += [] if held is None else [(each, node.lineno) for each in _read_whole(held)]
        return found

    def _reaching(self, name: str, line: int) -> list[tuple[ast.stmt, ast.expr | None]]:
        """The assignments of a name that it may have its value from at a line; all, if none stands before the line."""
        own = [(node, held) for node, bound, held in self._made if name in bound]
        before = [each for each in own if each[0].lineno < line]
        anew = max((node.lineno for node, _ in before if id(node) in self._anew), default=0)
        return [each for each in before if each[0].lineno >= anew] or own

    def _are_in(self, name: str, line: int, right: Collection[Made]) -> bool:
        """Whether all assignments that a name may have its value from at a line are among the right ones."""
        return all((node, name) in right for node, _ in self._reaching(name, line))

    def shared(
        self, wrong: Sequence[ast.expr], right: Sequence[ast.expr], *, are_exchanged: bool = False
    ) -> ast.stmt | None:
        """The last statement that all wrong values are computed from, and no right one; None where there is none.

        Wrong values come from values rather than from indices, unless they are right ones that `are_exchanged`: an
        index is shown where the values share nothing else.
        """
        of_values = None if are_exchanged else self._common(wrong, right, indices=False)
        return of_values or self._common(wrong, right, indices=True)

    def _common(self, wrong: Sequence[ast.expr], right: Sequence[ast.expr], *, indices: bool) -> ast.stmt | None:
        common = set.intersection(*(self._behind(value, indices=indices) for value in wrong))
        common -= set().union(*(self._behind(value, indices=True) for value in right))
        statements = [node for node in common if not isinstance(node, ast.For)]
        return max(statements, key=lambda node: node.lineno, default=None)

    def _behind(self, value: ast.expr, *, indices: bool) -> set[ast.stmt]:
        """The calculations that a value depends on, with those of `indices` or without."""
        wanted, used = _names(value, indices=indices), set[ast.stmt]()
        grown = True
        while grown:
            grown = False
            for node, bound, _ in self._made:
                if node not in used and bound & wanted:
                    used.add(node)
                    wanted |= _names(node.iter if isinstance(node, ast.For) else node, indices=indices)
                    grown = True
        return {node for node, _, held in self._made if node in used and held is not None and _is_own(node, held)}


def _is_whole(node: ast.Assign) -> bool:
    """Whether an assignment binds names anew, and writes into no object."""
    targets = [e for t in node.targets for e in (t.elts if isinstance(t, ast.Tuple | ast.List) else [t])]
    return all(isinstance(target, ast.Name) for target in targets)


def _is_own(node: ast.stmt, value: ast.expr) -> bool:
    """Whether a statement may hold a slip, unlike one that unpacks what was saved."""
    single = (
        isinstance(node, ast.AugAssign) or not isinstance(node, ast.Assign) or isinstance(node.targets[0], ast.Name)
    )
    return _calculates(value) or (single and isinstance(value, ast.Name))


def _is_delegated(value: ast.expr) -> bool:
    """Whether a value is what another backward returns, autodiff, or another Function."""
    return isinstance(value, ast.Call) and _called(value) in ("backward", "apply", "grad")


def _called(call: ast.Call) -> str | None:
    """The name of what is called, as an attribute of something."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _added(statement: ast.stmt, value: ast.expr) -> ast.expr | None:
    """The term t of `s = s + t` or `s += t`, a name; None for other statements."""
    if isinstance(statement, ast.AugAssign):
        return value if isinstance(statement.op, ast.Add) and isinstance(value, ast.Name) else None
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return None
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return None
    sides = [side for side in (value.left, value.right) if isinstance(side, ast.Name)]
    terms = [side for side in sides if side.id != statement.targets[0].id]
    return terms[0] if len(sides) == 2 and len(terms) == 1 else None


def _passes_on(value: ast.expr) -> bool:
    inside = {id(part) for node in ast.walk(value) if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)}
    return all(
        isinstance(node, _PASSED_ON) and (id(node) in inside or not isinstance(node, ast.Add | ast.Sub))
        for node in ast.walk(value)
    )


def _calculates(value: ast.expr) -> bool:
    """Whether an expression is more than a name, an attribute or an entry of one."""
    return not isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Constant)


def _names(node: ast.AST, *, indices: bool = True) -> set[str]:
    """The names that are read in a node, not for a shape alone, and only with `indices` as an index."""
    if isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "ndim", "size"):
        return set()
    parts = [node.value] if isinstance(node, ast.Subscript) and not indices else ast.iter_child_nodes(node)
    own = {node.id} if isinstance(node, ast.Name) else set[str]()
    return own.union(*(_names(part, indices=indices) for part in parts))


def _read_whole(value: ast.expr) -> set[str]:
    """The names whose values an expression reads, not only single entries or a part of them."""
    parts = [node.value for node in ast.walk(value) if isinstance(node, ast.Subscript)]
    inside = {id(part) for part in parts if isinstance(part, ast.Name)}
    whole = {node.id for node in ast.walk(value) if isinstance(node, ast.Name) and id(node) not in inside}
    return whole & _names(value)


def _assigned(target: ast.expr) -> list[str]:
    """The names that an assignment binds, or into whose values it writes."""
    if isinstance(target, ast.Tuple | ast.List):
        return [name for each in target.elts for name in _assigned(each)]
    while isinstance(target, ast.Subscript | ast.Attribute | ast.Starred):
        target = target.value
    return [target.id] if isinstance(target, ast.Name) else []


def _ran(node: ast.stmt, executed: Collection[int]) -> bool:
    return any(line in executed for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
