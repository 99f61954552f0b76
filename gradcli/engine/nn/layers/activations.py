"""Activations as modules."""

from __future__ import annotations

from typing import Any

from gradcli.engine.creation import full
from gradcli.engine.nn import functional
from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor


class Identity(Module):
    """Returns its input; takes any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ARG002  (it stands in for any layer)
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return "inplace=True" if self.inplace else ""


class _Written(Module):
    """An activation that may write to its input.

    Args:
        inplace: write the result to the input.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the options."""
        return "inplace=True" if self.inplace else ""


class ReLU6(_Written):
    """x clamped to [0, 6]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.relu6(input, self.inplace)


class LeakyReLU(Module):
    """x where x > 0, else negative_slope * x."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class RReLU(Module):
    """x where x > 0, else a slope times x: a random one in [lower, upper] in training, their mean in evaluation."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """x where x > 0, else weight * x, with one learned slope or one for each channel of [N, C, ...]."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(full((num_parameters,), init))

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"num_parameters={self.num_parameters}"


class _Alpha(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def extra_repr(self) -> str:
        """Return the options."""
        return f"alpha={self.alpha}"


class ELU(_Alpha):
    """x where x > 0, else alpha (exp(x) - 1)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.elu(input, self.alpha, self.inplace)


class CELU(_Alpha):
    """x where x > 0, else alpha (exp(x / alpha) - 1)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.celu(input, self.alpha, self.inplace)


class SELU(_Written):
    """The self-normalising ELU (Klambauer et al., arXiv 1706.02515)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.selu(input, self.inplace)


class GELU(Module):
    """x Phi(x), with the standard normal distribution function Phi; see `functional.gelu`."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"approximate={self.approximate!r}"


class SiLU(_Written):
    """x sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.silu(input, self.inplace)


class Mish(_Written):
    """x tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.mish(input, self.inplace)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return input.sigmoid()


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.logsigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return input.tanh()


class Hardtanh(Module):
    """x clamped to [min_val, max_val]."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.inplace = inplace
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softsign(input)


class Softplus(Module):
    """log(1 + exp(beta x)) / beta, and x where beta x > threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Return the options."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _AlongAxis(Module):
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """Return the options."""
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """exp(x) / sum(exp(x)) along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_AlongAxis):
    """log(softmax(x)) along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.log_softmax(input, self.dim, _stacklevel=5)


class GLU(_AlongAxis):
    """The first half of an axis times the sigmoid of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return functional.glu(input, -1 if self.dim is None else self.dim)
