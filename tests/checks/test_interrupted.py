"""A check whose time is over keeps what it had found, and says that the rest was left out."""

from collections.abc import Iterator
from typing import Any

import pytest

import gradcli
import gradcli.engine as engine
from gradcli.checks.base import Check, Situation
from gradcli.errors import OverrunError
from gradcli.numerics.verify import verify
from gradcli.results import Evidence
from gradcli.verdict import Reason, Verdict
from tests.checks.frameworks import examined, tensor


class Product(engine.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x


class Halfway(Check):
    """Finds something about x, then about nothing in particular, and is stopped."""

    name, sentence = "halfway", "is stopped half-way"

    def __init__(self, about_x: Verdict, *, optional: bool) -> None:
        self.about_x, self.optional = about_x, optional

    def run(self, situation: Situation) -> Iterator[Evidence]:
        yield Evidence(check=self.name, verdict=self.about_x, input="x", note="of x")
        yield Evidence(check=self.name, verdict=Verdict.PASSED, note="of the whole")
        raise OverrunError("stopped after 1 s", phase=self.name)


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("about_x", [Verdict.PASSED, Verdict.FAILED])
def test_what_was_found_before_stands(about_x: Verdict, optional: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.checks.battery.CHECKS", (Halfway(about_x, optional=optional),))
    (case,) = gradcli.check(Product).cases
    uncompared = (None, Verdict.INCONCLUSIVE, "no check compared a gradient with finite differences")
    left_out = [] if about_x is Verdict.FAILED else [(None, Verdict.SKIPPED, "stopped after 1 s"), uncompared]
    assert [(e.input, e.verdict, e.note) for e in case.evidence] == [("x", about_x, "of x"), *left_out]
    assert (case.verdict is Verdict.FAILED) == (about_x is Verdict.FAILED)


@pytest.mark.parametrize(
    ("order", "options", "expected"),
    [
        (1, {}, Verdict.INCONCLUSIVE),
        (2, {"order_asked": True}, Verdict.INCONCLUSIVE),
        (2, {}, Verdict.PASSED),
    ],
)
def test_a_gradient_that_was_not_compared_for_lack_of_time_does_not_pass(
    backend: Any,
    ns: Any,
    monkeypatch: pytest.MonkeyPatch,
    order: int,
    options: dict[str, Any],
    expected: Verdict,
) -> None:
    def cut_at_order(map_: Any, point: Any, **given: Any) -> Any:
        if given.get("witness_values", False) == (order == 2):
            raise OverrunError("not called: a call did not return in an earlier attempt", phase="gradient")
        return verify(map_, point, **given)

    monkeypatch.setattr("gradcli.checks.gradient.verify", cut_at_order)
    factor = 2.0 if order == 1 else 3.0

    class Cube(ns.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * g * x**2

    verdict, evidence, _ = examined(backend, Cube, tensor("x", [1.25, 0.5]), **options)
    assert verdict is expected
    cut = [e for e in evidence if e.check == ("gradient" if order == 1 else "higher-order")]
    if verdict is Verdict.INCONCLUSIVE:
        assert [(e.verdict, e.reason, e.order) for e in cut] == [(verdict, Reason.DOMAIN, order)]
        assert "did not return" in (cut[0].note or "")
