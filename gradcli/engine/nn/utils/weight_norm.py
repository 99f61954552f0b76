"""Weight normalisation: a weight as its length times a direction (Salimans and Kingma, arXiv 1602.07868)."""

from __future__ import annotations

import warnings
from typing import Any

from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.nn.utils.parametrize import register_parametrization
from gradcli.engine.tensor import Tensor


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms of a tensor over all axes but one, which are kept with length 1; over all axes for -1."""
    if dim == -1:
        return v.norm(pow)
    place = dim % v._data.ndim
    others = tuple(number for number in range(v._data.ndim) if number != place)
    return v.norm(pow, others, keepdim=True) if others else v.abs()


def normalised(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return v with the norms g."""
    result: Tensor = v * (g / norm_except_dim(v, 2, dim))
    return result


class _WeightNorm(Module):
    """The parametrization of a weight by its norms `original0` and its direction `original1`."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return the weight."""
        return normalised(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return norms and direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def parametrized_weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize a weight by its norms over all axes but `dim` (over all for None) and its direction."""
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class HookedWeightNorm:
    """The hook by which a module computes its weight before every call.

    Args:
        name: the name of the weight.
        dim: the axis of which every index has a norm of its own; -1 for one norm of all.
    """

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight of the parameters that stand for it."""
        return normalised(getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g"), self.dim)

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        for name in (self.name, f"{self.name}_g", f"{self.name}_v"):
            delattr(module, name)
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Put the weight, a result, where the module looks for it."""
        del inputs
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Replace a weight by the parameters `<name>_g` and `<name>_v`, of which it is computed before every call.

    Raises:
        RuntimeError: the weight is normalised already.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if any(isinstance(hook, HookedWeightNorm) and hook.name == name for hook in module._forward_pre_hooks.values()):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = HookedWeightNorm(name, -1 if dim is None else dim)
    weight = getattr(module, name)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
    module.register_parameter(f"{name}_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make a weight that `weight_norm` replaced a parameter again.

    Raises:
        ValueError: it was not replaced.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, HookedWeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
