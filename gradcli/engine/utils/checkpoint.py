"""Computing what backward needs again, in the place of keeping it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.autograd.graph import saved_tensors_hooks
from gradcli.engine.creation import forked_rng, get_rng_state, set_rng_state
from gradcli.engine.grad_mode import enable_grad
from gradcli.engine.tensor import Tensor

__all__ = ["checkpoint", "checkpoint_sequential"]


class _Again:
    """Runs a function a second time, and keeps what the second run saves for backward.

    Args:
        function: what to run.
        args: its arguments.
        kwargs: its named arguments.
        preserve_rng_state: start the second run from the random numbers of the first.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], preserve_rng_state: bool
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.random = get_rng_state() if preserve_rng_state else None
        self.count = 0
        self.kept: list[Tensor] = []

    def pack(self, tensor: Tensor) -> int:
        """Keep the number of a tensor."""
        del tensor
        self.count += 1
        return self.count - 1

    def unpack(self, number: int) -> Tensor:
        """Return the tensor of a number, running the function again for the first."""
        if not self.kept:
            with forked_rng(enabled=self.random is not None), enable_grad():
                if self.random is not None:
                    set_rng_state(self.random)
                with saved_tensors_hooks(self._keep, lambda tensor: tensor):
                    self.function(*self.args, **self.kwargs)
            if len(self.kept) != self.count:
                raise RuntimeError(
                    "checkpoint: the function saved a different number of tensors for backward when it was run again: "
                    f"{self.count} at first, {len(self.kept)} then. It must do the same in both runs"
                )
        return self.kept[number]

    def _keep(self, tensor: Tensor) -> Tensor:
        self.kept.append(tensor.detach())
        return tensor


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run a function, and run it again in backward in the place of keeping what backward needs.

    Args:
        function: what to run; it must do the same when it is run again.
        args: its arguments.
        use_reentrant: has no effect: both ways give the same gradients.
        preserve_rng_state: start the second run from the random numbers of the first.
        kwargs: its named arguments.
    """
    del use_reentrant
    again = _Again(function, args, kwargs, preserve_rng_state)
    with saved_tensors_hooks(again.pack, again.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None) -> Any:
    """Run functions one after the other, in so many groups that are checkpointed; see `checkpoint`."""
    steps = list(functions)
    size = max(len(steps) // segments, 1)

    def chain(group: list[Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in group:
                value = step(value)
            return value

        return run

    result = input
    for number in range(segments):
        group = steps[number * size : None if number == segments - 1 else (number + 1) * size]
        result = checkpoint(chain(group), result, use_reentrant=use_reentrant)
    return result
