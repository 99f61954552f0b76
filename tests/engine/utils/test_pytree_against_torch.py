"""Trees are taken apart and put together as PyTorch's `_pytree` does it."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these trees is PyTorch")
Pair = namedtuple("Pair", ["first", "second"])
TREE = {"a": [1, (2, 3)], "b": Pair(4, OrderedDict(c=5)), "d": None}
CASES: dict[str, Callable[[Any], Any]] = {
    "leaves": lambda p: (p.tree_leaves(TREE), list(p.tree_iter(TREE))),
    "flattened": lambda p: (
        p.tree_flatten(TREE)[0],
        p.tree_flatten(TREE)[1].num_leaves,
        p.tree_flatten(3)[1].is_leaf(),
    ),
    "put together": lambda p: p.tree_unflatten("abcdef", p.tree_structure(TREE)),
    "mapped": lambda p: p.tree_map(lambda x: [x, 1], TREE),
    "mapped together": lambda p: p.tree_map(lambda x, y: x + y, [1, (2,)], [3, (4,)]),
    "mapped in part": lambda p: p.tree_map_only(int, lambda x: -x, [1, "a", (2.0, 3)]),
    "all and any": lambda p: (p.tree_all(bool, [1, (0,)]), p.tree_any(bool, [1, (0,)])),
    "equal": lambda p: (
        p.tree_structure([1]) == p.tree_structure([2]),
        p.tree_structure([1]) == p.tree_structure((1,)),
    ),
    "too few leaves": lambda p: p.tree_unflatten([1], p.tree_structure([1, {"a": 2}])),
    "printed": lambda p: repr(p.tree_structure([1, {"a": (2, 3)}])),
}


@pytest.mark.parametrize("name", CASES)
def test_trees(name: str) -> None:
    found = []
    for space in (engine.utils._pytree, torch.utils._pytree):
        try:
            found.append(repr(CASES[name](space)))
        except ValueError as error:
            found.append(str(error))
    assert found[0] == found[1]
