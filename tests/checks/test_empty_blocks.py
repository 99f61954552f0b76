"""An input or output without entries beside others that have some: those are checked, and it is told."""

from typing import Any

import gradcli
from gradcli.cases import InputsFrom
from gradcli.engine import float64, tensor, zeros
from gradcli.results import CheckResult
from gradcli.verdict import Reason, Verdict


def leaf(*shape: int) -> Any:
    count = zeros(*shape).numel()
    return tensor([0.5 + n for n in range(count)], dtype=float64).reshape(*shape).detach().requires_grad_()


def pieces(x: Any) -> Any:
    return x[:1] * x[:1], x[1:], x[2:]


def slipped(x: Any) -> Any:
    first, second, third = pieces(x)
    return first, second.detach() + 0 * second, third


def both(x: Any, y: Any) -> Any:
    return x * x, y * 2


def checked(function: Any, *inputs: Any) -> CheckResult:
    (case,) = gradcli.check(function, inputs, shrink=False).cases
    assert case.inputs_from == InputsFrom.GIVEN.value
    return case


def test_an_empty_output_beside_others_is_told_and_passes() -> None:
    case = checked(pieces, leaf(2))
    assert case.verdict is Verdict.PASSED
    assert "output 2 is empty: it has no entries to check" in case.notes
    assert {e.output for e in case.evidence if e.check == "gradient"} == {0, 1}


def test_a_mistake_beside_an_empty_output_is_found() -> None:
    assert checked(slipped, leaf(2)).verdict is Verdict.FAILED


def test_an_empty_input_beside_another_is_told_and_passes() -> None:
    case = checked(both, leaf(2), leaf(0, 3))
    assert case.verdict is Verdict.PASSED
    noted = "y is empty: it has no entries to check; output 1 is empty: it has no entries to check"
    assert noted in case.notes


def test_where_all_is_empty_nothing_is_claimed() -> None:
    case = checked(both, leaf(0), leaf(0, 3))
    assert case.verdict is Verdict.INCONCLUSIVE
    assert case.reason is Reason.NO_SIGNAL
