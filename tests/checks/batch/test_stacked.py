"""A batch in front of the inputs, where backward is written for any number of leading axes."""

import pytest

import gradcli
from gradcli.verdict import Verdict

SOURCE = """
import {framework} as torch
from {framework}.autograd import Function

MISTAKE = {mistake!r}


class Square(Function):
    '''The trace of the square of a matrix.'''

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return (a * a.transpose(-1, -2)).sum((-1, -2))

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        if MISTAKE == "first axis":
            return 2 * g[..., None, None] * a.transpose(0, -1)
        if MISTAKE == "mean" and a.shape[:-2]:
            g = g.mean().expand(g.shape)
        return 2 * g[..., None, None] * a.transpose(-1, -2)


class Rows(Function):
    '''A product with weights that all rows share.'''

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return (x * w).sum(-1)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g[..., None] * w, (g[..., None] * x).sum(0)


class Unbatched(Function):
    '''Written for one matrix alone: nothing in backward speaks of further axes.'''

    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return (a * a.transpose(-1, -2)).sum((-1, -2))

    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return 2 * g.sum() * a.transpose(-1, -2)
"""


@pytest.fixture(params=("gradcli.engine", "torch"))
def checked(request, tmp_path):
    if request.param == "torch":
        pytest.importorskip("torch")

    def check(name, mistake=None, **options):
        file = tmp_path / "written.py"
        file.write_text(SOURCE.format(framework=request.param, mistake=mistake))
        return gradcli.check(f"{file}:{name}", order=1, shrink=False, **options).cases[0]

    return check


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["Square", "Rows", "Unbatched"])
def test_a_right_function_passes(checked, name):
    case = checked(name)
    assert case.verdict is Verdict.PASSED, case.findings
    assert not any("is wrong" in note for note in case.notes), case.notes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mistake", ["first axis", "mean"])
def test_its_wrong_twin_fails_for_a_batch(checked, mistake):
    case = checked("Square", mistake)
    assert case.verdict is Verdict.FAILED, case
    count = 2 if mistake == "mean" else 3
    assert any(f"with a of shape [{count}, 3, 3], sizes that gradcli tried" in f.message for f in case.findings)


ROWS_OF_JAX = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def log_sum_exp(x):
    return jax.nn.logsumexp(x, axis=-1)


def forward(x):
    value = log_sum_exp(x)
    return value, (x, value)


def backward(kept, g):
    x, value = kept
    return (jnp.exp(x - value[..., None]) * {cotangent},)


log_sum_exp.defvjp(forward, backward)
"""


@pytest.mark.parametrize("cotangent", ["g[..., None]", "g"])
def test_a_batch_is_tried_where_every_shape_is_compiled_as_well(tmp_path, cotangent):
    pytest.importorskip("jax")
    file = tmp_path / "rows.py"
    file.write_text(ROWS_OF_JAX.format(cotangent=cotangent))
    case = gradcli.check(f"{file}:log_sum_exp", order=1, shrink=False).cases[0]
    assert case.verdict is (Verdict.FAILED if cotangent == "g" else Verdict.PASSED), case
    assert cotangent != "g" or "with x of shape [3, 3]" in case.findings[0].message
