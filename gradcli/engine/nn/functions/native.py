"""The functions of networks that programs also call by the library's own name, some with another order of arguments."""

from __future__ import annotations

from typing import Any

from gradcli.engine.nn import functional
from gradcli.engine.tensor import Tensor

__all__ = ["batch_norm", "embedding", "instance_norm"]


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    """Return the rows of a table that an index names; the padding row gets no gradient."""
    return functional.embedding(indices, weight, None if padding_idx < 0 else padding_idx)


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Return the tensor normalised over all axes but the second; see `functional.batch_norm`."""
    del cudnn_enabled
    return functional.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any, eps: float = 1e-5, **further: Any
) -> Tensor:
    """Return every channel of every example with mean 0 and variance 1; running statistics are not kept."""
    if rest and (rest[0] is not None or rest[1] is not None):
        raise NotImplementedError("instance_norm: running statistics are not supported by gradcli.engine")
    del further
    return functional.instance_norm(input, weight=weight, bias=bias, eps=rest[4] if len(rest) > 4 else eps)
