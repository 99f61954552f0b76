"""Gradients summed over the wrong axis: refused at most sizes, and wrong without an error where sizes are equal."""

from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

FORWARDS: dict[str, Callable[..., Any]] = {
    "bias": lambda x, b: x + b,
    "scale": lambda x, b: x * b,
    "bias of channels": lambda x, b: x + b[:, None],
    "bias of an image": lambda x, b: x + b[None, :, None, None],
}
SUMS: dict[tuple[str, str], tuple[int, ...]] = {
    ("bias", "right"): (0,),
    ("bias", "wrong"): (-1,),
    ("scale", "right"): (0,),
    ("scale", "wrong"): (1,),
    ("bias of channels", "right"): (0, 2),
    ("bias of channels", "wrong"): (0, 1),
    ("bias of an image", "right"): (0, 2, 3),
    ("bias of an image", "wrong"): (0, 1, 2),
}


def function_of(ns: Any, name: str, axes: tuple[int, ...], rank: int | None) -> Any:
    """A Function whose backward sums over some axes; of inputs with so many axes, where a rank is given."""

    class Summed(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, b: Any) -> Any:
            if rank is not None and x.ndim != rank:
                raise ValueError(f"expected {rank} axes")
            ctx.save_for_backward(x, b)
            return FORWARDS[name](x, b)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, b = ctx.saved_tensors
            return (g * b, (g * x).sum(axes)) if name == "scale" else (g, g.sum(axes))

    return Summed


def checked(function: Any, **inputs: Any) -> CheckResult:
    return gradcli.check(function, order=1, shrink=False, **inputs).cases[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FORWARDS)
@pytest.mark.parametrize("fixed", [False, True], ids=["any rank", "one rank"])
def test_a_sum_over_another_axis_fails(ns: Any, name: str, fixed: bool, unexplained: None) -> None:
    rank = {"bias of channels": 3, "bias of an image": 4}.get(name, 2) if fixed else None
    right, wrong = (checked(function_of(ns, name, SUMS[name, kind], rank)) for kind in ("right", "wrong"))
    assert right.verdict is Verdict.PASSED
    assert wrong.verdict is Verdict.FAILED


@pytest.mark.sampled(1)
def test_the_axes_are_named(ns: Any) -> None:
    case = checked(function_of(ns, "bias", (-1,), None))
    assert any("sums over all axes except axis 0" in finding.message for finding in case.findings)
    assert [spec.shape for spec in case.inputs] == [(3, 3), (3,)]
