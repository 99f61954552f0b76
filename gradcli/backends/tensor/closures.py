"""Functions that read their inputs from closures, turned into functions of their arguments.

`gradcheck(lambda *p: module(x), tuple(module.parameters()))` differentiates by tensors that the function never reads
from its arguments. Here each call writes the values into those tensors first, for each order of derivative anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, final

Function = Callable[..., Any]


@final
class Lifted:
    """A function of new leaves that writes their values into the caller's own tensors, runs there, and restores them.

    The result is in 64-bit precision on the CPU; its gradients of every order come from the framework's own gradients
    by the caller's tensors. Extra arguments, the cotangents of lower orders, are passed on as tensors.
    """

    def __init__(self, torch: ModuleType, originals: Sequence[Any], function: Function) -> None:
        self.torch = torch
        self.originals = tuple(originals)
        self.function = function
        self._apply = self._bridge()

    def __call__(self, *values: Any) -> Any:
        """The outputs that carry a gradient, at these values of the originals and extra arguments."""
        results = _as_tuple(self._apply(*values))
        return results[0] if len(results) == 1 else results

    def _bridge(self) -> Callable[..., Any]:
        count = len(self.originals)

        def forward(ctx: Any, *values: Any) -> Any:
            ctx.save_for_backward(*values)
            with self._written(values[:count]), self.torch.enable_grad():
                extras = [value.detach().requires_grad_() for value in values[count:]]
                return tuple(self._double(output.detach()) for output in self._tracked(self.function(*extras)))

        def backward(ctx: Any, *cotangents: Any) -> Any:
            saved = ctx.saved_tensors
            return _as_tuple(self._derivative(len(saved) - count)(*saved, *cotangents))

        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        return type("Lift", (self.torch.autograd.Function,), body).apply  # type: ignore[attr-defined,no-any-return]  # made at run time

    def _derivative(self, extras: int) -> Lifted:
        """The gradients by originals and extras, as a function of extras and cotangents."""

        def gradients(*values: Any) -> Any:
            outputs = self._tracked(self.function(*values[:extras]))
            seeds = [g.to(output.device).to(output.dtype) for g, output in zip(values[extras:], outputs, strict=True)]
            inputs = [*self.originals, *values[:extras]]
            found = self.torch.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)
            return tuple(tied(self.torch, g, x) for g, x in zip(found, inputs, strict=True))

        return Lifted(self.torch, self.originals, gradients)

    def _double(self, tensor: Any) -> Any:
        """The tensor on the CPU in 64-bit precision."""
        return tensor.to("cpu").to(self.torch.complex128 if tensor.is_complex() else self.torch.float64)

    def _tracked(self, result: Any) -> list[Any]:
        return [output for output in _as_tuple(result) if self.torch.is_tensor(output) and output.requires_grad]

    @contextmanager
    def _written(self, values: Sequence[Any]) -> Iterator[None]:
        for original, value in zip(self.originals, values, strict=True):
            if tuple(original.shape) != tuple(value.shape):
                raise ValueError(
                    f"a tensor of shape {tuple(original.shape)} can only be replaced by one of the same shape, got "
                    f"{tuple(value.shape)}"
                )
        before = [original.data.clone() for original in self.originals]
        try:
            for original, value in zip(self.originals, values, strict=True):
                original.data.copy_(value.detach())
            yield
        finally:
            for original, kept in zip(self.originals, before, strict=True):
                original.data.copy_(kept)


def tied(torch: ModuleType, gradient: Any, tensor: Any) -> Any:
    """A gradient as a tensor with a graph: zeros that hang on `tensor` where none arrives."""
    if gradient is None:
        return torch.zeros_like(tensor.detach()) * tensor
    return gradient if gradient.requires_grad else gradient + torch.zeros_like(tensor.detach()) * tensor


def _as_tuple(value: Any) -> tuple[Any, ...]:
    """A tuple of what was given alone, in a list, or in a tuple."""
    return tuple(value) if isinstance(value, tuple | list) else (value,)
