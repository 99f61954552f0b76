"""The namespace `linalg`: solving, factoring and norms of matrices."""

from gradcli.engine.ops.linalg import cholesky, det, eigh, inv, matmul, slogdet, solve
from gradcli.engine.ops.reduction import norm, vector_norm
from gradcli.engine.ops.shape import diagonal

__all__ = ["cholesky", "det", "diagonal", "eigh", "inv", "matmul", "norm", "slogdet", "solve", "vector_norm"]
