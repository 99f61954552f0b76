"""Whole numbers that change together: a mistake that shows only where two of them are not neutral."""

import pytest

from gradcli.verdict import Verdict
from tests.checks.frameworks import decided, tensor

X = tensor("x", [[0.6, -1.2, 0.9, -1.7, 0.2, 1.3, -0.5], [0.4, 1.1, -0.8, 0.3, 1.9, -0.7, 1.6]])
W = tensor("w", [0.7, -1.3])


def convolution(ns, mistake=None):
    class Convolution(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, stride=1, padding=0, dilation=1):
            sides = ns.zeros((x.shape[0], padding), dtype=x.dtype)
            wide = ns.cat([sides, x, sides], 1)
            count = (wide.shape[1] - dilation * (w.shape[0] - 1) - 1) // stride + 1
            if count < 1:
                raise ValueError("the kernel is larger than the input")
            places = [slice(k * dilation, k * dilation + stride * (count - 1) + 1, stride) for k in range(w.shape[0])]
            ctx.save_for_backward(wide, w)
            ctx.rest = stride, padding, dilation, x.shape[1], places
            return sum(w[k] * wide[:, places[k]] for k in range(w.shape[0]))

        @staticmethod
        def backward(ctx, g):
            wide, w = ctx.saved_tensors
            stride, padding, dilation, length, places = ctx.rest
            if mistake == "stride and dilation" and stride > 1 and dilation > 1:
                places = [slice(k * dilation, k * dilation + g.shape[1]) for k in range(w.shape[0])]
            gw = ns.stack([(g * wide[:, place]).sum() for place in places])
            gx = ns.zeros_like(wide)
            for k, place in enumerate(places):
                gx[:, place] += w[k] * g
            shift = 1 if mistake == "padding and dilation" and padding and dilation > 1 else 0
            return gx[:, padding - shift : padding - shift + length], gw, None, None, None

    return Convolution


def polynomial(ns, mistake=None):
    class Polynomial(ns.autograd.Function):
        """Two whole exponents that any inputs go with."""

        @staticmethod
        def forward(ctx, x, p=2, q=1):
            ctx.save_for_backward(x)
            ctx.exponents = p, q
            return x**p + x**q

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            p, q = ctx.exponents
            slope = p * x ** (p - 1) + q * x ** (q - 1)
            return g * (slope + (x if mistake == "both" and p > 2 and q > 1 else 0 * x)), None, None

    return Polynomial


CASES = [
    (convolution, (X, W), "stride and dilation"),
    (convolution, (X, W), "padding and dilation"),
    (polynomial, (X,), "both"),
]


@pytest.mark.parametrize(("made", "inputs"), [(convolution, (X, W)), (polynomial, (X,))])
def test_a_right_function_passes_without_a_note(backend, ns, made, inputs):
    verdict, evidence = decided(backend, made(ns), *inputs, order=1)
    assert verdict is Verdict.PASSED
    assert not [e.note for e in evidence if e.check == "constants" and e.note]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("made", "inputs", "mistake"), CASES)
def test_its_wrong_twin_fails_where_all_numbers_change(backend, ns, made, inputs, mistake):
    verdict, evidence = decided(backend, made(ns, mistake), *inputs, order=1)
    assert verdict is Verdict.FAILED
    wrong = [e for e in evidence if e.verdict is Verdict.FAILED]
    assert {e.check for e in wrong} == {"constants"}
    assert all(" and " in e.note for e in wrong), wrong
