"""Comments above a class, in its body and above a function count as documentation."""

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.backends.documentation import documentation_of
from gradcli.backends.numpy.claims import GradientPair
from gradcli.verdict import Verdict


def decorated(made: Any) -> Any:
    return made


# x: (N, 3)
# of points
@decorated
class Above:
    """Written"""

    @staticmethod
    def forward(ctx: Any, x: Any) -> None: ...


class Inside(
    dict,  # type: ignore[type-arg]
):
    # x: (N, 3) -> (N,)
    scale = 2  # not this one

    # ------------------------------
    # w: (3,)

    @staticmethod
    def helper(x: Any) -> Any:
        # nor this one
        return x

    #: tau > 0
    @staticmethod
    def forward(ctx: Any, x: Any) -> None:
        # which is read with its source
        ...

    # g: (N,)
    @staticmethod
    def backward(ctx: Any, g: Any) -> None: ...


# z: (4,)
def function(z: Any) -> Any:
    return z


def test_what_is_read() -> None:
    assert documentation_of(Above) == "Written\n\nx: (N, 3)\nof points"
    assert documentation_of(Inside).split("\n\n") == ["x: (N, 3) -> (N,)", "w: (3,)", "tau > 0"]
    assert documentation_of(function) == "z: (4,)"
    assert documentation_of(decorated) == ""
    assert documentation_of(int) == int.__doc__
    assert documentation_of(type("Made", (), {})) == ""


def trace_of(ns: Any, factor: float) -> type:
    class Trace(ns.autograd.Function):
        # R: (N, 3, 3) -> (N,)
        @staticmethod
        def forward(ctx: Any, R: Any) -> Any:
            return R[:, 0, 0] + R[:, 1, 1] + R[:, 2, 2]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * g[:, None, None] * ns.eye(3, dtype=g.dtype)

    return Trace


@pytest.mark.parametrize("factor", [1, 1.01, 0])
def test_a_gradient_of_the_documented_shape(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(trace_of(ns, factor), order=1, shrink=False).cases
    assert case.inputs[0].shape is not None
    assert case.inputs[0].shape[1:] == (3, 3)
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.findings


# p: (N, 3)
def depth(p: Any) -> Any:
    return p[:, 0] * p[:, 1] * p[:, 2]


@pytest.mark.parametrize("factor", [1, 1.01])
def test_a_numpy_function(factor: float) -> None:
    def gradient(p: Any, g: Any) -> Any:
        x, y, z = p[:, 0], p[:, 1], p[:, 2]
        return factor * g[:, None] * np.stack([y * z, x * z, x * y], 1)

    (case,) = gradcli.check(GradientPair(function=depth, gradient=gradient), order=1, shrink=False).cases
    assert case.inputs[0].shape == (4, 3)
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


def inverse(ns: Any, factor: float) -> type:
    class Inverse(ns.autograd.Function):
        """The inverse. a: (n, n) symmetric positive definite"""

        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            made = ns.linalg.inv(a)
            ctx.save_for_backward(made)
            return made

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (made,) = ctx.saved_tensors
            return -made @ g @ made  # holds for symmetric matrices alone

    class Scaled(Inverse):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * Inverse.backward(ctx, g)

    class Again(Scaled):
        """With a docstring of its own, which says nothing of a."""

    return Again


@pytest.mark.sampled(3)
@pytest.mark.parametrize("factor", [1, 1.01, -1])
def test_the_class_that_forward_is_inherited_from(ns: Any, factor: float) -> None:
    (case,) = gradcli.check(inverse(ns, factor), order=1, shrink=False).cases
    assert case.inputs[0].domain == "spd"
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.findings
    if factor == 1.01:
        assert "0.99 %" in case.findings[0].message or "1.01" in case.findings[0].message


def test_a_forward_of_its_own_has_no_use_for_the_base_class() -> None:
    class Written(Above):
        @staticmethod
        def forward(ctx: Any, x: Any) -> None: ...

    class Inherited(Above):
        pass

    assert documentation_of(Written) == ""
    assert documentation_of(Inherited) == "Written\n\nx: (N, 3)\nof points"
