"""Arrays whose entries only make sense together: masks, probabilities, and matrices with a structure."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument

_ONE = 1e-5
"""Entries whose sum is that close to 1 are taken for probabilities."""


def has_structure(value: NDArray[Any]) -> bool:
    """Whether an array is visibly a symmetric, triangular or orthogonal matrix, a mask, or probabilities."""
    if value.size < 2:
        return False
    if bool(((value == 0) | (value == 1)).all()):
        return True
    rows = value.real.sum(-1)
    if bool((value.real >= 0).all()) and (bool((np.abs(rows - 1) <= _ONE).all()) or abs(rows.sum() - 1) <= _ONE):
        return True
    if value.ndim < 2 or value.shape[-1] != value.shape[-2] or value.shape[-1] < 2:
        return False
    mirrored = np.swapaxes(value, -1, -2)
    alike = [mirrored, mirrored.conj(), -mirrored, np.tril(value), np.triu(value)]
    return any(np.array_equal(value, other) for other in alike) or _is_orthogonal(value)


def _is_orthogonal(value: NDArray[Any]) -> bool:
    with np.errstate(all="ignore"):
        product = value @ np.swapaxes(value.conj(), -1, -2)
    return bool(np.allclose(product, np.eye(value.shape[-1])))


def equal_eigenvalues(arguments: Sequence[Argument], active: Sequence[int]) -> Iterator[list[tuple[Argument, ...]]]:
    """The arguments with a multiple of the identity in place of each matrix that was drawn positive definite.

    Backward may divide by differences of eigenvalues where the function of the matrix is smooth.
    """
    for place in active:
        argument = arguments[place]
        if argument.domain == "spd" and argument.shape[-1] > 1:
            value = argument.value
            size = np.trace(value, axis1=-2, axis2=-1).real[..., None, None] / value.shape[-1]
            same = np.asarray(size * np.eye(value.shape[-1]), value.dtype)
            yield [(*arguments[:place], replace(argument, value=same, own=None), *arguments[place + 1 :])]


def label_of_equal_eigenvalues(drawn: Sequence[Argument], tried: Sequence[Argument]) -> str | None:
    """Where the gradient is wrong, if a matrix became a multiple of the identity; None if none did."""
    for before, after in zip(drawn, tried, strict=True):
        if after is not before and before.domain == "spd":
            return (
                f"where {after.name} is a multiple of the identity, a matrix of equal eigenvalues that gradcli tried "
                "in addition to the random inputs; if such matrices cannot occur in your program, give fixed numbers "
                "as inputs (the key 'value' in a spec, or tensors in Python)"
            )
    return None
