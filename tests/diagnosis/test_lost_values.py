"""Values that `out[i] += f` loses where an index repeats, by several statements; all of them added is right."""

import pytest

import gradcli
from gradcli.findings import FindingKind as K
from gradcli.verdict import Verdict

FORCES = """import {framework} as torch
from {framework}.autograd import Function


class Forces(Function):
    @staticmethod
    def forward(ctx, x, i, j):
        d = x[i] - x[j]
        ctx.save_for_backward(d, i, j)
        ctx.shape = x.shape
        return (d * d).sum(-1)

    @staticmethod
    def backward(ctx, g):
        d, i, j = ctx.saved_tensors
        f = {factor} * g[:, None] * d
        out = torch.zeros(ctx.shape, dtype=g.dtype)
        {add}
        {take}
        return out, None, None
"""
ADDED = "out.index_put_((i,), f, accumulate=True)"
TAKEN = "out.index_put_((j,), -f, accumulate=True)"
INDICES = {"x": {"shape": [4, 3]}, "i": {"value": [0, 0, 1, 2, 3]}, "j": {"value": [1, 2, 3, 3, 3]}}


def checked(path, framework, factor, add, take):
    pytest.importorskip(framework.partition(".")[0])
    path.write_text(FORCES.format(framework=framework, factor=factor, add=add, take=take))
    return gradcli.check(f"{path}:Forces", INDICES, order=1, samples=1, shrink=False).cases[0]


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_two_statements_that_lose_values_are_named(framework, tmp_path):
    assert checked(tmp_path / "right.py", framework, "2", ADDED, TAKEN).verdict is Verdict.PASSED
    (finding,) = checked(tmp_path / "wrong.py", framework, "2", "out[i] += f", "out[j] -= f").findings
    assert finding.kind is K.WRONG_ENTRIES
    assert "`out[i] += f` in line 18 and `out[j] -= f` in line 19 keep the last alone" in finding.message
    assert finding.location.line == 18


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_one_of_two_statements_that_loses_values_is_named(framework, tmp_path):
    (finding,) = checked(tmp_path / "wrong.py", framework, "2", ADDED, "out[j] -= f").findings
    assert "j selects more than once" in finding.message or "`out[j] -= f` in line 19 keeps" in finding.message


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_another_mistake_beside_it_is_not_said_to_be_mended(framework, tmp_path):
    for number, (add, take) in enumerate(((ADDED, TAKEN), ("out[i] += f", "out[j] -= f"))):
        case = checked(tmp_path / f"wrong{number}.py", framework, "2.02", add, take)
        assert case.verdict is Verdict.FAILED
        assert not any("occurs more than once" in finding.message for finding in case.findings)
