"""Which operation is which method and operator of Tensor: one table, bound when the engine is imported."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from gradcli.engine.backward import api as backward_api
from gradcli.engine.dtypes import BY_NAME
from gradcli.engine.in_place import in_place, overwritten, reshaped_in_place
from gradcli.engine.interface import environment, numpy_functions, printing, value_methods
from gradcli.engine.interface.calling import called_as_method
from gradcli.engine.interface.missing_names import no_attribute
from gradcli.engine.ops import (
    activation,
    arithmetic,
    arrangement,
    bessel,
    comparison,
    complex_numbers,
    contraction,
    copies,
    derived,
    determinants,
    elementwise,
    factorisation,
    indexing,
    joining,
    linalg,
    logarithms,
    masks,
    matrices,
    medians,
    numbers,
    older,
    parts,
    reduction,
    scattering,
    searching,
    shape,
    statistics,
    strides,
)
from gradcli.engine.tensor import Tensor

# Every name is a function of its module whose first argument is the tensor.
METHODS: dict[ModuleType, str] = {
    arithmetic: "add sub rsub mul div floor_divide remainder fmod neg positive reciprocal pow square",
    elementwise: """exp exp2 expm1 log log1p log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh
        atanh sigmoid erf erfc lgamma digamma sinc frac abs sign sgn round floor ceil trunc atan2
        hypot deg2rad rad2deg""",
    comparison: """eq ne lt le gt ge isnan isinf isfinite isclose allclose equal logical_not logical_and logical_or
        logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not maximum minimum clamp clamp_min clamp_max""",
    reduction: "sum nansum mean prod max min amax amin argmax argmin all any count_nonzero",
    statistics: "var std logsumexp norm cumsum cumprod",
    shape: """view reshape flatten unflatten ravel view_as reshape_as unsqueeze squeeze expand expand_as broadcast_to
        permute transpose t movedim size""",
    parts: "narrow select diagonal unfold split chunk unbind",
    copies: "clone contiguous to flip roll repeat tile",
    indexing: """gather scatter scatter_add index_select index_add index_copy index_put index_put_ take
        masked_select""",
    logarithms: "logit logaddexp xlogy",
    masks: "masked_fill tril triu",
    joining: "argsort sort topk diag_embed diag repeat_interleave kron diff",
    linalg: """mm bmm mv dot inner outer addmm baddbmm matmul trace inv""",
    determinants: "det slogdet logdet",
    contraction: "tensordot",
    bessel: "i0",
    older: "cholesky qr svd triangular_solve",
    arrangement: "diagflat fliplr flipud rot90 tensor_split hsplit vsplit dsplit sum_to_size",
    numbers: """frexp erfinv copysign isreal isposinf isneginf signbit mvlgamma nextafter gcd lcm bitwise_left_shift
        bitwise_right_shift""",
    matrices: "cholesky_solve cholesky_inverse matrix_exp cov corrcoef renorm",
    scattering: """put index_fill masked_scatter select_scatter slice_scatter diagonal_scatter fill_diagonal_
        scatter_reduce index_reduce""",
    environment: "new",
    derived: """lerp addcmul addcdiv addbmm addmv addr aminmax cross cummax cummin dist float_power fmax fmin heaviside
        kthvalue ldexp logaddexp2 logcumsumexp matrix_power msort nan_to_num nanmean quantile vdot""",
    searching: "nonzero take_along_dim unique bincount unique_consecutive isin argwhere mode histc histogram",
    medians: "median nanmedian",
    strides: "as_strided",
    complex_numbers: "conj angle is_complex",
    activation: "relu softmax log_softmax prelu",
    value_methods: """zero_ fill_ masked_fill_ index_fill_ copy_ uniform_ normal_ bernoulli_ exponential_ random_
        is_nonzero is_same_size is_signed item tolist numpy stride
        is_contiguous storage_offset untyped_storage is_floating_point numel element_size new_tensor new_zeros new_ones
        new_empty new_full""",
    backward_api: "backward",
}
ALIASES = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg", "absolute": "abs",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "clip": "clamp", "less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge",
    "not_equal": "ne", "swapaxes": "transpose", "swapdims": "transpose", "moveaxis": "movedim", "nelement": "numel",
    "ger": "outer", "inverse": "inv", "fix": "trunc", "split_with_sizes": "split", "unsafe_split": "split",
    "unsafe_chunk": "chunk", "conj_physical": "conj",
}  # fmt: skip
# Each name with an underscore writes the result of the operation to the tensor itself.
IN_PLACE = """add sub mul div pow remainder fmod floor_divide neg reciprocal square exp exp2 expm1 log log1p log2 log10
    sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh sigmoid erf frac abs sign round floor ceil trunc lerp addcmul
    addcdiv clamp clamp_min clamp_max clip relu put masked_scatter scatter scatter_add index_add index_copy
    tril triu cumsum cumprod addmm baddbmm logical_not eq ne lt le gt ge multiply divide subtract true_divide negative
    absolute fix arcsin arccos arctan arcsinh arccosh arctanh asinh acosh atanh arctan2 atan2 erfc erfinv lgamma digamma
    hypot xlogy float_power nan_to_num copysign ldexp heaviside logical_and logical_or logical_xor bitwise_and
    bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift deg2rad rad2deg sgn sinc logit renorm
    scatter_reduce index_reduce addmv addr addbmm less less_equal greater greater_equal not_equal gcd lcm i0"""
# Those that are also functions: `torch.exp_(x)`.
IN_PLACE_FUNCTIONS = """abs acos acosh addmv asin asinh atan atanh ceil clamp clamp_max clamp_min clip cos cosh deg2rad
    erf erfc exp exp2 expm1 floor frac log log10 log1p log2 logit nan_to_num neg rad2deg reciprocal round rsqrt sigmoid
    sin sinc sinh sqrt square tan tanh trunc xlogy absolute arccos arcsin arctan arctanh arccosh arcsinh fix negative"""
CONVERSIONS = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip


def _convert(name: str) -> Callable[[Tensor], Tensor]:
    kind = BY_NAME[name]

    def convert(self: Tensor) -> Tensor:
        return copies.to(self, kind)

    convert.__doc__ = f"Return the tensor with elements of type {name}."
    return convert


# Each name with an underscore makes the tensor its own view.
RESHAPED = "t transpose swapaxes swapdims squeeze unsqueeze"


def _reshaped(name: str, view: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any) -> Tensor:
        return reshaped_in_place(self, view, *args)

    method.__name__ = name + "_"
    method.__doc__ = f"Make the tensor what `{name}` would return of it, and return it."
    return method


# Untracked, these write to the tensor's memory without another array in between.
_DIRECT: dict[str, np.ufunc] = {
    "__iadd__": np.add, "__isub__": np.subtract, "__imul__": np.multiply, "__itruediv__": np.divide,
}  # fmt: skip


def _written(name: str, operation: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return in_place(self, operation, *args, **kwargs)

    method.__name__ = name + "_"
    method.__doc__ = f"Write the result of `{name}` to this tensor, and return it."
    return method


_WELCOME = frozenset((Tensor, float, int))


def _operator(operation: Callable[..., Tensor], name: str, *, swapped: bool = False) -> Callable[..., Any]:
    """Return an operator method that leaves foreign operands to their own class."""

    def method(self: Tensor, other: Any) -> Any:
        if other.__class__ not in _WELCOME and value_methods.unsupported(other):
            return NotImplemented
        return operation(self, other)

    def product(self: Tensor, other: Any) -> Any:
        return method(self, other) if isinstance(other, Tensor) else NotImplemented

    def reflected(self: Tensor, other: Any) -> Any:
        if other.__class__ not in _WELCOME and value_methods.unsupported(other):
            return NotImplemented
        return operation(other, self)

    reflected.__name__ = method.__name__ = product.__name__ = name
    if operation is linalg.matmul:
        return product  # a number has no axis; a tensor on the left has been asked before
    return reflected if swapped else method


OPERATORS: dict[str, Callable[..., Tensor]] = {
    "add": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul, "truediv": arithmetic.div,
    "floordiv": arithmetic.floor_divide, "mod": arithmetic.remainder, "pow": arithmetic.pow, "matmul": linalg.matmul,
    "lshift": numbers.bitwise_left_shift, "rshift": numbers.bitwise_right_shift,
    "and": comparison.bitwise_and, "or": comparison.bitwise_or, "xor": comparison.bitwise_xor,
}  # fmt: skip
COMPARISONS: dict[str, Callable[..., Tensor]] = {
    "eq": comparison.eq, "ne": comparison.ne, "lt": comparison.lt, "le": comparison.le, "gt": comparison.gt,
    "ge": comparison.ge,
}  # fmt: skip


def _where(self: Tensor, condition: Tensor, other: Any) -> Any:
    return comparison.where(condition, self, other)


def _type_as(self: Tensor, other: Tensor) -> Tensor:
    return copies.to(self, other)


def _cpu(self: Tensor) -> Tensor:
    return self


def _cuda(self: Tensor, device: Any = None) -> Tensor:
    return copies.to(self, device="cuda" if device is None else device)


def _bind_operators() -> None:
    for name, operation in OPERATORS.items():
        setattr(Tensor, f"__{name}__", _operator(operation, f"__{name}__"))
        setattr(Tensor, f"__r{name}__", _operator(operation, f"__r{name}__", swapped=True))
        setattr(Tensor, f"__i{name}__", _in_place_operator(operation, f"__i{name}__"))
    for name, operation in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _operator(operation, f"__{name}__"))
    specials: dict[str, Any] = {
        "__neg__": arithmetic.neg, "__pos__": arithmetic.positive, "__abs__": elementwise.abs,
        "__invert__": comparison.bitwise_not, "__getitem__": indexing.getitem, "__setitem__": indexing.setitem,
        "__repr__": printing.text, "__format__": printing.formatted, "__bool__": value_methods.truth,
        "__array__": value_methods.to_array, "__array_ufunc__": numpy_functions.array_ufunc,
        "__array_function__": numpy_functions.array_function,
        "__float__": lambda self: value_methods.real_scalar(self, float),
        "__int__": lambda self: value_methods.real_scalar(self, int),
        "__complex__": lambda self: complex(value_methods.scalar(self)), "__index__": value_methods.as_index,
        **{name: property(environment.never) for name in ("is_sparse", "is_quantized", "is_meta", "is_mkldnn")},
        **dict.fromkeys(["is_shared", "is_pinned", "is_conj", "is_neg", "is_inference"], environment.never),
        **dict.fromkeys(["resolve_conj", "resolve_neg"], environment.itself),
        "layout": property(environment.layout), "get_device": environment.get_device,
        "polygamma": lambda self, n: elementwise.polygamma(n, self), "pinverse": factorisation.pinv,
        "__getattr__": no_attribute, "_copied_to_grad": copies.copied_to_grad,
        "_is_view": lambda self: self._base is not None, "is_cpu": property(lambda _: True),
        "__contains__": value_methods.contains,
        "adjoint": linalg.adjoint,
        "cat": _cat_of, "stack": _stack_of, "where": _where, "type_as": _type_as, "cpu": _cpu,
        "cuda": _cuda, "type": value_methods.type_name,
        "dim": lambda self: self._data.ndim, "ndimension": lambda self: self._data.ndim,
        "T": property(shape.reverse_axes), "mT": property(shape.matrix_transpose),
        "H": property(linalg.matrix_adjoint), "mH": property(linalg.adjoint),
        "real": property(complex_numbers.real, lambda self, value: self.real.copy_(value)),
        "imag": property(complex_numbers.imag, lambda self, value: self.imag.copy_(value)),
    }  # fmt: skip
    for name, value in specials.items():
        setattr(Tensor, name, value)


def _in_place_operator(operation: Callable[..., Tensor], name: str) -> Callable[..., Any]:
    ufunc = _DIRECT.get(name)

    def method(self: Tensor, other: Any) -> Any:
        if other.__class__ is not Tensor and value_methods.unsupported(other):
            return NotImplemented
        if ufunc is not None and overwritten(self, other, ufunc):
            return self
        return in_place(self, operation, other)

    method.__name__ = name
    return method


def _cat_of(_: Tensor, tensors: Any, dim: int = 0) -> Tensor:
    return joining.cat(tensors, dim)


def _stack_of(_: Tensor, tensors: Any, dim: int = 0) -> Tensor:
    return joining.stack(tensors, dim)


@functools.cache
def bind() -> None:
    """Bind every method and operator, once."""
    for module, names in METHODS.items():
        for name in names.split():
            setattr(Tensor, name, called_as_method(vars(module)[name]))
    for name, target in ALIASES.items():
        setattr(Tensor, name, vars(Tensor)[target])
    for name in IN_PLACE.split():
        setattr(Tensor, name + "_", _written(name, vars(Tensor)[name]))
    for name in RESHAPED.split():
        setattr(Tensor, name + "_", _reshaped(name, vars(Tensor)[name]))
    for name, kind in CONVERSIONS.items():
        setattr(Tensor, name, _convert(kind))
    _bind_operators()
