"""Strides, paddings and dilations at other values, where outputs have other shapes."""

import pytest

import gradcli
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, decided, tensor
from tests.pairs import in_turn

ROWS = [[0.6, -1.2, 0.9, -1.7, 0.2, 1.3, -0.5], [0.4, 1.1, -0.8, 0.3, 1.9, -0.7, 1.6]]
X, W = tensor("x", ROWS), tensor("w", [0.7, -1.3, 0.4])


def window(k, count, stride, dilation):
    """The entries that the kernel's entry k meets."""
    return slice(k * dilation, k * dilation + stride * (count - 1) + 1, stride)


def padded(ns, x, padding):
    sides = ns.zeros((x.shape[0], padding), dtype=x.dtype)
    return ns.cat([sides, x, sides], 1)


def convolution(ns, mistake=None):
    class Convolution(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, stride=1, padding=0, dilation=1):
            p = padded(ns, x, padding)
            count = (p.shape[1] - dilation * (w.shape[0] - 1) - 1) // stride + 1
            if count < 1:
                raise ValueError("the kernel is larger than the input")
            ctx.save_for_backward(x, w)
            ctx.numbers = stride, padding, dilation
            return sum(w[k] * p[:, window(k, count, stride, dilation)] for k in range(w.shape[0]))

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            s, p, d = ctx.numbers
            if mistake == "raises" and s > 1:
                raise NotImplementedError("only stride 1 is supported")
            wide = padded(ns, x, p)
            gw = ns.stack([(g * wide[:, window(k, g.shape[1], s, d)]).sum() for k in range(w.shape[0])])
            gx = ns.zeros_like(wide)
            for k in range(w.shape[0]):
                place = window(k, g.shape[1], 1 if mistake == "stride" else s, 1 if mistake == "dilation" else d)
                gx[:, place] += w[k] * g
            first = 0 if mistake == "padding" else p
            gx = gx if mistake == "shape" else gx[:, first : first + x.shape[1]]
            return gx, gw, None, None, None

    return Convolution


def transposed(ns, mistake=None):
    """The transposed convolution; padding takes entries away from both ends."""

    class Transposed(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, w, stride=1, padding=0):
            out = ns.zeros((x.shape[0], stride * (x.shape[1] - 1) + w.shape[0]), dtype=x.dtype)
            for k in range(w.shape[0]):
                out[:, window(k, x.shape[1], stride, 1)] += w[k] * x
            ctx.save_for_backward(x, w)
            ctx.numbers = stride, padding
            return out[:, padding : out.shape[1] - padding]

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            s, p = ctx.numbers
            g = padded(ns, g, p)
            step = 1 if mistake == "stride" else s
            gx = sum(w[k] * g[:, window(k, x.shape[1], step, 1)] for k in range(w.shape[0]))
            gw = ns.stack([(x * g[:, window(k, x.shape[1], s, 1)]).sum() for k in range(w.shape[0])])
            return gx, gw, None, None

    return Transposed


def average(ns, mistake=None):
    """The mean of each window; the windows are side by side where no stride is given."""

    class Average(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, size=2, stride=None):
            stride = stride or size
            count = (x.shape[1] - size) // stride + 1
            ctx.numbers = size, stride
            ctx.shape = x.shape
            return sum(x[:, window(k, count, stride, 1)] for k in range(size)) / size

        @staticmethod
        def backward(ctx, g):
            size, stride = ctx.numbers
            gx = ns.zeros(ctx.shape, dtype=g.dtype)
            for k in range(size):
                gx[:, window(k, g.shape[1], stride, 1)] += g / (stride if mistake == "divisor" else size)
            return gx, None, None

    return Average


def largest(ns, mistake=None):
    """The largest entry of each window of two."""

    class Largest(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, stride=2):
            count = (x.shape[1] - 2) // stride + 1
            first, second = (x[:, window(k, count, stride, 1)] for k in range(2))
            ctx.is_first = first > second
            ctx.stride, ctx.shape = stride, x.shape
            return ns.where(ctx.is_first, first, second)

        @staticmethod
        def backward(ctx, g):
            gx = ns.zeros(ctx.shape, dtype=g.dtype)
            for row in range(g.shape[0]):
                for n in range(g.shape[1]):
                    entry = n * ctx.stride + (0 if ctx.is_first[row, n] else 1)
                    gx[row, entry] = g[row, n] + (0 if mistake == "overlap" else gx[row, entry])
            return gx, None

    return Largest


