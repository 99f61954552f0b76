"""The namespace `linalg`: solving, factoring and norms of matrices."""

from gradcli.engine.ops.factorisation import lstsq, pinv, qr, svd, svdvals
from gradcli.engine.ops.linalg import cholesky, det, eigh, inv, matmul, slogdet, solve
from gradcli.engine.ops.parts import diagonal
from gradcli.engine.ops.statistics import norm, vector_norm

__all__ = [
    "cholesky",
    "det",
    "diagonal",
    "eigh",
    "inv",
    "lstsq",
    "matmul",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "vector_norm",
]
