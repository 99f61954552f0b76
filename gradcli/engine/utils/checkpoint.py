"""Computing what backward needs again, in the place of keeping it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, ClassVar

from gradcli.engine.autograd.graph import saved_tensors_hooks
from gradcli.engine.backward.api import run_backward
from gradcli.engine.dtypes import Size
from gradcli.engine.function import Function
from gradcli.engine.generator import forked_rng, get_rng_state, set_rng_state
from gradcli.engine.grad_mode import STATE, enable_grad, no_grad
from gradcli.engine.tensor import Tensor

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn"]

_PASSED = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Without it, the function runs as "
    "with use_reentrant=True; use_reentrant=False is recommended."
)
_INPUTS = (
    "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
    ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing "
    "the `inputs` argument."
)
Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class CheckpointError(RuntimeError):
    """A function that was run again did not do the same."""


class _EnoughError(Exception):
    """Ends a second run, once all that is needed has been saved."""


def noop_context_fn() -> Contexts:
    """Return the contexts of the first run and of the second: none."""
    return nullcontext(), nullcontext()


class _Again:
    """Runs a function a second time, and keeps what the second run saves for backward.

    Each backward pass runs it anew, so that a graph that is retained retains no tensors.

    Args:
        function: what to run.
        args: its arguments.
        kwargs: its named arguments.
        preserve_rng_state: start the second run from the random numbers of the first.
        context: what the second run is in.
        checked: compare the shapes and types of what both runs save.
        early_stop: end the second run after the last tensor that is needed.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        preserve_rng_state: bool,
        context: AbstractContextManager[Any],
        checked: bool,
        early_stop: bool,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.versions = [(value, value._version) for value in args if isinstance(value, Tensor)]
        self.random = get_rng_state() if preserve_rng_state else None
        self.context, self.checked, self.early_stop = context, checked, early_stop
        self.first: list[str] = []
        self.kept: list[Tensor] = []
        self.walk: weakref.ref[Any] | None = None

    def pack(self, tensor: Tensor) -> int:
        """Keep the number of a tensor."""
        self.first.append(_described(tensor))
        return len(self.first) - 1

    def unpack(self, number: int) -> Tensor:
        """Return the tensor of a number, running the function again for the first of a pass."""
        walk = STATE.walk
        if walk is None or self.walk is None or self.walk() is not walk:
            self.walk = None if walk is None else weakref.ref(walk)
            self._run()
        return self.kept[number]

    def _run(self) -> None:
        for tensor, version in self.versions:
            tensor._require_version(version)
        self.kept = []
        with forked_rng(enabled=self.random is not None), enable_grad(), self.context:
            if self.random is not None:
                set_rng_state(self.random)
            with saved_tensors_hooks(self._keep, lambda tensor: tensor), suppress(_EnoughError):
                self.function(*self.args, **self.kwargs)
        self._compare()

    def _keep(self, tensor: Tensor) -> Tensor:
        if len(self.kept) == len(self.first):
            raise CheckpointError(
                "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                "forward pass."
            )
        self.kept.append(tensor.detach())
        if self.early_stop and len(self.kept) == len(self.first):
            raise _EnoughError
        return tensor

    def _compare(self) -> None:
        """Raise CheckpointError where the two runs saved different tensors."""
        if len(self.kept) != len(self.first):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.first)}\nNumber of tensors saved "
                f"during recomputation: {len(self.kept)}."
            )
        pairs = [(then, _described(tensor)) for then, tensor in zip(self.first, self.kept, strict=True)]
        lines = [
            f"tensor at position {place}:\nsaved metadata: {then}\nrecomputed metadata: {now}"
            for place, (then, now) in enumerate(pairs)
            if then != now
        ]
        if self.checked and lines:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                "during the forward pass.\n" + "\n".join(lines)
            )


def _described(tensor: Tensor) -> str:
    return str({"shape": Size(tensor._data.shape), "dtype": tensor.dtype, "device": tensor.device})


