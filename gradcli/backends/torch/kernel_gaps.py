"""What Triton's interpreter lacks of a GPU: methods of numbers, the device library, and a clock for the autotuner.

On a GPU a number that is passed to a kernel is a tensor with a dtype, `triton.language.extra.libdevice` is NVIDIA's
library of functions, and an autotuned kernel is timed. In the interpreter a number is Python's, the functions of the
library return None, and there is no GPU to time.
"""

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any, final

import numpy as np

_LIBRARY = "triton.language.extra.libdevice"
_CUDA = "triton.language.extra.cuda.libdevice"
_erf, _erfc = (np.vectorize(function, otypes=[np.float64]) for function in (math.erf, math.erfc))
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs, "fabs": np.abs, "rint": np.rint, "nearbyint": np.rint, "trunc": np.trunc, "floor": np.floor,
    "ceil": np.ceil, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "frsqrt_rn": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x), "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: 10.0**x,
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sinpi": lambda x: np.sin(np.pi * x), "cospi": lambda x: np.cos(np.pi * x),
    "erf": _erf, "erfc": _erfc, "normcdf": lambda x: _erfc(-x / math.sqrt(2)) / 2,
    "pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod, "copysign": np.copysign,
    "fdim": lambda x, y: np.maximum(x - y, 0), "fma": lambda x, y, z: x * y + z,
    "fast_exp": np.exp, "fast_exp10": lambda x: 10.0**x, "fast_log": np.log, "fast_log2": np.log2,
    "fast_log10": np.log10, "fast_sin": np.sin, "fast_cos": np.cos, "fast_tan": np.tan, "fast_pow": np.power,
    "fast_fdivide": np.divide, "fdiv_rn": np.divide, "ddiv_rn": np.divide, "fsqrt_rn": np.sqrt, "dsqrt_rn": np.sqrt,
    "isnan": np.isnan, "isnand": np.isnan, "isinf": np.isinf, "isinfd": np.isinf, "finite": np.isfinite,
    "isfinited": np.isfinite, "signbit": np.signbit, "signbitd": np.signbit,
}  # fmt: skip
"""Functions of the device library by their names there, without `__nv_` and the `f` of single precision."""


@final
class Number(float):
    """A number passed to a kernel, which may ask it for its dtype and for another one, as it may on a GPU."""

    interpreter: Any = None

    @property
    def dtype(self) -> Any:
        """float32, as which Triton passes a number."""
        return self.interpreter.tl.float32

    def to(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """A tensor of Triton's."""
        semantic = self.interpreter.interpreter_semantic
        return semantic.cast(semantic.to_tensor(float(self)), getattr(dtype, "value", dtype))


def elementwise(interpreter: Any, symbol: str, arguments: list[Any], returned: Any) -> Any | None:
    """A function of the device library, computed by NumPy; None for one that is not known here."""
    name = symbol.removeprefix("__nv_")
    function = _FUNCTIONS.get(name) or _FUNCTIONS.get(name.removesuffix("f"))
    if function is None:
        return None
    with np.errstate(all="ignore"):
        found = np.asarray(function(*(argument.data for argument in arguments)))
    return interpreter.TensorHandle(found.astype(interpreter._get_np_dtype(returned)), returned.scalar)


def library(interpreter: Any) -> dict[str, Callable[..., Any]]:
    """The functions of the device library by their names, with the interpreter to build what they return."""
    module = sys.modules.get(_CUDA)
    if module is None:
        return {}
    is_builtin = interpreter.tl.core.is_builtin
    semantic = interpreter.interpreter_semantic
    return {name: partial(value, _semantic=semantic) for name, value in vars(module).items() if is_builtin(value)}


def is_of_library(value: object) -> bool:
    """Whether a name of the user's module stands for a function of the device library."""
    return isinstance(value, FunctionType) and value.__module__ in (_LIBRARY, _CUDA)


def library_modules() -> list[Any]:
    """The modules of the device library that have been imported."""
    return [sys.modules[name] for name in (_LIBRARY, _CUDA) if name in sys.modules]


def untimed(call: Callable[[], Any], quantiles: object = None, **_: object) -> list[float]:  # noqa: ARG001
    """In place of a benchmark: every configuration is as good as the first, which is then taken."""
    return [0.0, 0.0, 0.0]
