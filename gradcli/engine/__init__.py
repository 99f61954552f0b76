"""An autograd engine on NumPy, in the shape of PyTorch's: `from gradcli import engine as torch`."""

# The methods are bound before the rest is imported, and the names are shown as in a table.
# ruff: isort: skip_file
# ruff: noqa: E402, N812
# fmt: off
from __future__ import annotations

import math as _math
from builtins import bool as _Truth
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from gradcli.engine.interface import methods as _methods

_methods.bind()

from gradcli.engine import amp, autograd, cuda, linalg, random, special, testing, utils
from gradcli.engine.creation import (
    arange, as_tensor, bernoulli, empty, empty_like, eye, from_numpy, full, full_like, linspace, logspace,
    multinomial, normal, ones, ones_like, rand, rand_like, randint, randn, randn_like, randperm, scalar_tensor,
    tensor, zeros, zeros_like,
)
from gradcli.engine.generator import (
    Generator, default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state,
)
from gradcli.engine.ops.activation import (
    celu, log_softmax, prelu, relu, selu, softmax,
)
from gradcli.engine.ops.arithmetic import (
    add, div, floor_divide, fmod, mul, neg, positive, pow, reciprocal, remainder, rsub,
    square, sub,
)
from gradcli.engine.ops.arrangement import (
    atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_tensors, cartesian_prod, column_stack,
    diagflat, dstack, fliplr, flipud, rot90, tensor_split, tril_indices, triu_indices,
)
from gradcli.engine.ops.comparison import (
    allclose, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, clamp, clamp_max, clamp_min, eq, equal, ge, gt,
    isclose, isfinite, isinf, isnan, le, logical_and, logical_not, logical_or, logical_xor, lt, maximum, minimum,
    ne, where,
)
from gradcli.engine.ops.complex_numbers import (
    angle, complex, conj, imag, is_complex, polar, real, resolve_conj, view_as_complex, view_as_real,
)
from gradcli.engine.ops.contraction import (
    einsum, tensordot,
)
from gradcli.engine.ops.copies import (
    clone, flip, roll, tile,
)
from gradcli.engine.ops.derived import (
    addbmm, addcdiv, addcmul, addmv, addr, aminmax, cross, cummax, cummin, dist, float_power, fmax, fmin,
    heaviside, kthvalue, ldexp, lerp, logaddexp2, logcumsumexp, matrix_power, msort, nan_to_num, nanmean,
    quantile, std_mean, trapezoid, var_mean, vdot,
)
from gradcli.engine.ops.bessel import i0
from gradcli.engine.ops.elementwise import (
    abs, acos, acosh, asin, asinh, atan, atan2, atanh, ceil, cos, cosh, deg2rad, digamma, erf, erfc, exp, exp2,
    expm1, floor, frac, hypot, lgamma, log, log10, log1p, log2, polygamma, rad2deg, round,
    rsqrt, sgn, sigmoid, sign, sin, sinc, sinh, sqrt, tan, tanh, trunc,
)
from gradcli.engine.ops.determinants import det, logdet, slogdet
from gradcli.engine.ops.factorisation import (
    cdist, pdist,
)
from gradcli.engine.ops.factorisation import pinv as pinverse
from gradcli.engine.ops.older import cholesky, qr, svd, triangular_solve
from gradcli.engine.ops.indexing import (
    gather, index_add, index_copy, index_put, index_select, masked_select,
    scatter, scatter_add, take,
)
from gradcli.engine.ops.joining import (
    argsort, cat, diag, diag_embed, diff, gradient, hstack, kron, meshgrid, repeat_interleave, sort, stack, topk,
    vstack,
)
from gradcli.engine.ops.linalg import (
    addmm, baddbmm, bmm, dot, inv, matmul, mm, mv, outer, trace,
)
from gradcli.engine.ops.logarithms import logaddexp, logit, xlogy
from gradcli.engine.ops.masks import (
    masked_fill, tril, triu,
)
from gradcli.engine.ops.operands import promoted as promote_types, result_type
from gradcli.engine.ops.parts import (
    chunk, diagonal, narrow, select, split, unbind,
)
from gradcli.engine.ops.reduction import (
    all, amax, amin, any, argmax, argmin, count_nonzero, max, mean, min, nansum, prod, sum,
)
from gradcli.engine.ops.searching import (
    bincount, bucketize, nonzero, searchsorted, take_along_dim, unique,
)
from gradcli.engine.ops.shape import (
    broadcast_to, flatten, movedim, permute, ravel, reshape, squeeze, t, transpose, unflatten, unsqueeze,
)
from gradcli.engine.ops.statistics import (
    cumprod, cumsum, logsumexp, norm, std, var,
)
from gradcli.engine.ops.strides import (
    as_strided,
)
from gradcli.engine.interface.value_methods import (
    is_floating_point, numel,
)
from gradcli.engine.interface.environment import (
    are_deterministic_algorithms_enabled, broadcast_shapes, can_cast, contiguous_format, finfo, get_num_threads,
    iinfo, preserve_format, strided,
    is_anomaly_check_nan_enabled, is_anomaly_enabled, set_num_threads, use_deterministic_algorithms,
)
from gradcli.engine.interface.calling import operations_of as _operations_of
from gradcli.engine.interface.environment import LEGACY_TENSORS as _LEGACY_TENSORS
from gradcli.engine.interface.missing_names import refusal as _refusal
from gradcli.engine.ops.arrangement import combinations, dsplit, hsplit, vsplit
from gradcli.engine.ops.derived import cumulative_trapezoid
from gradcli.engine.ops.linalg import adjoint, inner
from gradcli.engine.ops.matrices import (
    chain_matmul, cholesky_inverse, cholesky_solve, corrcoef, cov, matrix_exp, renorm, vander,
)
from gradcli.engine.ops.numbers import (
    bitwise_left_shift, bitwise_right_shift, copysign, erfinv, frexp, gcd, isneginf, isposinf, isreal, lcm, nextafter,
    mvlgamma, signbit,
)
from gradcli.engine.ops.scattering import (
    diagonal_scatter, index_fill, index_reduce, masked_scatter, scatter_reduce, select_scatter, slice_scatter,
)
from gradcli.engine.ops.medians import median, nanmedian
from gradcli.engine.ops.searching import argwhere, histc, histogram, isin, mode, unique_consecutive
from gradcli.engine.interface.value_methods import is_nonzero, is_same_size, is_signed
from gradcli.engine.dtypes import (
    Size, complex64, complex128, device, dtype, float16, float32, float64, get_default_dtype, int8, int16, int32,
    int64,
    set_default_dtype, uint8,
)
from gradcli.engine.dtypes import bool_ as bool
from gradcli.engine.interface.files import load, save
from gradcli.engine.utils import checkpoint as _checkpoint  # noqa: F401  (an attribute of utils once it is imported)
from gradcli.engine.grad_mode import (
    enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled,
)
from gradcli.engine.interface.printing import set_printoptions
from gradcli.engine.tensor import Tensor

