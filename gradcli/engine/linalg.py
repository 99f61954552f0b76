"""The namespace `linalg`: solving, factoring and norms of matrices."""

from gradcli.engine.ops.derived import linalg_cross as cross
from gradcli.engine.ops.derived import matrix_power, multi_dot, vecdot
from gradcli.engine.ops.factorisation import lstsq, pinv, qr, svd, svdvals
from gradcli.engine.ops.lapack import LinAlgError
from gradcli.engine.ops.linalg import cholesky, det, eigh, inv, matmul, slogdet, solve
from gradcli.engine.ops.parts import diagonal
from gradcli.engine.ops.statistics import norm, vector_norm

__all__ = [
    "LinAlgError",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_power",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "vecdot",
    "vector_norm",
]
