"""The condition on which inputs require a gradient that the gradient of another input depends on."""

import ast

from gradcli.edits.flow import relevant

_ASKED = "needs_input_grad"


def condition_of_others(backward: ast.FunctionDef, position: int, count: int) -> int | None:
    """The line of the first such condition under which the gradient in a place, of `count`, is computed; None if none.

    One that asks of the input itself alone is right.
    """
    kept = relevant(backward, (position,), count)
    if kept is None:
        return None
    names = _names(backward)
    own = {f"{name}[{position}]" for name, place in names.items() if place is None}
    own |= {name for name, place in names.items() if place == position}
    conditions = [n for n in ast.walk(backward) if isinstance(n, ast.If | ast.IfExp) and _asks(n.test, names)]
    for node in sorted(conditions, key=lambda n: n.lineno):
        text = ast.unparse(node.test)
        if text in own or text.endswith(f".{_ASKED}[{position}]"):
            continue
        inside: list[ast.AST] = [node] if isinstance(node, ast.IfExp) else [*node.body, *node.orelse]
        if any(part in kept for each in inside for part in ast.walk(each) if isinstance(part, ast.stmt | ast.IfExp)):
            return node.lineno
    return None


def _names(backward: ast.FunctionDef) -> dict[str, int | None]:
    """The names for which inputs require a gradient, each with the input's place; None for the name of all."""
    found: dict[str, int | None] = {}
    for node in ast.walk(backward):
        if not isinstance(node, ast.Assign) or _ASKED not in ast.unparse(node.value):
            continue
        is_whole = isinstance(node.value, ast.Attribute)
        for target in node.targets:
            if isinstance(target, ast.Name):
                found[target.id] = None if is_whole else _place(node.value)
            elif isinstance(target, ast.Tuple | ast.List) and is_whole:
                found |= {t.id: n for n, t in enumerate(target.elts) if isinstance(t, ast.Name)}
    return found


def _place(value: ast.expr) -> int:
    """The place of the input that an expression asks of; -1 for another one."""
    index = value.slice if isinstance(value, ast.Subscript) else None
    return index.value if isinstance(index, ast.Constant) and isinstance(index.value, int) else -1


def _asks(test: ast.expr, names: dict[str, int | None]) -> bool:
    parts = list(ast.walk(test))
    return any(
        (isinstance(n, ast.Attribute) and n.attr == _ASKED) or (isinstance(n, ast.Name) and n.id in names)
        for n in parts
    )