if _TYPE_CHECKING:
    from gradcli.engine import func, nn, optim
    from gradcli.engine.func import vmap
    from gradcli.engine.nn.functional import (
        adaptive_avg_pool1d, alpha_dropout, avg_pool1d, bilinear, binary_cross_entropy_with_logits, channel_shuffle,
        conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d, cosine_embedding_loss,
        cosine_similarity, dropout, group_norm, hardshrink, hinge_embedding_loss, kl_div, layer_norm,
        margin_ranking_loss, max_pool1d, max_pool2d, max_pool3d, pairwise_distance, pixel_shuffle, pixel_unshuffle,
        relu_, rms_norm, rrelu, selu_, threshold, threshold_, triplet_margin_loss,
    )
    from gradcli.engine.nn.functions.native import batch_norm, embedding, instance_norm

double, float, half = float64, float32, float16
long, int, short = int64, int32, int16
cfloat, cdouble = complex64, complex128
pi, inf, nan, e = _math.pi, _math.inf, _math.nan, _math.e
absolute, multiply, subtract, divide, true_divide = abs, mul, sub, div, div
arcsin, arccos, arctan, arctan2, clip = asin, acos, atan, atan2, clamp
less, greater, ger, inverse, concat, concatenate = lt, gt, outer, inv, cat, cat
swapaxes, swapdims, moveaxis = transpose, transpose, movedim
arccosh, arcsinh, arctanh, fix, negative, trapz = acosh, asinh, atanh, trunc, neg, trapezoid
greater_equal, less_equal, not_equal, row_stack = ge, le, ne, vstack
split_with_sizes, matrix_rank, newaxis, asarray = split, linalg.matrix_rank, None, as_tensor
conj_physical, resolve_neg = conj, resolve_conj
autocast = amp.autocast
globals().update(_LEGACY_TENSORS)
globals().update({f"{name}_": getattr(Tensor, f"{name}_") for name in _methods.IN_PLACE_FUNCTIONS.split()})
globals().update({name: getattr(Tensor, name) for name in ("detach", "detach_", "fill_", "zero_", "index_put_")})
globals().update(_operations_of(globals()))
__version__ = "2.13.0"  # of PyTorch, whose behaviour this follows


