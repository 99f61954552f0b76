"""Corrections that are right only at the inputs tried are not offered."""

import pytest

import gradcli
from gradcli.diagnosis import naming
from gradcli.diagnosis.slips import search
from gradcli.diagnosis.slips.wording import CORRECTED
from gradcli.results import Evidence
from gradcli.runner.outcome.proof import failures_of
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("unshrunk")
FRAMEWORKS = ("gradcli.engine", "torch")
HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n"
INVERSE = (
    HEADER
    + """
class Inverse(Function):
    @staticmethod
    def forward(ctx, q):
        y = torch.cat((-q[..., :3], q[..., 3:]), -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y.sum(-1, keepdim=True)
"""
)
ROUNDED = (
    HEADER
    + """
class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(-x.abs()).float().double()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return -g * torch.exp(-x.abs())
"""
)
PAIRS = (
    HEADER
    + """
class Pairs(Function):
    @staticmethod
    def forward(ctx, x):
        p = x.reshape(*x.shape[:-1], -1, 2)
        ctx.save_for_backward(p == p.amin(-1, keepdim=True))
        return p.amax(-1)

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        d = mask * g.unsqueeze(-1)
        return d.reshape(*g.shape[:-1], -1)
"""
)
SOFTMAX = (
    HEADER
    + """
class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return y * g
"""
)
FLOW = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def flow(log_s, x):
    return x * jnp.exp(log_s), jnp.broadcast_to(jnp.sum(log_s), x.shape[:1])


def _fwd(log_s, x):
    return flow(log_s, x), (log_s, x)


def _bwd(res, g):
    log_s, x = res
    gy, gld = g
    e = jnp.exp(log_s)
    return jnp.sum(gy * x * e, 0) + jnp.mean(gld), gy * e


flow.defvjp(_fwd, _bwd)
"""


def corrections(tmp_path, source, name, framework="", only=(), **inputs):
    if framework:
        pytest.importorskip(framework)
    file = tmp_path / f"refused_{name.lower()}_{framework[-5:]}.py"
    file.write_text(source.replace("{framework}", framework))
    case = gradcli.check(f"{file}:{name}", inputs or None, order=1, samples=1, only=only).cases[0]
    assert case.verdict is Verdict.FAILED
    return [finding.message for finding in case.findings if CORRECTED in finding.message], case


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_quotient_that_is_not_finite_at_zero_is_refused(tmp_path, framework):
    found, _ = corrections(tmp_path, INVERSE, "Inverse", framework, q={"shape": [3, 4]})
    assert not any("/ q" in text or "sign" in text for text in found), found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_digits_of_a_coefficient_are_no_noise(tmp_path, framework):
    found, case = corrections(tmp_path, ROUNDED, "Rounded", framework, x={"shape": [3, 4]})
    texts = [finding.message for finding in case.findings]
    assert any("sign(" in text for text in found), texts
    assert not any("1.0000" in text or "0.9999" in text for text in texts), texts


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_sum_over_pairs_is_not_told_from_an_exchange(tmp_path, framework):
    found, _ = corrections(tmp_path, PAIRS, "Pairs", framework, x={"shape": [3, 6]})
    assert not any("d.sum(" in text or "d.mean(" in text or "flip" in text for text in found), found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_sum_over_two_classes_is_told_where_there_can_be_more(tmp_path, framework):
    found, _ = corrections(tmp_path, SOFTMAX, "Softmax", framework, x={"shape": [3, 2]})
    assert any(".sum(" in text for text in found)


def test_a_correction_keeps_the_shape_of_the_gradient(tmp_path, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setattr(naming, "NAMING_SECONDS", 300.0)  # a slow machine must not end the search
    monkeypatch.setattr(search, "_SECONDS", 150.0)
    found, _ = corrections(tmp_path, FLOW, "flow", only=("gradient",), log_s={"shape": [3]}, x={"shape": [2, 3]})
    assert any("+ jnp.sum(gld)` belongs" in text for text in found), found


@pytest.mark.parametrize(("error", "order", "count"), [(6e-8, 1, 0), (2e-7, 1, 1), (6e-8, 2, 1)])
def test_an_error_that_does_not_count_refutes_no_correction(error, order, count):
    evidence = Evidence(check="gradient", verdict=Verdict.FAILED, input="x", order=order, max_rel_error=error)
    result = type("Result", (), {"evidence": (evidence,)})()
    assert len(failures_of(result)) == count


APPLIED = """
import {framework} as torch
from {framework}.autograd import Function


class Taken(Function):
    @staticmethod
    def forward(ctx, x, order, back):
        ctx.save_for_backward(order, back)
        return torch.gather(x, -1, {inside})

    @staticmethod
    def backward(ctx, g):
        order, back = ctx.saved_tensors
        return torch.gather(g, -1, back), None, None


class Sorted(Function):
    @staticmethod
    def forward(ctx, x):
        order = torch.argsort(x, -1)
        ctx.save_for_backward(order, torch.argsort(order, -1))
        return torch.gather(x, -1, order)

    @staticmethod
    def backward(ctx, g):
        order, back = ctx.saved_tensors
        return Taken.apply(g, {given})
"""


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("given", "inside", "says"),
    [
        ("back, order", "order", None),
        ("order, back", "order", "where `Taken.apply(g, back, order)` belongs"),
        (
            "back, order",
            "back",
            "but its own derivative is not: the mistake may be in the Function that backward applies",
        ),
    ],
)
def test_a_correction_where_a_function_is_applied_is_right_for_its_backward_too(
    given, inside, says, framework, tmp_path
):
    pytest.importorskip(framework)
    path = tmp_path / f"applied_{given[0]}{inside}{framework[-5:]}.py"
    path.write_text(APPLIED.format(framework=framework, given=given, inside=inside))
    case = gradcli.check(f"{path}:Sorted", {"x": {"shape": [3, 5]}}, order=1, samples=1, only=("gradient",)).cases[0]
    assert case.verdict is (Verdict.PASSED if says is None else Verdict.FAILED)
    for finding in case.findings:
        assert says in finding.message
        assert (f"{CORRECTED}, but" in finding.message) is says.startswith("but")
