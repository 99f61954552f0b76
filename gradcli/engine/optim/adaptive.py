"""Adagrad, Adam, AdamW and RMSprop: step sizes adapted to each element by the squares of its past gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gradcli.engine.creation import full_like, zeros_like
from gradcli.engine.optim.optimizer import Optimizer, counted, implementation, no_steps
from gradcli.engine.tensor import Tensor


class Adam(Optimizer):
    """Adam (Kingma and Ba, arXiv 1412.6980).

    Args:
        params: tensors, or groups of them; see `Optimizer`.
        lr: the learning rate.
        betas: the decay rates of the running means of the gradient and of its square.
        eps: added to the root of the mean square.
        weight_decay: this multiple of the parameter is added to its gradient (L2 penalty).
        amsgrad: divide by the largest mean square so far (Reddi et al., arXiv 1904.09237).
        maximize: step along the gradient, not against it.
        how: `foreach`, `capturable` and `fused`, which have no effect; `differentiable` must be False.

    Raises:
        ValueError: an option is out of its range.
        NotImplementedError: `differentiable` is True.
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **how: Any,
    ) -> None:
        for words, value in (
            ("learning rate", lr), ("epsilon value", eps), ("weight_decay value", weight_decay),
        ):  # fmt: skip
            if value < 0.0:
                raise ValueError(f"Invalid {words}: {value}")
        for place, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
        options: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        options |= {"amsgrad": amsgrad, "maximize": maximize}
        known = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
        options |= implementation(how, **known)
        super().__init__(params, options | {"decoupled_weight_decay": self.decoupled})

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction = -gradient if group["maximize"] else gradient
        if group["weight_decay"]:
            if self.decoupled:
                tensor.mul_(1 - group["lr"] * group["weight_decay"])
            else:
                direction = direction + tensor.detach() * group["weight_decay"]
        if not state:
            state.update(step=no_steps(), exp_avg=zeros_like(tensor), exp_avg_sq=zeros_like(tensor))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(tensor)
        first, second = group["betas"]
        step = counted(state)
        state["exp_avg"].mul_(first).add_(direction, alpha=1 - first)
        state["exp_avg_sq"].mul_(second).add_(direction * direction, alpha=1 - second)
        square = state["exp_avg_sq"]
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"].copy_(state["max_exp_avg_sq"].maximum(square))
        scale = square.sqrt() / math.sqrt(1 - second**step) + group["eps"]
        tensor.add_(state["exp_avg"] / scale, alpha=-group["lr"] / (1 - first**step))


class AdamW(Adam):
    """Adam with decoupled weight decay: parameters are multiplied by 1 - lr * weight_decay (arXiv 1711.05101)."""

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **how: Any,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **how)


class RMSprop(Optimizer):
    """Gradients divided by the root of their running mean square (Hinton, lecture 6 of his Coursera course, 2012).

    Args:
        params: tensors, or groups of them; see `Optimizer`.
        lr: the learning rate.
        alpha: the decay rate of the running mean square.
        eps: added to its root.
        weight_decay: this multiple of the parameter is added to its gradient (L2 penalty).
        momentum: this multiple of the last step is added to the next.
        centered: subtract the square of the running mean from the mean square: an estimate of the variance.
        maximize: step along the gradient, not against it.
        how: `foreach` and `capturable`, which have no effect; `differentiable` must be False.

    Raises:
        ValueError: an option is negative.
        NotImplementedError: `differentiable` is True.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **how: Any,
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps}
        for name, value in {**options, "weight_decay": weight_decay}.items():
            if value < 0.0:
                raise ValueError(f"Invalid {name} value: {value}")
        options |= {"centered": centered, "weight_decay": weight_decay, "capturable": False, "foreach": None}
        options["maximize"] = maximize
        known = {"foreach": None, "capturable": False, "differentiable": False}
        super().__init__(params, options | implementation(how, **known))

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction = -gradient if group["maximize"] else gradient
        if group["weight_decay"]:
            direction = direction + tensor.detach() * group["weight_decay"]
        if not state:
            names = ["square_avg"]
            names += ["momentum_buffer"] if group["momentum"] > 0 else []
            names += ["grad_avg"] if group["centered"] else []
            state.update(step=no_steps(), **{name: zeros_like(tensor) for name in names})
        counted(state)
        alpha = group["alpha"]
        state["square_avg"].mul_(alpha).add_(direction * direction, alpha=1 - alpha)
        square = state["square_avg"]
        if group["centered"]:
            state["grad_avg"].mul_(alpha).add_(direction, alpha=1 - alpha)
            square = square - state["grad_avg"] * state["grad_avg"]
        scaled = direction / (square.sqrt() + group["eps"])
        if group["momentum"]:
            scaled = state["momentum_buffer"].mul_(group["momentum"]).add_(scaled)
        tensor.add_(scaled, alpha=-group["lr"])


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of their squares so far (Duchi, Hazan and Singer, JMLR 12, 2011).

    Args:
        params: tensors, or groups of them; see `Optimizer`.
        lr: the learning rate.
        lr_decay: after n steps the rate is divided by 1 + n * lr_decay.
        weight_decay: this multiple of the parameter is added to its gradient (L2 penalty).
        initial_accumulator_value: what the sum of squares starts with.
        eps: added to its root.
        maximize: step along the gradient, not against it.
        how: `foreach` and `fused`, which have no effect; `differentiable` must be False.

    Raises:
        ValueError: an option is negative.
        NotImplementedError: `differentiable` is True.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **how: Any,
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay}
        options["initial_accumulator_value"] = initial_accumulator_value
        for name, value in options.items():
            if value < 0.0:
                raise ValueError(f"Invalid {name} value: {value}")
        options["maximize"] = maximize
        known = {"foreach": None, "differentiable": False, "fused": None}
        super().__init__(params, options | implementation(how, **known))
        for group in self.param_groups:
            for tensor in group["params"]:
                self.state[tensor] = self._start(tensor, group)

    @staticmethod
    def _start(tensor: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        value = group["initial_accumulator_value"]
        whole = complex(value, value) if tensor._data.dtype.kind == "c" else value
        return {"step": no_steps(), "sum": full_like(tensor.detach(), whole)}

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction = -gradient if group["maximize"] else gradient
        if group["weight_decay"]:
            direction = direction + tensor.detach() * group["weight_decay"]
        if not state:
            state.update(self._start(tensor, group))
        rate = group["lr"] / (1 + (counted(state) - 1) * group["lr_decay"])
        state["sum"].add_(direction * direction)
        tensor.add_(direction / (state["sum"].sqrt() + group["eps"]), alpha=-rate)
