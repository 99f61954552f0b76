"""A factor is named after an argument or a size only if it follows that; what holds at one value of it is a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict

TEXT = """
import {framework} as torch
from {framework}.autograd import Function


class Leading(Function):
    @staticmethod
    def forward(ctx, x, count=2):
        ctx.shape, ctx.count = x.shape, count
        return x[:, :count].sum(1) / count

    @staticmethod
    def backward(ctx, g):
        made = torch.zeros(ctx.shape, dtype=g.dtype)
        made[:, :ctx.count] = (g / {divisor})[:, None]
        return made, None


class Spread(Function):
    @staticmethod
    def forward(ctx, x, index, groups=4):
        ctx.save_for_backward(index)
        seen = (index[None] == torch.arange(groups)[:, None]).to(x.dtype)
        ctx.counts = seen.sum(1).clamp(min=1)
        return seen @ x / ctx.counts[:, None]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        return g[index] / {counts}, None, None
"""


@pytest.fixture(params=("gradcli.engine", "torch"))
def checked(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """Check a Function of the text, with what it divides by."""
    pytest.importorskip(request.param.partition(".")[0])

    def case(name: str, inputs: Any, *, divisor: str = "ctx.count", counts: str = "ctx.counts[index][:, None]") -> Any:
        file = tmp_path / "written.py"
        file.write_text(TEXT.format(framework=request.param, divisor=divisor, counts=counts))
        return gradcli.check(f"{file}:{name}", inputs, order=1, samples=1, shrink=False).cases[0]

    return case


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("divisor", "said"),
    [
        ("ctx.count", None),
        ("ctx.shape[1]", "1/2 of the right one everywhere"),
        ("ctx.count ** 2", "2 is the value of the argument count"),
        ("ctx.count / ctx.shape[1]", "4 is the size of axis 1 of x: a mean where a sum is meant?"),
    ],
)
def test_a_factor_is_named_after_what_it_follows(checked: Any, divisor: str, said: str | None) -> None:
    case = checked("Leading", {"x": {"shape": [3, 4]}, "count": 2}, divisor=divisor)
    if said is None:
        assert case.verdict is Verdict.PASSED
        return
    (finding,) = case.findings
    assert said in finding.message
    assert ("is the value of" in said) == ("is the value of" in finding.message)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("counts", ["ctx.counts[index][:, None]", "ctx.counts.sum()"])
def test_a_factor_of_indices_that_differ_is_not_one_everywhere(checked: Any, counts: str) -> None:
    """Three indices below four that all differ: one empty group counts as one, and the counts add up to four."""
    inputs = {"x": {"shape": [3, 4]}, "index": {"shape": [3], "domain": "indices", "high": 4}}
    results = [checked("Spread", inputs, counts=counts)]
    assert all((r.verdict is Verdict.PASSED) == ("index" in counts) for r in results)
    for finding in results[0].findings:
        assert "groups" not in finding.message
        assert "everywhere" not in finding.message


def test_inputs_of_other_sizes_keep_no_difference_between_sizes() -> None:
    """`n - 1` columns are not the number of rows there, as they are here."""
    from gradcli.diagnosis.facts import Facts
    from gradcli.diagnosis.slips.elsewhere import at_other_sizes
    from tests.programs.planted import ENGINE, function

    made = function(lambda x: x * x, lambda g, x, y: 2 * g * x)
    there = at_other_sizes(Facts(ENGINE.bind(made, ENGINE.adopt([np.ones((3, 4))])), 0))
    assert there is not None
    rows, columns = there.subject.domain.blocks[0].shape
    assert columns - 1 != rows