def frames(ns, mistake=None):
    """Overlapping rows of a signal by as_strided."""

    class Frames(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, stride=2):
            flat = x.reshape(-1).contiguous()
            ctx.stride, ctx.shape = stride, x.shape
            ctx.count = (flat.shape[0] - 4) // stride + 1
            return ns.as_strided(flat, (ctx.count, 4), (stride, 1)).clone()

        @staticmethod
        def backward(ctx, g):
            gx = ns.zeros((ctx.shape[0] * ctx.shape[1],), dtype=g.dtype)
            for row in range(ctx.count):
                start = row * (2 if mistake == "stride" else ctx.stride)
                gx[start : start + 4] += g[row]
            return gx.reshape(ctx.shape), None

    return Frames


CASES = {
    "convolution": (convolution, (X, W), ("stride", "padding", "dilation")),
    "transposed convolution": (transposed, (X, W), ("stride",)),
    "average": (average, (X,), ("divisor",)),
    "largest": (largest, (X,), ("overlap",)),
    "frames": (frames, (X,), ("stride",)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_right_function_of_windows_passes(backend, ns, name):
    made, inputs, _ = CASES[name]
    verdict, evidence = decided(backend, made(ns), *inputs, order=1)
    assert verdict is Verdict.PASSED
    assert not [e.note for e in evidence if e.check == "constants" and e.note]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "mistake"), [(name, each) for name in CASES for each in CASES[name][2]])
def test_its_wrong_twin_fails(backend, ns, name, mistake):
    made, inputs, _ = CASES[name]
    verdict, evidence = decided(backend, made(ns, mistake), *inputs, order=1)
    assert verdict is Verdict.FAILED
    assert {e.check for e in evidence if e.verdict is Verdict.FAILED} == {"constants"}


@pytest.mark.parametrize(("mistake", "what"), [("raises", "only stride 1 is supported"), ("shape", "gradient")])
def test_a_backward_that_refuses_another_value_is_a_note(backend, ns, mistake, what):
    verdict, evidence = decided(backend, convolution(ns, mistake), X, W, order=1)
    assert verdict is Verdict.PASSED
    notes = [e.note for e in evidence if e.check == "constants" and e.note]
    other = "stride=2 (default: 1)" if mistake == "raises" else "padding=3 (default: 0)"
    assert any(note.startswith(f"with {other}, forward runs but ") and what in note for note in notes), notes


@pytest.mark.sampled(3)
@pytest.mark.parametrize("mistake", [None, "stride", "dilation"])
def test_padding_makes_room_where_the_kernel_is_as_long_as_the_input(backend, ns, mistake):
    verdict, evidence = decided(backend, convolution(ns, mistake), tensor("x", [row[:3] for row in ROWS]), W, order=1)
    assert verdict is (Verdict.FAILED if mistake else Verdict.PASSED)
    wrong = [e.note for e in evidence if e.verdict is Verdict.FAILED]
    assert not mistake or all(f"with {mistake}=" in note and "and padding=3 (default: 0)" in note for note in wrong)


@in_turn("given", [1, 2, 3])
@pytest.mark.parametrize("mistake", [None, "stride"])
def test_a_stride_that_is_given_is_tried_at_others(backend, ns, given, mistake):
    found = decided(backend, convolution(ns, mistake), X, W, constant("stride", given), order=1)[0]
    assert found is (Verdict.FAILED if mistake else Verdict.PASSED)


def filtered(x, w, stride=1):
    count = (x.size - w.size) // stride + 1
    return sum(w[k] * x[window(k, count, stride, 1)] for k in range(w.size))


def filtered_vjp(x, w, g, stride=1):
    gx = 0 * x
    for k in range(w.size):
        gx[window(k, g.size, stride, 1)] += w[k] * g
    return gx, [(g * x[window(k, g.size, stride, 1)]).sum() for k in range(w.size)]


def unit_stride_vjp(x, w, g, stride=1):
    return filtered_vjp(x, w, g)[0], filtered_vjp(x, w, g, stride)[1]


@pytest.mark.parametrize(("gradient", "verdict"), [(filtered_vjp, Verdict.PASSED), (unit_stride_vjp, Verdict.FAILED)])
def test_pairs_of_numpy_are_tried_alike(gradient, verdict):
    report = gradcli.check(filtered, (X.value[0], W.value), grad=gradient, shrink=False)
    assert report.verdict is verdict, report
