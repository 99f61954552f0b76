"""Infinities, NaN and zeros in powers, products, norms and extremes; layouts; and what is refused: as in PyTorch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from tests.engine.test_semantics_against_torch import differences
from tests.programs.semantics.table import caught, plain

inf, nan = math.inf, math.nan
Case = Callable[[Any], Any]


def _gradient(call: Callable[[Any, Any], Any], values: Any) -> Case:
    """Return a function's value at some values, and the gradient of its sum, each with the signs of its zeros."""

    def run(t: Any) -> Any:
        x = t.tensor(values, dtype=t.complex128 if isinstance(values[0], complex) else t.float64, requires_grad=True)
        y = call(t, x)
        (g,) = t.autograd.grad(y.sum().abs() if y.is_complex() else y.sum(), x)
        return [plain(y), plain(g), [] if y.is_complex() else plain(t.signbit(g) & (g == 0))]

    return run


POWERS = {f"power {n}": _gradient(lambda _, x, n=n: x**n, [0.0, -0.0, 4.0, -4.0, inf, -inf, nan])
          for n in (0, 1, 2, 3, 0.5, -0.5, -1, 1.5)}  # fmt: skip
PRODUCTS = {
    f"product of {values}": _gradient(lambda _, x: x.prod(), values)
    for values in ([inf, -inf, 1.0], [inf, 0.0, 2.0], [inf, inf, 0.0, 2.0], [nan, 0.0], [2.0, 3.0, 0.0])
} | {
    f"products of rows {axis}": _gradient(
        lambda _, x, axis=axis: x.prod(axis), [[inf, -inf, 1.0], [inf, inf, 0.0], [2.0, 3.0, 4.0]]
    )
    for axis in (0, 1)
}
NORMS = {
    f"norm {p} of {values}": _gradient(lambda t, x, p=p: t.linalg.vector_norm(x, p), values)
    for p in (-2, -1, -0.5, 0.5, 1.5, 3)
    for values in ([0.0, 1.0, -2.0], [inf, -inf, 1.0], [0.0, 0.0], [3.0, -4.0])
}
EXTREMES = {
    f"{name} of {values}": _gradient(lambda t, x, name=name: getattr(t, name)(x), values)
    for name in ("max", "min", "amax", "amin")
    for values in ([nan, 1.0], [inf, inf, 1.0], [-inf, -inf], [nan, nan], [1.0, 2.0, 2.0])
}


def _layout(act: Callable[[Any, Any, Any], Any]) -> Case:
    """Return where in memory the elements lie that are read of tensors of several layouts."""

    def run(t: Any) -> Any:
        whole = t.arange(24.0).reshape(2, 3, 4)
        sources = whole, whole.transpose(0, 2), whole.transpose(1, 2), whole[:, ::2], whole[:1].expand(2, 3, 4)
        found = [act(t, source, t.tensor([1, 0])) for source in sources]
        return [[list(part.stride()), part.is_contiguous(), plain(part)] for part in found]

    return run


LAYOUTS = {
    "layout of rows": _layout(lambda _, x, i: x[i]),
    "layout of columns": _layout(lambda _, x, i: x[:, i]),
    "layout along the last axis": _layout(lambda _, x, i: x[..., i]),
    "layout of two indices": _layout(lambda _, x, i: x[:, i, i]),
    "layout of indices apart": _layout(lambda _, x, i: x[i, :, i]),
    "layout of a table of indices": _layout(lambda t, x, i: x[:, t.stack([i, i])]),
    "layout of a mask": _layout(lambda _, x, i: x[:, x[0, :, 0] >= 0]),
    "layout of a mask of two axes": _layout(lambda _, x, i: x[x[:, :, 0] >= 0]),
    "layout of index_select": _layout(lambda _, x, i: x.index_select(1, i)),
    "layout of gather": _layout(lambda t, x, i: x.gather(1, i.expand(2, 2, 2).transpose(0, 2))),
    "layout of repeat_interleave": _layout(lambda _, x, i: x.repeat_interleave(2, 1)),
}


def _written(key: Callable[[Any], Any], value: Callable[[Any], Any], kind: str = "float32") -> Case:
    """Write at an index, into a tensor without and into one with a graph."""

    def run(t: Any) -> Any:
        def write(x: Any) -> Any:
            x[key(t)] = value(t)
            return x

        plain_one = caught(lambda: write(t.zeros(2, 3, dtype=getattr(t, kind))))
        if kind != "float32":
            return plain_one
        return [plain_one, caught(lambda: write(t.zeros(2, 3, requires_grad=True) * 1))]

    return run


def _rows(t: Any) -> Any:
    return t.tensor([0, 1])


