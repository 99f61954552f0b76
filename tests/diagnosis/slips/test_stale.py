"""What forward keeps for backward and then writes into is named, with a copy as its correction."""

import pytest

import gradcli
from gradcli.findings import FindingKind as K
from gradcli.verdict import Verdict

SCRATCH = """import {framework} as torch
from {framework}.autograd import Function


class Scratch(Function):
    @staticmethod
    def forward(ctx, x):
        buf = x * 2
        {keep}
        y = buf.sin()
        {write}
        return y

    @staticmethod
    def backward(ctx, g):
        return {factor} * g * {kept}.cos()
"""
FRAMEWORKS = ("gradcli.engine", "torch")


def checked(path, **parts):
    pytest.importorskip(parts["framework"].partition(".")[0])
    path.write_text(SCRATCH.format(**parts))
    return gradcli.check(f"{path}:Scratch", {"x": {"shape": [3, 4]}}, order=1, samples=1, shrink=False).cases[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("write", ["buf.mul_(0.5)", "buf *= 0.5", "buf[:] = x", "buf[0] = 0"])
def test_a_later_write_is_named(framework, write, tmp_path):
    case = checked(
        tmp_path / "wrong.py", framework=framework, keep="ctx.buf = buf", write=write, kept="ctx.buf", factor="2"
    )
    (finding,) = [f for f in case.findings if f.kind is K.MUTATES_SAVED]
    assert case.findings[0] is finding
    assert "forward keeps `buf` for backward in line 9 and then writes into it" in finding.message
    assert finding.location.line == 11


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("keep", "factor", "verdict"),
    [
        ("ctx.buf = buf.clone()", "2", Verdict.PASSED),
        ("ctx.buf = buf.clone()", "2.02", Verdict.FAILED),
        ("ctx.buf = buf", "2.02", Verdict.FAILED),
    ],
)
def test_a_copy_and_another_mistake_are_not_called_stale(framework, keep, factor, verdict, tmp_path):
    case = checked(
        tmp_path / "case.py", framework=framework, keep=keep, write="buf.mul_(0.5)", kept="ctx.buf", factor=factor
    )
    assert case.verdict is verdict
    assert not any(finding.kind is K.MUTATES_SAVED for finding in case.findings)
