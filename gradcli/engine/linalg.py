"""The namespace `linalg`: solving, factoring and norms of matrices."""

from typing import Any

from gradcli.engine.interface.calling import operations_of
from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.ops.derived import linalg_cross as cross
from gradcli.engine.ops.derived import matrix_power, multi_dot, vecdot
from gradcli.engine.ops.determinants import det, slogdet
from gradcli.engine.ops.eigen import (
    cholesky_ex,
    eig,
    eigvals,
    householder_product,
    inv_ex,
    solve_ex,
    tensorinv,
    tensorsolve,
)
from gradcli.engine.ops.factorisation import lstsq, pinv, qr, svd, svdvals
from gradcli.engine.ops.lapack import LinAlgError
from gradcli.engine.ops.linalg import cholesky, eigh, inv, matmul, solve
from gradcli.engine.ops.matrices import (
    cond,
    eigvalsh,
    matrix_exp,
    matrix_norm,
    matrix_rank,
    norm,
    solve_triangular,
)
from gradcli.engine.ops.matrices import rising_vander as vander
from gradcli.engine.ops.parts import diagonal_of_matrices as diagonal
from gradcli.engine.ops.statistics import vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "householder_product",
    "inv",
    "inv_ex",
    "lstsq",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]


globals().update(operations_of(globals()))


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here."""
    raise refusal(".linalg", name, globals())
