"""What an inconclusive check advises: in terms of the input at hand, and nothing that was done already."""

from dataclasses import replace

import pytest

from gradcli.cases import InputSpec
from gradcli.inputs.flags import parse_input
from gradcli.reporters.advice import advice_on
from gradcli.reporters.plain import plain_case
from gradcli.results import Evidence
from gradcli.verdict import Reason, Verdict
from tests.reporters.results import INCONCLUSIVE


def advice(reason: Reason, name: str | None, *inputs: InputSpec) -> str:
    evidence = Evidence(check="gradient", verdict=Verdict.INCONCLUSIVE, input=name, reason=reason)
    result = replace(INCONCLUSIVE, evidence=(evidence,), inputs=inputs)
    found = advice_on(evidence, result)
    assert found is not None
    assert found in plain_case(result)
    return found


def test_random_values_are_advised_only_where_values_were_given() -> None:
    given = advice(Reason.KINK, "p", parse_input("p=2,value=[0.0,1.0]"), parse_input("x=3x4"))
    assert "random ones (-i p=2 draws them)" in given
    drawn = advice(Reason.KINK, "p", parse_input("p=3x4"), parse_input("x=5"))
    assert drawn.startswith("p was drawn at random: ")
    assert "-i p=3x4,domain=open-interval,lo=0,hi=1" in drawn
    assert "random ones" not in drawn


@pytest.mark.parametrize("reason", [Reason.KINK, Reason.DOMAIN])
@pytest.mark.parametrize("domain", ["positive", "unit", "distinct"])
def test_a_domain_that_was_drawn_from_is_not_advised(reason: Reason, domain: str) -> None:
    text = advice(reason, "q", parse_input(f"q=4,domain={domain}"))
    assert text.startswith(f"q was drawn from domain {domain}: ")
    assert "-i " not in text


@pytest.mark.parametrize("name", ["q", None])
def test_the_only_input_is_meant_where_none_is_named(name: str | None) -> None:
    assert "by -i q=2x3,domain=positive" in advice(Reason.DOMAIN, name, parse_input("q=2x3"))
    given = advice(Reason.DOMAIN, name, parse_input("q=2,value=[-1.0,4.0]"))
    assert "random ones by -i q=2,domain=positive" in given


@pytest.mark.parametrize("reason", Reason)
def test_no_other_input_is_named(reason: Reason) -> None:
    texts = [
        advice(reason, None, parse_input("p=3x4"), parse_input("q=5")),
        advice(reason, "z", parse_input("z=3,dtype=complex128")),
        advice(reason, "a"),
    ]
    assert set(texts) == {reason.remedy}
    assert " x" not in reason.remedy
