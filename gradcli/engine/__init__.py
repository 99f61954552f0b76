"""An autograd engine on NumPy, in the shape of PyTorch's: `from gradcli import engine as torch`."""

from __future__ import annotations

import math as _math
from builtins import bool as _TruthType

from gradcli.engine import methods as _methods

_methods.bind()

from gradcli.engine import autograd, cuda, linalg, nn, optim, utils  # noqa: E402  (they use the bound methods)
from gradcli.engine.creation import (
    Generator, arange, as_tensor, bernoulli, default_generator, empty, empty_like, eye, from_numpy, full,
    full_like, get_rng_state, linspace, logspace, manual_seed, set_rng_state, normal, ones, ones_like, rand, rand_like, randint, randn,
    randn_like, randperm, scalar_tensor, tensor, zeros, zeros_like,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.activation import (
    celu, log_softmax, prelu, relu, selu, softmax,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.arithmetic import (
    add, addcdiv, addcmul, div, floor_divide, fmod, lerp, mul, neg, positive, pow, reciprocal, remainder, rsub,
    square, sub,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.comparison import (
    allclose, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clamp, clamp_max, clamp_min, eq, equal, ge, gt,
    isclose, isfinite, isinf, isnan, le, logical_and, logical_not, logical_or, logical_xor, lt, maximum, minimum,
    ne, where,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.complexes import (
    angle, complex, conj, imag, is_complex, polar, real, view_as_complex, view_as_real,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.contraction import (
    einsum, tensordot,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.elementwise import (
    abs, acos, acosh, asin, asinh, atan, atan2, atanh, ceil, cos, cosh, deg2rad, digamma, erf, erfc, exp, exp2,
    expm1, floor, frac, hypot, lgamma, log, log10, log1p, log2, logaddexp, logit, polygamma, rad2deg, round,
    rsqrt, sgn, sigmoid, sign, sin, sinc, sinh, sqrt, tan, tanh, trunc, xlogy,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.indexing import (
    gather, index_add, index_copy, index_fill, index_put, index_select, masked_fill, masked_scatter,
    masked_select, nonzero, scatter, scatter_add, take, take_along_dim, tril, triu,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.joining import (
    argsort, cat, chunk, diag, diag_embed, diff, hstack, kron, meshgrid, repeat_interleave, sort, split, stack,
    topk, unbind, vstack,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.linalg import (
    addmm, baddbmm, bmm, cholesky, det, dot, inv, logdet, matmul, mm, mv, outer, slogdet, trace,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.reduction import (
    all, amax, amin, any, argmax, argmin, count_nonzero, cumprod, cumsum, logsumexp, max, mean, median, min,
    nansum, norm, prod, std, sum, var,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.ops.shape import (
    broadcast_to, clone, diagonal, flatten, flip, movedim, narrow, permute, ravel, reshape, roll, select, squeeze,
    t, tile, transpose, unflatten, unsqueeze,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.writing import (
    is_floating_point, numel,
)  # noqa: E402, A004  # fmt: skip
from gradcli.engine.dtypes import (  # noqa: E402
    Size, complex64, complex128, device, dtype, float16, float32, float64, get_default_dtype, int8, int16, int32,
    int64,
    set_default_dtype, uint8,
)  # fmt: skip
from gradcli.engine.dtypes import bool_ as bool  # noqa: A004, E402
from gradcli.engine.grad_mode import (  # noqa: E402
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)  # fmt: skip
from gradcli.engine.printing import set_printoptions  # noqa: E402
from gradcli.engine.tensor import Tensor  # noqa: E402

double, float, half = float64, float32, float16
long, int, short = int64, int32, int16
cfloat, cdouble = complex64, complex128
pi, inf, nan, e = _math.pi, _math.inf, _math.nan, _math.e
absolute, multiply, subtract, divide, true_divide = abs, mul, sub, div, div
arcsin, arccos, arctan, arctan2, clip = asin, acos, atan, atan2, clamp
less, greater, ger, inverse, concat, concatenate = lt, gt, outer, inv, cat, cat
swapaxes, moveaxis = transpose, movedim


def is_tensor(obj: object) -> _TruthType:
    """Tell whether an object is a tensor."""
    return isinstance(obj, Tensor)


__all__ = [
    "Generator", "Size", "Tensor", "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "addmm", "all",
    "allclose", "amax", "amin", "angle", "any", "arange", "arccos", "arcsin", "arctan", "arctan2", "argmax",
    "argmin", "argsort", "as_tensor", "asin", "asinh", "atan", "atan2", "atanh", "autograd", "baddbmm", "bernoulli",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "bmm", "bool", "broadcast_to", "cat", "cdouble",
    "ceil", "celu", "cfloat", "cholesky", "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "complex",
    "complex128", "complex64", "concat", "concatenate", "conj", "cos", "cosh", "count_nonzero", "cuda", "cumprod",
    "cumsum", "default_generator", "deg2rad", "det", "device", "diag", "diag_embed", "diagonal", "diff", "digamma",
    "div", "divide", "dot", "double", "dtype", "e", "einsum", "empty", "empty_like", "enable_grad", "eq", "equal",
    "erf", "erfc", "exp", "exp2", "expm1", "eye", "flatten", "flip", "float", "float16", "float32", "float64",
    "floor", "floor_divide", "fmod", "frac", "from_numpy", "full", "full_like", "gather", "ge", "ger",
    "get_default_dtype", "greater", "gt", "half", "hstack", "hypot", "imag", "index_add", "index_copy",
    "index_fill", "index_put", "index_select", "inf", "inference_mode", "int", "int16", "int32", "int64", "int8",
    "inv", "inverse", "is_complex", "is_floating_point", "is_grad_enabled", "is_inference_mode_enabled",
    "is_tensor", "isclose", "isfinite", "isinf", "isnan", "kron", "le", "lerp", "less", "lgamma", "linalg",
    "linspace", "log", "log10", "log1p", "log2", "log_softmax", "logaddexp", "logdet", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "long", "lt", "manual_seed", "get_rng_state", "set_rng_state", "masked_fill",
    "masked_scatter", "masked_select", "matmul", "max", "maximum", "mean", "median", "meshgrid", "min", "minimum",
    "mm", "moveaxis", "movedim", "mul", "multiply", "mv", "nan", "nansum", "narrow", "ne", "neg", "nn", "no_grad",
    "nonzero", "norm", "normal", "numel", "ones", "ones_like", "optim", "outer", "permute", "pi", "polar",
    "polygamma", "positive", "pow", "prelu", "prod", "rad2deg", "rand", "rand_like", "randint", "randn",
    "randn_like", "randperm", "ravel", "real", "reciprocal", "relu", "remainder", "repeat_interleave", "reshape",
    "roll", "round", "rsqrt", "rsub", "scalar_tensor", "scatter", "scatter_add", "select", "selu",
    "set_default_dtype", "set_grad_enabled", "set_printoptions", "sgn", "short", "sigmoid", "sign", "sin", "sinc",
    "sinh", "slogdet", "softmax", "sort", "split", "sqrt", "square", "squeeze", "stack", "std", "sub", "subtract",
    "sum", "swapaxes", "t", "take", "take_along_dim", "tan", "tanh", "tensor", "tensordot", "tile", "topk", "trace",
    "transpose", "tril", "triu", "true_divide", "trunc", "uint8", "unbind", "unflatten", "unsqueeze", "utils",
    "var", "view_as_complex", "view_as_real", "vstack", "where", "xlogy", "zeros", "zeros_like",
]  # fmt: skip