WRITES = {
    "write doubles at a list": _written(lambda t: [0, 1], lambda t: t.ones(2, 3, dtype=t.float64)),
    "write integers at an index": _written(_rows, lambda t: t.ones(2, 3).long()),
    "write one double at an index": _written(_rows, lambda t: t.tensor(1.0, dtype=t.float64)),
    "write floats at an index": _written(_rows, lambda t: t.ones(2, 3)),
    "write a number at an index": _written(_rows, lambda t: 1.5),
    "write doubles at a row": _written(lambda t: 0, lambda t: t.ones(3, dtype=t.float64)),
    "write one double at a mask": _written(lambda t: t.ones(2, 3).bool(), lambda t: t.tensor(2.0, dtype=t.float64)),
    "write doubles at a mask": _written(lambda t: t.ones(2, 3).bool(), lambda t: t.ones(6, dtype=t.float64)),
    "write one double at a mask and an index": _written(
        lambda t: (t.ones(2).bool(), _rows(t)), lambda t: t.tensor(2.0, dtype=t.float64)
    ),
    "write one float at a mask of integers": _written(
        lambda t: t.ones(2, 3).bool(), lambda t: t.tensor(1.5), kind="int64"
    ),
    "write floats at an index of integers": _written(_rows, lambda t: t.ones(2, 3), kind="int64"),
    "write an imaginary number": _written(lambda t: (0, 0), lambda t: 1j),
    "write an imaginary number at an index": _written(_rows, lambda t: 2j),
    "write a real number as a complex one": _written(lambda t: (0, 0), lambda t: 2 + 0j),
    "write a complex number as a truth": _written(lambda t: (0, 0), lambda t: 1j, kind="bool"),
    **{
        f"write an imaginary number into {kind}": _written(lambda t: (0, 0), lambda t: 1j, kind=kind)
        for kind in ("int8", "int16", "int32", "int64", "uint8", "float16", "float64")
    },
}


def _parts_set(t: Any) -> Any:
    z = t.tensor([1 + 2j, 3 - 1j], dtype=t.complex128)
    z.real = t.tensor([5.0, 6.0], dtype=t.float64)
    z.imag = 0.0
    x = t.ones(2)
    x.real = 3.0
    return [plain(z), plain(x), caught(lambda: setattr(x, "imag", 1.0))]


COMPLEX = {
    "logsumexp": _gradient(lambda t, z: t.logsumexp(z, 0), [1 + 2j, -0.5 + 0.3j, 1j]),
    "logsumexp of real numbers": _gradient(lambda t, x: t.logsumexp(x, 0), [1.0, -0.5, 2.0]),
    "conj_physical": _gradient(lambda t, z: t.conj_physical(z) * z, [1 + 2j, -0.5 + 0.3j]),
    "resolved": lambda t: [plain(f(t.tensor([1 + 2j]).conj())) for f in (t.resolve_conj, t.resolve_neg)],
    "complex of complex": lambda t: caught(lambda: t.complex(t.ones(2) * 1j, t.ones(2))),
    "complex of integers": lambda t: caught(lambda: t.complex(t.ones(2).int(), t.ones(2))),
    "complex of two types": lambda t: caught(lambda: t.complex(t.ones(2), t.ones(2, dtype=t.float64))),
    "complex of floats": lambda t: caught(lambda: t.complex(t.ones(2), t.zeros(2))),
    "polar of complex": lambda t: caught(lambda: t.polar(t.ones(2), t.ones(2) * 1j)),
    "polar of floats": lambda t: caught(lambda: t.polar(t.ones(2), t.zeros(2))),
    "parts are set": _parts_set,
    "H of a matrix": lambda t: caught(lambda: t.ones(1, 2).H),
    "H of a vector": lambda t: caught(lambda: t.ones(2).H),
    "H of matrices": lambda t: caught(lambda: t.ones(2, 2, 2).H),
}


def _refused(call: Callable[[Any], Any]) -> Case:
    return lambda t: caught(lambda: call(t))


def _norm(statistics: int | None, **others: Any) -> Case:
    def run(t: Any) -> Any:
        running = [None if statistics is None else t.ones(statistics)] * 2
        extra = {name: t.ones(value) if name != "training" else value for name, value in others.items()}
        return caught(lambda: t.nn.functional.batch_norm(t.ones(2, 3), *running, **extra))

    return run


def _resampled(axes: int, mode: str) -> Case:
    return _refused(lambda t: t.nn.functional.interpolate(t.ones(*[2] * axes), scale_factor=2, mode=mode))


