"""The namespace `utils._pytree`: nested containers taken apart into leaves, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli.engine.utils.trees import is_container, leaves, mapped, rebuilt, structure

__all__ = [
    "TreeSpec", "tree_all", "tree_any", "tree_flatten", "tree_iter", "tree_leaves", "tree_map", "tree_map_only",
    "tree_structure", "tree_unflatten",
]  # fmt: skip


class TreeSpec:
    """The containers of a tree, without its leaves.

    Args:
        tree: the tree.
    """

    def __init__(self, tree: Any) -> None:
        self._containers = structure(tree)
        self.num_leaves = len(leaves(tree))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the containers with these leaves in order.

        Raises:
            ValueError: their number is another.
        """
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return rebuilt(self._containers, given)

    def is_leaf(self) -> bool:
        """Tell whether the tree is a leaf."""
        return not is_container(self._containers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._containers == other._containers

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return _text(self._containers, 0)


def _text(tree: Any, indent: int) -> str:
    if not is_container(tree):
        return "*"
    context = list(tree) if isinstance(tree, dict) else type(tree) if hasattr(tree, "_fields") else None
    kind = "namedtuple" if hasattr(tree, "_fields") else type(tree).__name__
    entries = [_text(entry, indent + 2) for entry in (tree.values() if isinstance(tree, dict) else tree)]
    return f"TreeSpec({kind}, {context}, [" + (",\n" + " " * (indent + 2)).join(entries) + "])"


def tree_flatten(tree: Any) -> tuple[list[Any], TreeSpec]:
    """Return the leaves of a tree, and the rest of it."""
    return leaves(tree), TreeSpec(tree)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """Return the tree of leaves and the rest; raises as `TreeSpec.unflatten`."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree."""
    return leaves(tree)


def tree_iter(tree: Any) -> Any:
    """Return an iterator over the leaves of a tree."""
    return iter(leaves(tree))


def tree_structure(tree: Any) -> TreeSpec:
    """Return a tree without its leaves."""
    return TreeSpec(tree)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any) -> Any:
    """Return a tree of what a function makes of the leaves at the same place of one or several trees.

    Raises:
        ValueError: the trees have different numbers of leaves.
    """
    others = [leaves(rest) for rest in rests]
    return TreeSpec(tree).unflatten(func(*entries) for entries in zip(leaves(tree), *others, strict=True))


def tree_map_only(kinds: Any, func: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree of what a function makes of the leaves of a class, or of several; the others stay."""
    return mapped(lambda leaf: func(leaf) if isinstance(leaf, kinds) else leaf, tree)


def tree_all(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether all leaves fulfil a condition."""
    return all(map(pred, leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: Any) -> bool:
    """Tell whether a leaf fulfils a condition."""
    return any(map(pred, leaves(tree)))