def is_tensor(obj: object) -> _Truth:
    """Tell whether an object is a tensor."""
    return isinstance(obj, Tensor)


_FUNCTIONAL = (
    "adaptive_avg_pool1d", "alpha_dropout", "avg_pool1d", "bilinear", "binary_cross_entropy_with_logits",
    "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "dropout",
    "group_norm", "hardshrink", "hinge_embedding_loss", "kl_div", "layer_norm",
    "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "pairwise_distance",
    "pixel_shuffle", "pixel_unshuffle", "relu_", "rms_norm", "rrelu",
    "selu_", "threshold", "threshold_", "triplet_margin_loss",
)
_IMPORTED_WHEN_ASKED_FOR = {
    **{name: f"gradcli.engine.{name}" for name in ("func", "nn", "optim")},
    **dict.fromkeys(_FUNCTIONAL, "gradcli.engine.nn.functional"),
    **dict.fromkeys(("batch_norm", "embedding", "instance_norm"), "gradcli.engine.nn.functions.native"),
    "vmap": "gradcli.engine.func",
}
"""Names that a Function written by hand rarely needs, with the modules of the layers: a tenth of the time to import."""


def __getattr__(name: str) -> _Any:
    """Import what is imported when it is asked for; refuse a name that is not here."""
    home = _IMPORTED_WHEN_ASKED_FOR.get(name)
    if home is None:
        raise _refusal("", name, {**globals(), **_IMPORTED_WHEN_ASKED_FOR})
    module = _import_module(home)
    value = globals()[name] = module if home.endswith(f".{name}") else getattr(module, name)
    return value


def __dir__() -> list[str]:
    """List what is there, imported or not."""
    return sorted({*globals(), *_IMPORTED_WHEN_ASKED_FOR})


