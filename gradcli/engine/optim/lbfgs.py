"""The limited-memory quasi-Newton method of Broyden, Fletcher, Goldfarb and Shanno, without a line search."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli.engine.grad_mode import enable_grad, no_grad
from gradcli.engine.ops.joining import cat
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.tensor import Tensor


class LBFGS(Optimizer):
    """L-BFGS by the two-loop recursion (Nocedal and Wright, Numerical Optimization, algorithm 7.4).

    Args:
        params: what to optimise, as one group.
        lr: the length of a step along the quasi-Newton direction.
        max_iter: iterations for one call of `step`.
        tolerance_grad: stop when no element of the gradient is larger.
        tolerance_change: stop when no element of a step is larger.
        history_size: pairs of steps and gradient changes that are remembered.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
    ) -> None:
        options = {"lr": lr, "max_iter": max_iter, "history_size": history_size}
        super().__init__(params, {**options, "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change})
        self._pairs: list[tuple[Tensor, Tensor]] = []

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        del tensor, gradient, group, state
        raise RuntimeError("LBFGS changes all parameters together: call step(closure)")

    def _gradient(self) -> Tensor:
        pieces = [
            (tensor.detach() * 0 if tensor._grad is None else tensor._grad.detach()).reshape(-1)
            for tensor in self.param_groups[0]["params"]
        ]
        return cat(pieces)

    def _direction(self, gradient: Tensor) -> Tensor:
        direction, weights = -gradient, []
        for step, change in reversed(self._pairs):
            weight = (step.dot(direction) / change.dot(step)).item()
            weights.append(weight)
            direction = direction - change * weight
        if self._pairs:
            step, change = self._pairs[-1]
            direction = direction * (step.dot(change) / change.dot(change)).item()
        for (step, change), weight in zip(self._pairs, reversed(weights), strict=True):
            direction = direction + step * (weight - (change.dot(direction) / change.dot(step)).item())
        return direction

    def _move(self, step: Tensor) -> None:
        start = 0
        for tensor in self.param_groups[0]["params"]:
            size = tensor.numel()
            tensor.add_(step[start : start + size].reshape(tensor.shape))
            start += size

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` steps.

        Args:
            closure: sets gradients to zero, computes the loss and its gradients, and returns it.

        Raises:
            ValueError: no closure was given.
        """
        if closure is None:
            raise ValueError("LBFGS needs step(closure), where closure computes the loss and its gradients")
        group = self.param_groups[0]
        with enable_grad():
            first = closure()
        with no_grad():
            gradient = self._gradient()
            for _ in range(group["max_iter"]):
                if gradient.abs().max().item() <= group["tolerance_grad"]:
                    break
                direction = self._direction(gradient)
                rate = group["lr"] if self._pairs else min(1.0, 1 / gradient.abs().sum().item()) * group["lr"]
                step = direction * rate
                self._move(step)
                with enable_grad():
                    closure()
                after = self._gradient()
                if step.dot(after - gradient).item() > 1e-10:
                    self._pairs = [*self._pairs, (step, after - gradient)][-group["history_size"] :]
                gradient = after
                if step.abs().max().item() <= group["tolerance_change"]:
                    break
        return first
