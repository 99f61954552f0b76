"""The namespace `nn.init`: initial values of parameters. Each function fills a tensor in place and returns it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.engine.generator import random_source
from gradcli.engine.grad_mode import no_grad
from gradcli.engine.tensor import Tensor, from_array

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
_GAINS |= {f"conv{kind}{n}d": 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)}


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Fill with uniform random numbers in [a, b)."""
    return tensor.uniform_(a, b)


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Fill with normal random numbers of this mean and standard deviation."""
    return tensor.normal_(mean, std)


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one number."""
    return tensor.fill_(val)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return constant_(tensor, 1.0)


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with ones on the diagonal and zeros elsewhere."""
    tensor._data[...] = np.eye(*tensor._data.shape)
    tensor._shared_counter().value += 1
    return tensor


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """Return the recommended gain of an activation: the factor of the standard deviation of the weights before it.

    Args:
        nonlinearity: the name of the function in `nn.functional`.
        param: the slope of "leaky_relu"; 0.01 unless given.

    Raises:
        ValueError: the activation is not known.
    """
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else float(param)) ** 2))
    if nonlinearity not in _GAINS:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}; expected one of {[*_GAINS, 'leaky_relu']}")
    return _GAINS[nonlinearity]


def fans(tensor: Tensor) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a weight [out, in, *kernel]: in and out times the size of the kernel.

    Raises:
        ValueError: the weight has fewer than two axes.
    """
    shape = tensor._data.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


_calculate_fan_in_and_fan_out = fans  # the private name in PyTorch that published code calls


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fill uniformly within gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = fans(tensor)
    bound = gain * math.sqrt(6 / (fan_in + fan_out))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fill with normal numbers of standard deviation gain sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    fan_in, fan_out = fans(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2 / (fan_in + fan_out)))


def _he(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = fans(tensor)[0 if mode == "fan_in" else 1]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Fill uniformly within gain sqrt(3 / fan) (He et al., arXiv 1502.01852).

    Args:
        tensor: the weight.
        a: the slope, for "leaky_relu".
        mode: "fan_in" or "fan_out".
        nonlinearity: the activation after the weight; see `calculate_gain`.
    """
    bound = math.sqrt(3) * _he(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Tensor:
    """Fill with normal numbers of standard deviation gain / sqrt(fan); see `kaiming_uniform_`."""
    return normal_(tensor, 0.0, _he(tensor, a, mode, nonlinearity))


@no_grad()
def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Fill with `gain` times a random matrix of orthonormal rows or columns (Saxe et al., arXiv 1312.6120).

    A tensor of more axes is a matrix [first axis, all others].

    Raises:
        ValueError: the tensor has fewer than two axes.
    """
    if tensor._data.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows = tensor._data.shape[0]
    flat = tensor.detach().reshape(rows, -1).normal_()._data
    q, r = np.linalg.qr(flat.T if flat.shape[0] < flat.shape[1] else flat)
    q = q * np.sign(np.diag(r))
    tensor._data[...] = (q.T if flat.shape[0] < flat.shape[1] else q).reshape(tensor._data.shape) * gain
    tensor._shared_counter().value += 1
    return tensor


@no_grad()
def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with normal random numbers, redrawn until they lie in [a, b].

    Raises:
        ValueError: a is not below b.
    """
    if not a < b:
        raise ValueError(f"trunc_normal_ expects a < b, got a={a}, b={b}")
    source = random_source(generator)
    values = source.normal(mean, std, tensor._data.shape)
    outside = (values < a) | (values > b)
    while outside.any():
        values[outside] = source.normal(mean, std, int(outside.sum()))
        outside = (values < a) | (values > b)
    return tensor.copy_(from_array(values))


@no_grad()
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution with a Dirac delta, so output channel i is input channel i while both exist.

    Raises:
        ValueError: the tensor does not have 3, 4 or 5 axes, or the output channels are not divisible by the groups.
    """
    shape = tensor._data.shape
    if len(shape) not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    values = np.zeros(shape)
    per_group = shape[0] // groups
    centre = tuple(size // 2 for size in shape[2:])
    for group in range(groups):
        for channel in range(min(per_group, shape[1])):
            values[(group * per_group + channel, channel, *centre)] = 1
    return tensor.copy_(from_array(values))


@no_grad()
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix with normal random numbers, and a fraction `sparsity` of each column (rounded up) with zeros.

    Raises:
        ValueError: the tensor is not a matrix.
    """
    if tensor._data.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    source = random_source(generator)
    rows, columns = tensor._data.shape
    values = source.normal(0, std, (rows, columns))
    for column in range(columns):
        values[source.permutation(rows)[: math.ceil(sparsity * rows)], column] = 0
    return tensor.copy_(from_array(values))


def start_linear(weight: Tensor, bias: Tensor | None, fan_in: int) -> None:
    """Fill weight and bias uniformly within 1 / sqrt(fan_in): the initial values of linear layers and convolutions."""
    if weight._data.size:
        kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        bound = 1 / math.sqrt(fan_in) if fan_in else 0
        uniform_(bias, -bound, bound)
