"""A failure stands, with its finding, if no time is left to explain it."""

import pytest

from gradcli import engine
from gradcli.cases import CheckSpec
from gradcli.findings import FindingKind
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


class Doubled(engine.autograd.Function):
    """A sine whose gradient is twice too large."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x.cos()


@pytest.mark.parametrize(
    "limit",
    [
        "gradcli.runner.case.FIGURES_SECONDS",
        "gradcli.runner.outcome.failed.SHRINKING_SECONDS",
        "gradcli.diagnosis.naming.NAMING_SECONDS",
    ],
)
def test_a_failure_stands_if_no_time_is_left_to_explain_it(limit, monkeypatch):
    monkeypatch.setattr(limit, 0.0)
    settings = Settings(order=1, samples=1, figures=True, tables=True)
    result = check_object(Doubled, case_of(CheckSpec(target="tests:Doubled"), settings))
    assert result.verdict is Verdict.FAILED
    (finding,) = result.findings
    assert finding.input == "x"
    is_named = limit != "gradcli.diagnosis.naming.NAMING_SECONDS"
    assert finding.kind is (FindingKind.WRONG_FACTOR if is_named else FindingKind.WRONG_GRADIENT)


@pytest.mark.parametrize("limited", [False, True])
def test_a_spent_budget_ends_the_required_checks_only_where_it_limits_them(limited):
    settings = Settings(order=1, samples=1, budget=0.0, limited=limited)
    result = check_object(Doubled, case_of(CheckSpec(target="tests:Doubled"), settings))
    assert result.verdict is (Verdict.INCONCLUSIVE if limited else Verdict.FAILED)
