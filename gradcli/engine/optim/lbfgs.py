"""L-BFGS, the limited-memory quasi-Newton method."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli.engine.grad_mode import enable_grad, no_grad
from gradcli.engine.ops.joining import cat
from gradcli.engine.optim.line_search import Search, Trial
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.tensor import Tensor

LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """L-BFGS by the two-loop recursion (Nocedal and Wright, Numerical Optimization, algorithm 7.4).

    Args:
        params: tensors, or a single group of them.
        lr: the factor of the quasi-Newton step, or of the first trial of the line search. The very first step is also
            divided by the 1-norm of the gradient if that is larger than 1.
        max_iter: the most iterations in one call of `step`.
        max_eval: stop after this many calls of the closure; max_iter * 5 // 4 unless given.
        tolerance_grad: stop when no element of the gradient is larger in absolute value.
        tolerance_change: stop when no element of a step, or when the change of the loss, is larger in absolute value.
        history_size: the number of past steps and changes of the gradient that are kept; not part of `state_dict`.
        line_search_fn: "strong_wolfe", or None for the fixed factor lr.

    Raises:
        ValueError: there are several groups of parameters.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, {**options, "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self._last: tuple[Tensor, Tensor] | None = None

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

    def _remember(self, gradient: Tensor, most: int) -> None:
        """Keep the last step and the change of the gradient over it, if their dot product is positive enough."""
        if self._last is None:
            return
        step, before = self._last
        change = gradient - before
        if change.dot(step).item() > LEAST_CURVATURE:
            self._pairs = [*self._pairs, (step, change)][-most:]

    def _move_from(self, starts: list[Tensor], step: Tensor) -> None:
        """Set the parameters to start + step."""
        begin = 0
        for tensor, start in zip(self.param_groups[0]["params"], starts, strict=True):
            size = tensor.numel()
            tensor.copy_(start + step[begin : begin + size].reshape(tensor.shape))
            begin += size

    def _trial(self, closure: Callable[[], Any], starts: list[Tensor], direction: Tensor, length: float) -> Trial:
        self._move_from(starts, direction * length)
        with enable_grad():
            loss = float(closure())
        gradient = self._gradient()
        return Trial(length=length, loss=loss, gradient=gradient, slope=gradient.dot(direction).item())

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]  # it cannot do without
        """Take up to `max_iter` steps, and return the loss before the first.

        Args:
            closure: sets the gradients to zero, computes the loss, calls backward, and returns the loss.

        Raises:
            RuntimeError: there is no such line search.
        """
        if self.param_groups[0]["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        return super().step(closure)

    def _stepped(self, closure: Callable[[], Any] | None) -> Any:
        assert closure is not None  # noqa: S101  (step has looked)
        with enable_grad():
            first = closure()
        with no_grad():
            self._iterate(closure, float(first))
        return first

    def _iterate(self, closure: Callable[[], Any], loss: float) -> None:
        group = self.param_groups[0]
        gradient, made = self._gradient(), 1
        if gradient.abs().max().item() <= group["tolerance_grad"]:
            return
        for number in range(1, group["max_iter"] + 1):
            self._remember(gradient, group["history_size"])
            direction = self._direction(gradient)
            slope = gradient.dot(direction).item()
            rate = group["lr"] if self._last is not None else min(1.0, 1 / gradient.abs().sum().item()) * group["lr"]
            self._last = direction * rate, gradient
            if slope > -group["tolerance_change"]:
                return
            here = Trial(length=0.0, loss=loss, gradient=gradient, slope=slope)
            if group["line_search_fn"] is None:
                there, trials = self._stride(closure, here, direction, rate, last=number == group["max_iter"])
            else:
                there, trials = self._search(closure, here, direction, rate, group["max_eval"] - made)
            step = direction * there.length
            self._last = step, gradient
            change, loss, gradient, made = there.loss - loss, there.loss, there.gradient, made + trials
            enough = gradient.abs().max().item() <= group["tolerance_grad"] or made >= group["max_eval"]
            still = step.abs().max().item() <= group["tolerance_change"] or abs(change) < group["tolerance_change"]
            if enough or still:
                return

    def _starts(self) -> list[Tensor]:
        return [tensor.detach().clone() for tensor in self.param_groups[0]["params"]]

    def _stride(
        self, closure: Callable[[], Any], here: Trial, direction: Tensor, length: float, *, last: bool
    ) -> tuple[Trial, int]:
        """Move the parameters by a fixed factor; the loss there is not evaluated after the last iteration."""
        if last:
            self._move_from(self._starts(), direction * length)
            return Trial(length=length, loss=here.loss, gradient=here.gradient, slope=here.slope), 0
        return self._trial(closure, self._starts(), direction, length), 1

    def _search(
        self, closure: Callable[[], Any], here: Trial, direction: Tensor, length: float, most: int
    ) -> tuple[Trial, int]:
        """Move the parameters to where a line search ends; return that trial, and the number of evaluations."""
        starts = self._starts()
        search = Search(
            at=lambda trial: self._trial(closure, starts, direction, trial),
            start=here,
            size=direction.abs().max().item(),
            tolerance_change=self.param_groups[0]["tolerance_change"],
            most=most,
        )
        found, made = search.run(length)
        self._move_from(starts, direction * found.length)
        return found, made