REFUSALS = {
    "batches that do not broadcast": _refused(lambda t: t.ones(3, 2, 2) @ t.ones(2, 2, 2)),
    "batches that broadcast": _refused(lambda t: t.ones(3, 1, 2, 2) @ t.ones(2, 2, 2)),
    "product of numbers": _refused(lambda t: t.tensor(1.0) @ t.ones(2)),
    "product with a number": _refused(lambda t: 3 @ t.ones(2, 2)),
    "products of truths": lambda t: [caught(lambda a=a, b=b: t.ones(*a).bool() @ t.ones(*b).bool())
                                     for a, b in (((2, 2), (2, 2)), ((2,), (2,)), ((2, 2), (2,)))],
    "product of batches of truths": _refused(lambda t: t.ones(1, 2, 2).bool().bmm(t.ones(1, 2, 2).bool())),
    "product of integers": _refused(lambda t: t.ones(2, 2).long() @ t.ones(2, 2).long()),
    "inverse of integers": _refused(lambda t: t.linalg.inv(t.eye(2).long())),
    "Cholesky of integers": _refused(lambda t: t.linalg.cholesky(t.eye(2).long())),
    "copy of another length": _refused(lambda t: t.ones(2).copy_(t.ones(3))),
    "copy of more rows": _refused(lambda t: t.ones(3).copy_(t.ones(2, 3))),
    "copy of one row": _refused(lambda t: t.ones(2, 3).copy_(t.ones(3))),
    "select out of range": _refused(lambda t: t.ones(2, 3).select(1, 7)),
    "subscript out of range": _refused(lambda t: t.ones(2, 3)[:, 7]),
    "index_select by a matrix": _refused(lambda t: t.ones(2).index_select(0, t.tensor([[0]]))),
    "an axis twice": _refused(lambda t: t.ones(2, 3).sum((1, -1))),
    "mode of rows": _refused(lambda t: list(t.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]]).mode(1))),
    "mode of no rows": _refused(lambda t: list(t.zeros(0, 2).mode(1, True))),
    "mode of empty rows": _refused(lambda t: t.zeros(2, 0).mode(1)),
    "mode along no axis": _refused(lambda t: t.tensor(1.0).mode(1)),
    "running maximum along no axis": _refused(lambda t: t.tensor(1.0).cummax(1)),
    "running minimum of a number": _refused(lambda t: list(t.tensor(1.0).cummin(-1))),
    "running maximum from the end": _refused(lambda t: list(t.tensor([[1.0, 3.0], [2.0, 0.0]]).cummax(-1))),
    "running logarithm along no axis": _refused(lambda t: t.tensor(1.0).logcumsumexp(1)),
    **{
        f"norm {p} of nothing, {axis}": _refused(lambda t, p=p, axis=axis: t.linalg.vector_norm(t.zeros(2, 0), p, axis))
        for p in (inf, -inf, -1.0, 0.5, 0.0, 2.0)
        for axis in (None, 0, 1)
    },
    "einsum of lists": _refused(lambda t: t.einsum(t.eye(2), [0, 1], t.ones(2, 3), [1, 2], [2, 0])),
    "einsum of lists, implicit": _refused(lambda t: t.einsum(t.arange(4.0).reshape(2, 2), [1, 0])),
    "einsum of lists, dots": _refused(lambda t: t.einsum(t.arange(6.0).reshape(2, 3), [0, ...], [..., 0])),
    "einsum of a label too large": _refused(lambda t: t.einsum(t.ones(2, 3), [0, 52])),
    "einsum of no lists": _refused(lambda t: t.einsum(t.ones(2, 3))),
    "batch_norm of wrong statistics": _norm(4),
    "batch_norm of right statistics": _norm(3),
    "batch_norm without statistics": _norm(None),
    "batch_norm in training": _norm(None, training=True),
    "batch_norm of a wrong weight": _norm(3, weight=4),
    "batch_norm of a wrong bias": _norm(3, bias=2, training=True),
    "resampled matrix": _resampled(2, "nearest"),
    "resampled in an unknown mode": _resampled(3, "spline"),
    "resampled signal": _resampled(3, "nearest"),
    "relu of a word": _refused(lambda t: t.nn.functional.relu("a")),
    "leaky relu of a number": _refused(lambda t: t.nn.functional.leaky_relu(3.0)),
    "a threshold, printed": lambda t: repr(t.nn.Threshold(0.1, 20)),
    "a normalisation, printed": lambda t: [repr(t.nn.RMSNorm(3)), repr(t.nn.RMSNorm([2, 3], 0.1, False))],
    "forward-mode rows": _refused(
        lambda t: t.autograd.functional.jacobian(lambda x: x, t.ones(2), strategy="forward-mode")
    ),
}  # fmt: skip
CASES: dict[str, Case] = {**POWERS, **PRODUCTS, **NORMS, **EXTREMES, **LAYOUTS, **WRITES, **COMPLEX, **REFUSALS}


@pytest.mark.parametrize("case", CASES)
def test_special_values_and_refusals_agree_with_torch(case: str) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = CASES[case](torch), CASES[case](engine)
    assert not (found := differences(ours, theirs)), "\n".join(found)


def test_lists_that_stand_for_tuples_warn() -> None:
    torch = pytest.importorskip("torch", reason="the reference for this warning is PyTorch")
    for t in (torch, engine):
        with pytest.warns(UserWarning, match="Using a non-tuple sequence for multidimensional indexing is deprecated"):
            t.zeros(2, 3)[[[0, 1], [1, 0]]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            t.zeros(2, 3)[[0, 1]]
