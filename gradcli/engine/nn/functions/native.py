"""Network functions of the top-level namespace (as `torch.batch_norm`), whose arguments come in another order."""

from __future__ import annotations

from gradcli.engine.nn import functional
from gradcli.engine.tensor import Tensor

__all__ = ["batch_norm", "embedding", "instance_norm"]


def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1) -> Tensor:
    """Return the rows of a table at an index; see `functional.embedding`. -1 stands for no padding row."""
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
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: None = None,
    running_var: None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
    cudnn_enabled: bool = False,
) -> Tensor:
    """Return every channel of every example normalised; see `functional.instance_norm`."""
    del cudnn_enabled
    return functional.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)
