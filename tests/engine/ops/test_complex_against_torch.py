"""Complex numbers on both sides of every branch cut: values and gradients as PyTorch's, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

POINTS = [
    1.5 + 0.5j,
    -1.5 + 0.5j,
    -1.5 - 0.5j,
    1.5 - 0.5j,
    0.3 + 0.2j,
    -0.3 + 0.2j,
    0.3 - 2j,
    -0.3 - 2j,
    1 + 2j,
    -2 - 1j,
]
ELEMENTWISE = [
    "acosh",
    "asinh",
    "atanh",
    "acos",
    "asin",
    "atan",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "tan",
    "tanh",
    "cosh",
    "sinh",
    "sigmoid",
    "expm1",
    "exp2",
    "reciprocal",
    "square",
    "sgn",
    "abs",
    "angle",
    "cos",
    "sin",
    "exp",
]
Call = Callable[..., Any]


def orders(t: Any, call: Call, *values: Any) -> list[Any]:
    """Return a result, and gradients of both orders of a real number made of it."""
    inputs = [
        t.tensor(value).to(t.complex128 if np.iscomplexobj(value) else t.float64).requires_grad_() for value in values
    ]
    result = call(*inputs)
    total = result.real.sum() + 2 * result.imag.sum() if result.is_complex() else result.sum()
    first = t.autograd.grad(total, inputs, create_graph=True)
    total = sum(entry.real.sum() + 3 * entry.imag.sum() if entry.is_complex() else entry.sum() for entry in first)
    second = t.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
    return [np.asarray(entry.detach().tolist()) for entry in (result, *first, *second)]


def agree(call: Callable[[Any], Call], *values: Any) -> None:
    """Assert that both orders are PyTorch's."""
    torch = pytest.importorskip("torch", reason="the reference for complex gradients is PyTorch")
    for ours, theirs in zip(orders(engine, call(engine), *values), orders(torch, call(torch), *values), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_functions_are_differentiated_on_their_branches(name: str) -> None:
    agree(lambda _: lambda z: getattr(z, name)(), POINTS)


@pytest.mark.parametrize("factor", [1.0, 1.01, -1.0])
def test_gradcheck_passes_acosh_left_of_the_imaginary_axis_and_fails_a_wrong_twin(factor: float) -> None:
    class Acosh(engine.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z.acosh()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return factor * g * ((z - 1).rsqrt() * (z + 1).rsqrt()).conj()

    z = engine.tensor([-1.5 + 0.5j, -2 - 1j, 0.5 + 1j], dtype=engine.complex128, requires_grad=True)
    assert engine.autograd.gradcheck(lambda w: w.acosh(), z)
    assert engine.autograd.gradcheck(Acosh.apply, z, raise_exception=False) is (factor == 1.0)


POWERS: dict[str, tuple[Callable[[Any], Call], list[Any]]] = {
    "negative numbers": (lambda _: lambda x, p: x**p, [[-1.0, 2.0, -0.5], [1j, 0.5 + 1j, 2.0 + 0j]]),
    "one negative number": (lambda _: lambda p: (-2.0) ** p, [[1j, 0.5 + 1j, 2.0 + 0j]]),
    "to a complex number": (lambda _: lambda x: x ** (0.5 + 1j), [[-1.0, 2.0, -0.5]]),
    "of complex numbers": (lambda _: lambda p, x: p**x, [[1j, 0.5 + 1j, -2.0 + 0j], [-1.0, 2.0, -0.5]]),
    "float_power": (lambda t: lambda x, p: t.float_power(x, p), [[-1.0, 2.0], [1j, 0.5 + 1j]]),
}


@pytest.mark.parametrize("name", POWERS)
def test_negative_numbers_have_logarithms_where_powers_are_complex(name: str) -> None:
    call, values = POWERS[name]
    agree(call, *values)


REFUSED = [
    "sort",
    "argsort",
    "msort",
    "unique",
    "cummax:0",
    "cummin:0",
    "kthvalue:1",
    "topk:1",
    "mode",
    "amax",
    "amin",
    "histc",
    "quantile:0.5",
    "logit",
    "median",
    "nanmedian",
    "argmax",
    "floor",
    "round",
    "sign",
    "softmax:0",
    "relu",
]


@pytest.mark.parametrize("name", REFUSED)
def test_what_orders_numbers_refuses_complex_ones_as_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these errors is PyTorch")
    method, _, argument = name.partition(":")
    kinds = []
    for t in (engine, torch):
        z, given = t.tensor([1j, 2.0]), [float(argument) if "." in argument else int(argument)] if argument else []
        with pytest.raises(Exception) as caught:
            (getattr(z, method) if hasattr(z, method) else lambda *a, t=t, z=z: getattr(t, method)(z, *a))(*given)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1]


def test_python_numbers_are_made_of_complex_tensors_without_an_imaginary_part_alone() -> None:
    torch = pytest.importorskip("torch", reason="the reference for these errors is PyTorch")
    for t in (engine, torch):
        assert (float(t.tensor(1 + 0j)), int(t.tensor(2 + 0j)), complex(t.tensor(2j))) == (1.0, 2, 2j)
        for kind in (float, int):
            with pytest.raises(RuntimeError, match="cannot be converted to type"):
                kind(t.tensor(1 + 2j))
