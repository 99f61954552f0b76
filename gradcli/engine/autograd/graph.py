"""Watching the graph: hooks on saved tensors and on several tensors at once, and nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import GradientEdge, Node
from gradcli.engine.in_place import bump
from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return where the cotangent of a tensor goes.

    Raises:
        RuntimeError: nowhere.
    """
    node, number = tensor._edge()
    if node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(node, number)


class saved_tensors_hooks:  # noqa: N801  (the name programs use)
    """While active, `pack_hook` decides what is stored for a saved tensor, and `unpack_hook` restores it."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        if STATE.why_no_saved_hooks is not None:
            raise RuntimeError(STATE.why_no_saved_hooks)
        STATE.saved_hooks = (*STATE.saved_hooks, (self.pack_hook, self.unpack_hook))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        STATE.saved_hooks = STATE.saved_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  (the name programs use)
    """Keep copies of what is saved."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cpu") -> None:  # noqa: ARG002  (all is on the CPU)
        super().__init__(lambda tensor: tensor.clone(), lambda packed: packed)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """While active, `saved_tensors_hooks` raises RuntimeError with this message."""
    if STATE.saved_hooks:
        raise RuntimeError(error_message)
    before, STATE.why_no_saved_hooks = STATE.why_no_saved_hooks, error_message
    try:
        yield
    finally:
        STATE.why_no_saved_hooks = before


class allow_mutation_on_saved_tensors(saved_tensors_hooks):  # noqa: N801  (the name programs use)
    """Keep copies of what is saved, so that writing to the tensors themselves does not disturb backward."""

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda packed: packed)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to each tensor, as code does that has written to its memory by other ways.

    Raises:
        RuntimeError: something else is given.
    """
    if not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for written in (tensor,) if isinstance(tensor, Tensor) else tuple(tensor):
        bump(written)


class MultiHandle(RemovableHandle):
    """Takes several hooks away at once.

    Args:
        handles: the handles of the hooks.
    """

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove all hooks."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call `fn` when gradients of several tensors are known.

    Args:
        tensors: what to wait for.
        fn: gets, with "all", the list of gradients (None where there is none) once all that will come have come; with
            "any", the first gradient of a pass.
        mode: "all" or "any".

    Raises:
        ValueError: the mode is another.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    passes: WeakKeyDictionary[Any, dict[int, Tensor | None]] = WeakKeyDictionary()
    nodes = [tensor._edge()[0] for tensor in tensors]
    expected: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

    def hook_of(position: int) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            walk = STATE.walk
            seen = passes.setdefault(walk, {})
            seen[position] = gradient
            if len(seen) == 1:
                here = nodes[position]
                expected[walk] = sum(node is here or walk.is_ahead(node) for node in nodes)
                if mode == "any":
                    fn(gradient)
            if mode == "all" and len(seen) == expected[walk]:
                fn([seen.get(i) for i in range(len(tensors))])

        return hook

    return MultiHandle(tuple(tensor.register_hook(hook_of(i)) for i, tensor in enumerate(tensors)))


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here."""
    raise refusal(".autograd.graph", name, globals())
