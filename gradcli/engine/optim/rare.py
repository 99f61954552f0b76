"""Adadelta, Adamax, NAdam, RAdam and Rprop."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gradcli.engine.creation import full_like, zeros_like
from gradcli.engine.optim.optimizer import Optimizer, counted, implementation, no_steps
from gradcli.engine.tensor import Tensor


class _Adaptive(Optimizer):
    """Checks the options, and adds the penalty of weights to the gradient."""

    def _start(self, params: Iterable[Any], options: dict[str, Any], how: dict[str, Any]) -> None:
        for name, words in (("lr", "learning rate"), ("eps", "epsilon value"), ("weight_decay", "weight_decay value")):
            if options.get(name, 0) < 0.0:
                raise ValueError(f"Invalid {words}: {options[name]}")
        for place, beta in enumerate(options.get("betas", ())):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {place}: {beta}")
        options["maximize"] = how.pop("maximize", False)
        known = {"foreach": None, "capturable": False, "differentiable": False}
        super().__init__(params, options | implementation(how, **known))

    @staticmethod
    def _direction(tensor: Tensor, gradient: Tensor, group: dict[str, Any]) -> Tensor:
        direction = -gradient if group["maximize"] else gradient
        if not group.get("weight_decay"):
            return direction
        if group.get("decoupled_weight_decay"):
            tensor.mul_(1 - group["lr"] * group["weight_decay"])
            return direction
        decayed: Tensor = direction + tensor.detach() * group["weight_decay"]
        return decayed

    @staticmethod
    def _means(direction: Tensor, group: dict[str, Any], state: dict[str, Any]) -> tuple[int, Tensor, Tensor]:
        """Return the number of the step, and the running means of the gradient and of its square."""
        if not state:
            state.update(step=no_steps(), exp_avg=zeros_like(direction), exp_avg_sq=zeros_like(direction))
        first, second = group["betas"]
        step = counted(state)
        state["exp_avg"].mul_(first).add_(direction, alpha=1 - first)
        state["exp_avg_sq"].mul_(second).add_(direction * direction, alpha=1 - second)
        return step, state["exp_avg"], state["exp_avg_sq"]


class Adadelta(_Adaptive):
    """Steps as large as the root mean square of past steps over that of past gradients (Zeiler, arXiv 1212.5701)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        **how: Any,
    ) -> None:
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        self._start(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay}, how)

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction, rho, eps = self._direction(tensor, gradient, group), group["rho"], group["eps"]
        if not state:
            state.update(step=no_steps(), square_avg=zeros_like(tensor), acc_delta=zeros_like(tensor))
        counted(state)
        state["square_avg"].mul_(rho).add_(direction * direction, alpha=1 - rho)
        delta = (state["acc_delta"] + eps).sqrt() / (state["square_avg"] + eps).sqrt() * direction
        state["acc_delta"].mul_(rho).add_(delta * delta, alpha=1 - rho)
        tensor.add_(delta, alpha=-group["lr"])


class Adamax(_Adaptive):
    """Adam with the largest past gradient instead of the mean square (Kingma and Ba, arXiv 1412.6980)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        **how: Any,
    ) -> None:
        self._start(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}, how)

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction, (first, second) = self._direction(tensor, gradient, group), group["betas"]
        if not state:
            state.update(step=no_steps(), exp_avg=zeros_like(tensor), exp_inf=zeros_like(tensor))
        step = counted(state)
        state["exp_avg"].mul_(first).add_(direction, alpha=1 - first)
        largest = (state["exp_inf"] * second).maximum(direction.abs() + group["eps"])
        state["exp_inf"].copy_(largest)
        tensor.add_(state["exp_avg"] / largest, alpha=-group["lr"] / (1 - first**step))


class NAdam(_Adaptive):
    """Adam with Nesterov's momentum (Dozat, ICLR workshop 2016)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        **how: Any,
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        options |= {"momentum_decay": momentum_decay, "decoupled_weight_decay": decoupled_weight_decay}
        self._start(params, options, how)

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction = self._direction(tensor, gradient, group)
        step, mean, square = self._means(direction, group, state)
        first, second = group["betas"]
        now, following = (first * (1 - 0.5 * 0.96 ** (n * group["momentum_decay"])) for n in (step, step + 1))
        product = state["mu_product"] = state.get("mu_product", 1.0) * now
        scale = (square / (1 - second**step)).sqrt() + group["eps"]
        tensor.add_(direction / scale, alpha=-group["lr"] * (1 - now) / (1 - product))
        tensor.add_(mean / scale, alpha=-group["lr"] * following / (1 - product * following))


class RAdam(_Adaptive):
    """Adam that starts with plain momentum, while its mean squares are unsure (Liu et al., arXiv 1908.03265)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        **how: Any,
    ) -> None:
        options: dict[str, Any] = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        self._start(params, options | {"decoupled_weight_decay": decoupled_weight_decay}, how)

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction = self._direction(tensor, gradient, group)
        step, mean, square = self._means(direction, group, state)
        first, second = group["betas"]
        rest = 1 - second**step
        most = 2 / (1 - second) - 1
        length = most - 2 * step * second**step / rest
        if length > 5:
            sure = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
            mean = mean / (square.sqrt() + group["eps"]) * math.sqrt(rest * sure)
        tensor.add_(mean, alpha=-group["lr"] / (1 - first**step))


class Rprop(_Adaptive):
    """Steps by the sign of the gradient, larger where it stays, smaller where it changes (Riedmiller, Braun 1993)."""

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        **how: Any,
    ) -> None:
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        self._start(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes}, how)

    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        direction, (smaller, larger) = self._direction(tensor, gradient, group), group["etas"]
        if not state:
            state.update(step=no_steps(), prev=zeros_like(tensor), step_size=full_like(tensor, group["lr"]))
        counted(state)
        same = (direction * state["prev"]).sign()
        factor = zeros_like(same) + 1
        factor = factor.masked_fill(same > 0, larger).masked_fill(same < 0, smaller)
        state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        kept = direction.masked_fill(same < 0, 0)
        tensor.add_(kept.sign() * state["step_size"], alpha=-1)
        state["prev"].copy_(kept)
