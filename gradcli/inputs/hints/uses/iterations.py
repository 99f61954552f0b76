"""Numbers that say how often a loop of forward runs, and nothing else."""

import ast
from collections.abc import Mapping

from gradcli.inputs.hints.uses.guards import kept_by, places_in, uses_in
from gradcli.sources import nodes_of


def counts_of(
    saving: ast.Module | None, forward: ast.Module | None, backward: ast.Module | None, names: Mapping[str, str]
) -> frozenset[str]:
    """The arguments that forward uses as `n` in `for _ in range(n)` alone, and backward does not use.

    A backward that does not know how many steps forward took has the gradient of their limit, if it has any.

    Args:
        saving: the tree of what keeps the arguments, forward or `setup_context`.
        forward: the tree of forward.
        backward: that of backward.
        names: what each argument is called in `saving`, by forward's name for it.
    """
    if saving is None or forward is None or backward is None:
        return frozenset()
    kept, counting = kept_by(saving), set[ast.AST]()
    for node in nodes_of(forward):
        match node:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[number])):
                counting.add(number)
    found = set[str]()
    for name, own in names.items():
        held = kept.get(own, set())
        read = set(uses_in(forward, own if saving is forward else name, held))
        if read and read <= counting and not any(places_in(backward, held)):
            found.add(name)
    return frozenset(found)
