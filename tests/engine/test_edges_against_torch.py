"""Operations at the edges: 0-d, empty and strided tensors, negative axes, every element type, and wrong arguments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")

ELEMENTWISE = [
    "abs", "acos", "acosh", "add_self", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isinf", "isnan", "lgamma",
    "log", "log10", "log1p", "log2", "logical_not", "neg", "positive", "reciprocal", "relu", "round", "rsqrt",
    "sgn", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
REDUCTIONS = [
    "sum", "mean", "prod", "var", "std", "amax", "amin", "all", "any", "logsumexp", "cumsum", "cumprod",
    "argmax", "argmin", "count_nonzero", "norm", "softmax", "log_softmax", "max", "min", "median",
]  # fmt: skip
SHAPES = [
    "unsqueeze(-1)", "squeeze()", "flatten()", "reshape(-1)", "t()", "T", "mT", "flip(0)", "roll(1,0)",
    "transpose(0,-1)", "permute(-1,0)", "expand(2,-1,-1)", "unbind(-1)", "chunk(2,-1)", "split(2,-1)",
    "movedim(0,-1)", "tril()", "triu()", "diagonal()", "cumsum(-1)", "sort(-1)", "repeat(2,1)", "tile(2,2)",
    "narrow(-1,0,1)", "select(-1,0)", "contiguous()", "clone()", "unfold(-1,1,1)", "diff()", "view(-1)",
    "diag()",
]  # fmt: skip
OF_INTEGERS = {"logaddexp", "hypot"}  # the engine computes these in the default type
BINARY = [
    "add", "sub", "mul", "div", "pow", "remainder", "fmod", "maximum", "minimum", "eq", "lt", "ge", "atan2",
    "logaddexp", "hypot", "where",
]  # fmt: skip
DTYPES = [
    "float64", "float32", "int64", "int32", "uint8", "bool", "complex128",
]  # fmt: skip
# What PyTorch computes for these and NumPy or the engine does not, or the other way about.
KNOWN = {
    ("deg2rad", "complex128"), ("frac", "int"), ("frac", "bool"), ("positive", "bool"), ("neg", "bool"),
    ("round", "bool"), ("ceil", "bool"),
    ("var", "0-d"),  # of which PyTorch says that the second derivative of nan is 0
}  # fmt: skip


def layouts(dtype: str) -> dict[str, np.ndarray]:
    """Return arrays of one type, in several shapes and layouts."""
    source = np.random.default_rng(0)
    base = source.uniform(0.2, 0.8, size=(4, 6))
    if dtype == "complex128":
        base = base + 1j * source.uniform(0.2, 0.8, size=(4, 6))
    elif dtype not in ("float64", "float32"):
        base = source.integers(0, 2 if dtype == "bool" else 5, size=(4, 6))
    array = base.astype(dtype)
    return {"0-d": array[0, 0].copy(), "matrix": array[:2, :3].copy(), "strided": array[::2, ::2], "turned": array.T,
            "empty": array[:0, :3].copy(), "vector": array[0].copy()}  # fmt: skip


def tensors(namespace: Any, array: np.ndarray) -> Any:
    """Return a tensor with the array's layout, tracked where it can be."""
    steps = [step // array.itemsize for step in array.strides]
    if array.ndim == 2 and array.size and not array.flags.c_contiguous:
        whole = namespace.tensor(np.ascontiguousarray(array.base if array.base is not None else array))
        result = whole.t() if steps[0] == 1 else whole[::2, ::2]
        result = result[: array.shape[0], : array.shape[1]].detach()
    else:
        result = namespace.tensor(np.asarray(array))
    return result.requires_grad_() if array.dtype.kind in "fc" else result


def observed(call: Any, namespace: Any, *arrays: np.ndarray) -> Any:
    """Return values, types, shapes, gradients and second gradients, or the class of the error."""
    given = [tensors(namespace, array) for array in arrays]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = call(*given)
        except Exception as error:
            return type(error).__name__
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        record: list[Any] = [(str(y.dtype), tuple(y.shape), y.detach().numpy(force=True)) for y in results]
        followed = [y for y in results if y.requires_grad]
        leaves = [x for x in given if x.requires_grad]
        if followed and leaves:
            ones = [namespace.ones_like(y) for y in followed]
            first = namespace.autograd.grad(followed, leaves, ones, create_graph=True, allow_unused=True)
            record += [
                None if g is None else (str(g.dtype), tuple(g.shape), g.detach().numpy(force=True)) for g in first
            ]
            again = [g for g in first if g is not None and g.requires_grad]
            second: Any = [None] * len(leaves)
            if again:
                second = namespace.autograd.grad(again, leaves, [g.detach() for g in again], allow_unused=True)
            zero = [np.zeros(tuple(x.shape)) for x in leaves]  # no graph and a gradient of zeros are the same here
            record += [z if g is None else g.detach().numpy(force=True) for g, z in zip(second, zero, strict=True)]
    return record


def agree(ours: Any, theirs: Any, single: bool) -> bool:
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(agree(a, b, single) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        tolerance = 2e-4 if single else 1e-7
        return ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
    return type(ours) is type(theirs) and bool(ours == theirs)


def differences(label: str, call: Any, names: list[str]) -> list[str]:
    """Return where a call differs, over element types and layouts."""
    found = []
    for dtype in names:
        for layout, array in layouts(dtype).items():
            ours, theirs = observed(call, engine, array), observed(call, torch, array)
            if not agree(ours, theirs, dtype not in ("float64", "complex128")):
                found.append(f"{label} of {layout} {dtype}: ours {str(ours)[:300]}, torch {str(theirs)[:300]}")
    return found


@pytest.mark.sampled(20)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    call = (lambda x: x + x) if name == "add_self" else (lambda x: getattr(x, name)())
    found = [line for line in differences(name, call, DTYPES) if not any(n == name and d in line for n, d in KNOWN)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("form", SHAPES)
def test_shapes(form: str) -> None:
    assert not (found := differences(form, lambda x: eval(f"x.{form}"), ["float64", "int64"])), "\n".join(found)


@pytest.mark.parametrize("dim", [-1, 0, 1, 5])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dim: int) -> None:
    def call(x: Any) -> Any:
        return x.norm(2, dim) if name == "norm" else getattr(x, name)(dim)

    lines = differences(name, call, ["float64", "float32"])
    found = [line for line in lines if not any(n == name and d in line for n, d in KNOWN)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str) -> None:
    shapes = [((), ()), ((2, 3), ()), ((3,), (2, 1)), ((0, 3), (3,)), ((2, 3), (2,)), ((2, 1), (1, 3))]
    source, found = np.random.default_rng(2), []
    for kinds in (("float64", "float64"), ("float32", "float64"), ("int64", "float32"), ("int64", "int64")):
        for pair in shapes if name not in OF_INTEGERS or "float64" in kinds else []:
            arrays = [
                np.asarray(source.uniform(1, 4, size=shape)).astype(kind)
                for shape, kind in zip(pair, kinds, strict=True)
            ]

            def call(x: Any, y: Any) -> Any:
                return (x + 0).where(x > y, y) if name == "where" else getattr(x, name)(y)

            ours, theirs = observed(call, engine, *arrays), observed(call, torch, *arrays)
            if not agree(ours, theirs, "float32" in kinds):
                found.append(f"{name} {kinds} {pair}: ours {str(ours)[:300]}, torch {str(theirs)[:300]}")
    assert not found, "\n".join(found)
