"""Compressed sparse matrices whose indices are checked, since gradcli chooses them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def compressed_matrices_checked() -> Iterator[None]:
    """Make SciPy raise at the indices of a compressed matrix that lie outside it.

    By itself it checks their number alone, and a product with the matrix then writes outside of its memory. A SciPy
    that is not imported yet stays as it is.
    """
    sparse = sys.modules.get("scipy.sparse")
    kinds: list[Any] = [getattr(sparse, name, object) for name in ("csr_matrix", "bsr_matrix")]
    owners = {owner for kind in kinds for owner in kind.__mro__ if "check_format" in vars(owner)}
    before = {owner: vars(owner)["check_format"] for owner in owners}
    try:
        for owner, check in before.items():
            owner.check_format = _fully(check)
        yield
    finally:
        for owner, check in before.items():
            owner.check_format = check


def _fully(check: Any) -> Any:
    def check_format(matrix: Any, full_check: bool = True) -> None:
        check(matrix, full_check=full_check)
        if np.any(np.diff(matrix.indptr) < 0):  # a full check lets those pass that end with 0
            raise ValueError("indptr must be a non-decreasing sequence")
        check(matrix, full_check=True)

    return check_format
