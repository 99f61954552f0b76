"""Where a gradient may be a surrogate, by its documentation or its arguments, this is said and no fix is offered."""

import pytest

import gradcli
from gradcli.findings import SURROGATE_ADVICE
from gradcli.verdict import Verdict

SOURCE = '''
import gradcli.engine as ns


class {name}(ns.autograd.Function):
    """{text}"""

    @staticmethod
    def forward(ctx, x, gain):
        {saved}
        ctx.save_for_backward(x)
        return ns.sin(x) * {factor}

    @staticmethod
    def backward(ctx, g):
        {comment}
        (x,) = ctx.saved_tensors
        return g * {slope}, None
'''
PLAIN = {
    "name": "Wave",
    "text": "Sine. The saved input is used for the backward, which computes the gradient.",
    "saved": "ctx.gain = gain",
    "factor": "gain",
    "comment": "# multiply the gradient of the output by the derivative",
    "slope": "ns.cos(x) * ctx.gain",
}
MEANT = {
    "the name": {"name": "WaveSTE"},
    "the name of a scaling": {"name": "GradientScaler"},
    "a scaling": {"text": "Scale gradients by a constant factor."},
    "the docstring": {"text": "A sine, but use the cosine of a triangle for the backward."},
    "an approximation": {"text": "gain: a parameter of the approximation of the gradient"},
    "a comment": {"comment": "# the slope of a line instead of the true derivative"},
    "an argument of backward's": {"factor": "2"},
}


def checked(tmp_path, parts, slope):
    file = tmp_path / "wave.py"
    file.write_text(SOURCE.format(**{**PLAIN, **parts, "slope": slope}))
    (case,) = gradcli.check(str(file), order=1, samples=1).cases
    return case


@pytest.mark.parametrize("name", MEANT)
def test_a_gradient_that_may_be_meant_has_the_advice_and_no_patch(tmp_path, name):
    parts = MEANT[name]
    case = checked(tmp_path, parts, "ns.sin(x) * ctx.gain")
    assert case.findings[0].message.endswith(SURROGATE_ADVICE)
    assert case.patch is None


@pytest.mark.parametrize("name", MEANT)
def test_the_right_gradient_passes_whatever_is_said_of_it(tmp_path, name):
    parts = MEANT[name]
    assert checked(tmp_path, parts, f"ns.cos(x) * {parts.get('factor', 'ctx.gain')}").verdict is Verdict.PASSED


def test_a_mistake_of_which_nothing_is_said_is_corrected(tmp_path):
    case = checked(tmp_path, {}, "ns.sin(x) * ctx.gain")
    assert SURROGATE_ADVICE not in case.findings[0].message
    assert case.patch is not None


@pytest.mark.parametrize("saved", ["ctx.gain = gain * 1", "ctx.eps = ctx.gain = gain; gain = ctx.gain"])
def test_an_argument_that_forward_uses_does_not_serve_backward_alone(tmp_path, saved):
    case = checked(tmp_path, {"saved": saved}, "ns.sin(x) * ctx.gain")
    assert SURROGATE_ADVICE not in case.findings[0].message
