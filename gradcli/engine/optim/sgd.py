"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradcli.engine.optim.optimizer import Optimizer, implementation
from gradcli.engine.tensor import Tensor


class SGD(Optimizer):
    """Gradient descent with momentum and weight decay.

    With momentum, v = momentum * v + (1 - dampening) * gradient (at first v = gradient), and the step is -lr * v.

    Args:
        params: tensors, or groups of them; see `Optimizer`.
        lr: the learning rate.
        momentum: see above; 0 for none.
        dampening: see above.
        weight_decay: this multiple of the parameter is added to its gradient (L2 penalty).
        nesterov: step by gradient + momentum * v instead of v (Sutskever et al., 2013).
        maximize: step along the gradient, not against it.
        how: `foreach` and `fused`, which have no effect; `differentiable` must be False.

    Raises:
        ValueError: lr, momentum or weight_decay is negative, or `nesterov` without momentum or with dampening.
        NotImplementedError: `differentiable` is True.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **how: Any,
    ) -> None:
        for name, value in (("learning rate", lr), ("momentum value", momentum), ("weight_decay value", weight_decay)):
            if value < 0.0:
                raise ValueError(f"Invalid {name}: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        options: dict[str, Any] = {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay}
        options |= {"nesterov": nesterov, "maximize": maximize}
        super().__init__(params, options | implementation(how, foreach=None, differentiable=False, fused=None))

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction = -gradient if group["maximize"] else gradient
        if group["weight_decay"]:
            direction = direction + tensor.detach() * group["weight_decay"]
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = direction.clone()
            else:
                buffer.mul_(group["momentum"]).add_(direction, alpha=1 - group["dampening"])
            direction = direction + buffer * group["momentum"] if group["nesterov"] else buffer
        tensor.add_(direction, alpha=-group["lr"])