__all__ = [  # noqa: RUF022  (sorted as one table)
    "Generator", "Size", "Tensor", "abs", "absolute", "acos", "acosh", "adaptive_avg_pool1d", "add", "addbmm",
    "addcdiv", "addcmul", "addmm", "addmv", "addr", "adjoint", "all", "allclose", "alpha_dropout", "amax", "amin",
    "aminmax", "amp", "angle", "any", "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "are_deterministic_algorithms_enabled", "argmax", "argmin", "argsort", "argwhere", "as_strided",
    "as_tensor", "asarray", "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "autocast", "autograd", "avg_pool1d", "baddbmm", "batch_norm", "bernoulli", "bilinear",
    "binary_cross_entropy_with_logits", "bincount", "bitwise_and", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "block_diag", "bmm", "bool", "broadcast_shapes",
    "broadcast_tensors", "broadcast_to", "bucketize", "can_cast", "cartesian_prod", "cat", "cdist", "cdouble",
    "ceil", "celu", "cfloat", "chain_matmul", "channel_shuffle", "cholesky", "cholesky_inverse", "cholesky_solve",
    "chunk", "clamp", "clamp_max", "clamp_min", "clip", "clone", "column_stack", "combinations", "complex",
    "complex128", "complex64", "concat", "concatenate", "conj", "conj_physical", "contiguous_format", "conv1d",
    "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "copysign", "corrcoef", "cos", "cosh",
    "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cov", "cross", "cuda", "cummax", "cummin",
    "cumprod", "cumsum", "cumulative_trapezoid", "default_generator", "deg2rad", "det", "device", "diag",
    "diag_embed", "diagflat", "diagonal", "diagonal_scatter", "diff", "digamma", "dist", "div", "divide", "dot",
    "double", "dropout", "dsplit", "dstack", "dtype", "e", "einsum", "embedding", "empty", "empty_like",
    "enable_grad", "eq", "equal", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "eye", "finfo", "fix", "flatten",
    "flip", "fliplr", "flipud", "float", "float16", "float32", "float64", "float_power", "floor", "floor_divide",
    "fmax", "fmin", "fmod", "frac", "frexp", "from_numpy", "full", "full_like", "func", "gather", "gcd", "ge", "ger",
    "gradient",
    "get_default_dtype", "get_num_threads", "get_rng_state", "greater", "greater_equal", "group_norm", "gt", "half",
    "hardshrink", "heaviside", "hinge_embedding_loss", "histc", "histogram", "hsplit", "hstack", "hypot", "i0", "iinfo",
    "imag",
    "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "inf", "inference_mode",
    "initial_seed", "inner", "instance_norm", "int", "int16", "int32", "int64", "int8", "inv", "inverse",
    "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_complex", "is_floating_point", "is_grad_enabled",
    "is_inference_mode_enabled", "is_nonzero", "is_same_size", "is_signed", "isclose", "isfinite", "isin", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "kl_div", "kron", "kthvalue", "layer_norm", "lcm", "ldexp", "le",
    "lerp", "less", "less_equal", "lgamma", "linalg", "linspace", "load", "log", "log10", "log1p", "log2",
    "log_softmax", "logaddexp", "logaddexp2", "logcumsumexp", "logdet", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logit", "logspace", "logsumexp", "long", "lt", "manual_seed", "margin_ranking_loss",
    "masked_fill", "masked_scatter", "masked_select", "matmul", "matrix_exp", "matrix_power", "matrix_rank", "max",
    "max_pool1d", "max_pool2d", "max_pool3d", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mm",
    "mode", "moveaxis", "movedim", "msort", "mul", "multinomial", "multiply", "mv", "mvlgamma", "nan", "nan_to_num",
    "nanmean", "nanmedian", "nansum", "narrow", "ne", "neg", "negative", "newaxis", "nextafter", "nn", "no_grad",
    "nonzero",
    "norm", "normal", "not_equal", "numel", "ones", "ones_like", "optim", "outer", "pairwise_distance", "pdist",
    "permute", "pi", "pinverse", "pixel_shuffle", "pixel_unshuffle", "polar", "polygamma", "positive", "pow",
    "prelu", "preserve_format", "prod", "promote_types", "qr", "quantile", "rad2deg", "rand", "rand_like",
    "randint", "randn", "randn_like", "random", "randperm", "ravel", "real", "reciprocal", "relu", "relu_",
    "remainder", "renorm", "repeat_interleave", "reshape", "resolve_conj",
    "resolve_neg", "result_type", "rms_norm", "roll", "rot90", "round",
    "row_stack", "rrelu", "rsqrt", "rsub", "save", "scalar_tensor", "scatter", "scatter_add", "scatter_reduce",
    "searchsorted", "seed", "select", "select_scatter", "selu", "selu_", "set_default_dtype", "set_grad_enabled",
    "set_num_threads", "set_printoptions", "set_rng_state", "sgn", "short", "sigmoid", "sign", "signbit", "sin",
    "sinc", "sinh", "slice_scatter", "slogdet", "softmax", "sort", "special", "split", "split_with_sizes", "sqrt",
    "square", "squeeze", "stack", "std", "std_mean", "strided", "sub", "subtract", "sum", "svd", "swapaxes",
    "swapdims", "t", "take", "take_along_dim", "tan", "tanh", "tensor", "tensor_split", "tensordot", "testing",
    "threshold", "threshold_", "tile", "topk", "trace", "transpose", "trapezoid", "trapz", "triangular_solve", "tril",
    "tril_indices", "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "uint8", "unbind",
    "unflatten", "unique", "unique_consecutive", "unsqueeze", "use_deterministic_algorithms", "utils", "vander", "var",
    "var_mean", "vdot", "view_as_complex", "view_as_real", "vmap", "vsplit", "vstack", "where", "xlogy", "zeros",
    "zeros_like",
]
