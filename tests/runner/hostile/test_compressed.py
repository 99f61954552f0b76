"""Compressed matrices of SciPy's at indices that gradcli chooses."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.engine.autograd import Function
from gradcli.runner.process.interference import compressed_matrices_checked
from gradcli.verdict import Verdict

sparse = pytest.importorskip("scipy.sparse")

VALUES = [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["csr_matrix", "csc_array"])
@pytest.mark.parametrize(
    ("columns", "pointers", "message"),
    [
        ([0, 7, 1], [0, 2, 3], "indices must be < 2"),
        ([0, -1, 1], [0, 2, 3], "indices must be >= 0"),
        ([0, 7, 1], [0, 3, 0], "indptr must be a non-decreasing sequence"),
        ([0, 1, 1], [0, 3, 2], "indptr must be a non-decreasing sequence"),
    ],
)
def test_a_matrix_with_entries_outside_is_refused(
    kind: str, columns: list[int], pointers: list[int], message: str
) -> None:
    make = getattr(sparse, kind)
    with compressed_matrices_checked(), pytest.raises(ValueError, match=message):
        make((VALUES, columns, pointers), shape=(2, 2))
    make((VALUES, columns, pointers), shape=(2, 2))


def test_a_right_matrix_is_taken() -> None:
    with compressed_matrices_checked():
        made = sparse.csr_matrix((VALUES, [0, 1, 1], [0, 2, 3]), shape=(2, 2))
        blocks = sparse.bsr_array((np.ones((2, 3, 3)), [0, 1], [0, 1, 2]), shape=(6, 6))
    assert made.toarray().tolist() == [[1.0, 2.0], [0.0, 3.0]]
    assert blocks.sum() == 18


def product(factor: float) -> type[Function]:
    """A compressed matrix times a vector; SciPy writes outside of its memory for indices that are too large."""

    class Product(Function):
        @staticmethod
        def forward(ctx: Any, values: Any, row_ptr: Any, col_ind: Any, vector: Any) -> Any:
            shape = (len(row_ptr) - 1, len(vector))
            matrix = sparse.csr_matrix((values.numpy(), col_ind.numpy(), row_ptr.numpy()), shape=shape)
            ctx.save_for_backward(values, row_ptr, col_ind, vector)
            return engine.from_numpy(matrix @ vector.numpy())

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            values, row_ptr, col_ind, vector = (each.numpy() for each in ctx.saved_tensors)
            of_entries = np.repeat(g.numpy(), np.diff(row_ptr))
            of_vector = np.zeros_like(vector)
            np.add.at(of_vector, col_ind, of_entries * values)
            of_values = factor * of_entries * vector[col_ind]
            return engine.from_numpy(of_values), None, None, engine.from_numpy(of_vector)

    return Product


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_the_indices_of_a_compressed_matrix_are_found(factor: float, unexplained: None) -> None:
    case = gradcli.check(product(factor), shrink=False, order=1).cases[0]
    assert case.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED), case.error
    assert [spec.domain for spec in case.inputs] == ["normal", "pointers", "indices", "normal"]
