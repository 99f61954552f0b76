"""A factor is named to the accuracy to which an iteration that stops early lets it be known."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("uncorrected")


def root(framework: str, change: Callable[[Any, Any], Any]) -> CheckResult:
    """The square root of a by Newton's method, times b; `change` is applied to the gradient of a."""
    torch = pytest.importorskip(framework)
    autograd = importlib.import_module(f"{framework}.autograd")

    class Root(autograd.Function):  # type: ignore[misc, name-defined]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            y = a * 0 + 4
            for _ in range(100):
                following = (y + a / y) / 2
                done = (following - y).abs().max() < 1e-2
                y = following
                if done:
                    break
            ctx.save_for_backward(a, b, y)
            return y * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            _, b, y = ctx.saved_tensors
            return change(torch, g * b / (2 * y)), g * y

    inputs = {"a": {"shape": [3], "domain": "positive"}, "b": {"shape": [3]}}
    return gradcli.check(Root, inputs, order=1, samples=1, shrink=False, only=("gradient",)).cases[0]


FRAMEWORKS = ("gradcli.engine", "torch")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("factor", "kind", "says"),
    [
        (0.5, FindingKind.WRONG_FACTOR, "0.5 of the right one"),
        (-1.0, FindingKind.WRONG_SIGN, "-1 times the right one"),
    ],
)
def test_a_factor_is_named_beside_an_early_stop(framework: str, factor: float, kind: FindingKind, says: str) -> None:
    (finding,) = root(framework, lambda _, a: factor * a).findings
    assert finding.kind is kind
    assert finding.message.startswith(f"a: the returned gradient is {says}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_right_gradient_passes_and_a_factor_of_some_entries_is_not_one_of_all(framework: str) -> None:
    assert root(framework, lambda _, a: a).verdict is Verdict.PASSED
    (finding,) = root(framework, lambda torch, a: a * torch.tensor([0.5, 1.0, 1.0], dtype=torch.float64)).findings
    assert "everywhere" not in finding.message
    (finding,) = root(framework, lambda _, a: a + 0.5 * a * a).findings
    assert "everywhere" not in finding.message