class CheckpointFunction(Function):
    """The older way: the function runs without a graph, and in backward with one that is differentiated at once."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function with recording off."""
        if not any(isinstance(value, Tensor) and value.requires_grad for value in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)
        ctx.run_function = run_function
        ctx.random = get_rng_state() if preserve_rng_state else None
        ctx.values = [None if isinstance(value, Tensor) else value for value in args]
        ctx.places = [place for place, value in enumerate(args) if isinstance(value, Tensor)]
        ctx.save_for_backward(*[args[place] for place in ctx.places])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        """Run the function again, and give its inputs their gradients; what else it reads gets its own at once."""
        if STATE.walk is not None and STATE.walk.selective:
            raise RuntimeError(_INPUTS)
        inputs = list(ctx.values)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor.detach().requires_grad_(tensor.requires_grad)
        with forked_rng(enabled=ctx.random is not None), enable_grad():
            if ctx.random is not None:
                set_rng_state(ctx.random)
            outputs = ctx.run_function(*inputs)
        pairs = [
            (output, cotangent)
            for output, cotangent in zip(
                outputs if isinstance(outputs, tuple) else (outputs,), cotangents, strict=False
            )
            if isinstance(output, Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([output for output, _ in pairs], [cotangent for _, cotangent in pairs])
        return None, None, *[value.grad if isinstance(value, Tensor) else None for value in inputs]


class set_checkpoint_early_stop:  # noqa: N801  (the name programs use)
    """While active, decide for all checkpoints whether second runs end after the last tensor that is needed."""

    present: ClassVar[bool | None] = None

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        self.before = set_checkpoint_early_stop.present
        set_checkpoint_early_stop.present = self.enable

    def __exit__(self, *_: object) -> None:
        set_checkpoint_early_stop.present = self.before


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run a function, and run it again in backward in the place of keeping what backward needs.

    Args:
        function: what to run; it must do the same when it is run again.
        args: its arguments.
        use_reentrant: with False, the first run is recorded, and what it saves is computed again when it is needed.
            With True (also without it, with a warning), the first run is not recorded, and backward differentiates the
            second one in a pass of its own: `autograd.grad` is refused.
        context_fn: returns a context for each run.
        determinism_check: "none" for no comparison of the shapes and types of what both runs save.
        debug: has no effect.
        early_stop: end the second run after the last tensor that is needed.
        kwargs: its named arguments; `preserve_rng_state`, True by default, is not one of them.

    Raises:
        ValueError: named arguments or contexts are given with `use_reentrant`.
        CheckpointError: in backward, the second run did not do the same.
    """
    preserve_rng_state = bool(kwargs.pop("preserve_rng_state", True))
    if use_reentrant is None:
        warnings.warn(_PASSED, stacklevel=2)
    if use_reentrant is not False:
        if kwargs:
            raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    first, second = context_fn()
    again = _Again(
        function,
        args,
        kwargs,
        preserve_rng_state=preserve_rng_state,
        context=second,
        checked=determinism_check != "none",
        early_stop=early_stop if set_checkpoint_early_stop.present is None else set_checkpoint_early_stop.present,
    )
    with saved_tensors_hooks(again.pack, again.unpack), first:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions one after the other, in so many groups, all but the last checkpointed; see `checkpoint`."""
    if use_reentrant is None:
        warnings.warn(_PASSED, stacklevel=2)
    preserve_rng_state = bool(kwargs.pop("preserve_rng_state", True))
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    steps = list(functions)
    size = len(steps) // segments

    def chain(group: list[Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in group:
                value = step(value)
            return value

        return run

    result = input
    for number in range(segments - 1):
        group = chain(steps[number * size : (number + 1) * size])
        result = checkpoint(
            group, result, use_reentrant=use_reentrant is not False, preserve_rng_state=preserve_rng_state
        )
    return chain(steps[(segments - 1) * size :])(result)
