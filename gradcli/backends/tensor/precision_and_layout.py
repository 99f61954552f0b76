"""Arguments as a backend with tensors passes them: in 64 bits, and laid out in memory in several ways."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradcli.backends.base import Layout
from gradcli.backends.tensor.framework import Framework, double_precision
from gradcli.cases import Argument


def in_64_bits(arguments: Sequence[Argument]) -> tuple[tuple[Argument, ...], dict[int, str]]:
    """The arguments with every tensor of a lower precision raised to 64 bits, and what those were, by position."""
    low: dict[int, str] = {}
    made: list[Argument] = []
    for position, argument in enumerate(arguments):
        own = argument.dtype_name if argument.is_tensor and argument.value.dtype.kind in "fc" else ""
        wanted = double_precision(own)
        if wanted == own:
            made.append(argument)
            continue
        low[position] = own
        made.append(replace(argument, value=argument.value.astype(wanted), dtype=None))
    return tuple(made), low


def laid_out(framework: Framework, tensor: Any, layout: Layout) -> Any:
    """A tensor of the same values that lies in memory as asked, for a cotangent or for `in_memory_of`.

    Strided: every other column of a buffer twice as wide, a constant between them, so that code which reads on past an
    entry reads what depends on no input. Transposed: the last two axes exchanged in memory. Expanded: one number for
    all entries, which are equal.
    """
    if layout is Layout.TRANSPOSED and tensor.dim() >= 2:
        return tensor.transpose(-1, -2).clone().contiguous().transpose(-1, -2)
    if layout is Layout.STRIDED and tensor.dim() >= 1:
        return framework.strided(tensor)
    if layout is Layout.EXPANDED and tensor.dim() >= 1 and tensor.numel():
        return tensor.reshape(-1)[0].expand(tensor.shape)
    return tensor
