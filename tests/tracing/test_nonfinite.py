"""The first NaN or Inf: the operation that made it, in forward or backward, with its operands, entry and line."""

import re
import sys
import warnings

import numpy as np
import pytest

from tests.tracing.tracing import line_of, traced

HERE = sys.modules[__name__]
NAME = __file__.rsplit("/", 1)[-1]
INF, NAN = float("inf"), float("nan")


def leaf(f, *values):
    return f.tensor(list(values), requires_grad=True)


def log_of_zero(f):
    y = f.log(leaf(f, 1.0, 0.0))  # log of zero
    return (y * 2 + 1).sum()


def zero_by_zero(f):
    y = leaf(f, 0.0, 1.0) / leaf(f, 0.0, 2.0)  # zero by zero
    return f.tanh(y * 2).sum()


def zero_times_infinity(f):
    y = f.ones(2) / f.tensor([0.0, 1.0])  # by zero
    return (leaf(f, 0.0, 1.0) * y).sum()  # times


def negative_power(f):
    return (leaf(f, 0.0, 2.0) ** -1.5).sum()  # negative power


def root_of_a_negative_base(f):
    return (leaf(f, -2.0, 2.0) ** 0.5).mean()  # negative base


def deviation_of_one_entry(f):
    return leaf(f, 3.0).std()  # one entry


def deviation_of_rows_of_one(f):
    return (f.ones(3, 1, requires_grad=True).std(1) * 2).sum()  # rows of one


def overflow(f):
    return f.exp(leaf(f, 1.0, 1000.0)).sum()  # overflow


def overflow_that_becomes_nan(f):
    a = f.exp(leaf(f, 800.0, 1.0))  # grows
    return (a - a).sum()  # becomes


def softmax_of_a_masked_row(f):
    hidden = f.tensor([[True, True], [False, True]])
    scores = f.ones(2, 2, requires_grad=True).masked_fill(hidden, -INF)  # masked
    return (f.softmax(scores, -1) * f.ones(2, 2)).sum()  # row


def nan_in_the_data(f):
    data = f.tensor([1.0, NAN, 2.0])  # data
    return (leaf(f, 1.0, 2.0, 3.0) * data).exp().sum()


def nan_in_a_parameter(f):
    net = f.nn.Linear(2, 1)
    with f.no_grad():
        net.weight.fill_(NAN)  # parameter
    return net(f.ones(1, 2)).sum()


def nan_put_at_an_entry(f):
    y = leaf(f, 1.0, 4.0) * 2
    y[1] = NAN  # put
    return y.sum()


def logarithm_of_a_difference(f):
    return f.log(leaf(f, 1.0, -1.0) - 1.5).sum()  # difference


def root_of_a_negative(f):
    return leaf(f, -1.0, 1.0).sqrt().mean()  # negative root


def in_place(f):
    y = leaf(f, 1.0, 0.0) * 1
    y.log_()  # in place
    return y.sum()


def inside_a_function(f):
    class Entropy(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return f.log(x - x) * x  # inside forward

        @staticmethod
        def backward(ctx, g):
            return g

    return Entropy.apply(leaf(f, 1.0, 4.0)).sum()


FORWARD = "made the first NaN or Inf, in forward: "
BACKWARD = "made the first NaN or Inf, in backward: "
SOURCES = [
    (log_of_zero, f"log at {{# log of zero}} {FORWARD}log(0) = -inf at entry [1]"),
    (zero_by_zero, f"div at {{# zero by zero}} {FORWARD}0 / 0 = nan at entry [0]; keep the divisor away from 0"),
    (zero_times_infinity, f"div at {{# by zero}} {FORWARD}1 / 0 = inf at entry [0]; mul at {{# times}} turns it "
     "into NaN: 0 · inf = nan"),
    (negative_power, f"pow at {{# negative power}} {FORWARD}0 ** (-1.5) = inf at entry [0]"),
    (root_of_a_negative_base, f"pow at {{# negative base}} {FORWARD}(-2) ** 0.5 = nan at entry [0]"),
    (deviation_of_one_entry, f"std at {{# one entry}} {FORWARD}std of one entry is 0/0, because it divides by n - 1 ="),
    (deviation_of_rows_of_one, f"std at {{# rows of one}} {FORWARD}std of one entry is 0/0"),
    (overflow, f"exp at {{# overflow}} {FORWARD}exp(1000) = inf at entry [1], an overflow of float32"),
    (overflow_that_becomes_nan, f"exp at {{# grows}} {FORWARD}exp(800) = inf at entry [0], an overflow of "
     "float32; sub at {# becomes} turns it into NaN: inf - inf = nan"),
    (softmax_of_a_masked_row, f"softmax at {{# row}} {FORWARD}softmax of a row that holds only -inf is 0/0 at entry "
     "[0, 0]; the Inf comes from masked_fill at {# masked}; leave at least one entry of each row unmasked"),
    (nan_in_the_data, "tensor at {# data} puts NaN at entry [1] into the data"),
    (nan_in_a_parameter, "fill_ at {# parameter} puts NaN at entry [0, 0] into the data"),
    (nan_put_at_an_entry, "setitem at {# put} puts NaN at entry [1] into the data"),
    (logarithm_of_a_difference, f"log at {{# difference}} {FORWARD}log(-0.5) = nan at entry [0]; keep its operand from "
     "becoming negative"),
    (root_of_a_negative, f"sqrt at {{# negative root}} {FORWARD}sqrt(-1) = nan at entry [0]"),
    (in_place, f"log_ at {{# in place}} {FORWARD}log(its former value) = -inf at entry [1]"),
    (inside_a_function, f"log at {{# inside forward}} {FORWARD}log(0) = -inf at entry [0]"),
]  # fmt: skip


def overflow_that_the_result_hides(f):
    return (1 / (1 + f.exp(leaf(f, 1000.0, 1.0)))).sum()  # hidden


def overflow_under_a_division(f):
    grown = f.exp(leaf(f, 1000.0, 1.0))  # under
    return (1 / grown).sum()


def root_at_zero_times_zero(f):
    x = leaf(f, 0.0, 4.0)
    return (f.sqrt(x) * 0 + x * 2).sum()  # at zero


def power_at_zero(f):
    return (leaf(f, 0.0, 4.0) ** 0.5).sum()  # power


def norm_of_zeros(f):
    x = leaf(f, 0.0, 0.0)
    return (x * x).sum().sqrt()  # norm


def where_around_a_root(f):
    x = leaf(f, 0.0, 4.0)
    root = f.sqrt(x)  # root
    return f.where(x > 0, root, f.zeros(2)).sum()  # around


def where_around_a_division(f):
    x, y = leaf(f, 0.0, 4.0), leaf(f, 1.0, 1.0)
    ratio = y / x  # ratio
    return f.where(x != 0, ratio, f.zeros(2)).sum()  # division


def where_around_an_overflow(f):
    x = leaf(f, 1000.0, 4.0)
    grown = f.exp(x)  # growth
    return f.where(x < 100, grown, f.zeros(2)).sum()  # limited


def masked_fill_over_a_logarithm(f):
    x = leaf(f, 0.0, 4.0)
    y = f.log(x)  # logarithm
    return y.masked_fill(x == 0, 0.0).sum()  # filled


def inside_a_backward(f):
    class Square(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g / (x - x)  # inside backward

    return Square.apply(leaf(f, 1.0, 4.0)).sum()


def inside_a_backward_that_the_user_runs(f):
    loss = inside_a_backward(f)
    loss.backward()
    return loss


def a_hook(f):
    def spoil(g):
        return g * NAN

    y = leaf(f, 1.0, 4.0) * 2
    y.register_hook(spoil)
    return y.sum()


def given_to_backward(f):
    (leaf(f, 1.0, 4.0) * 2).backward(f.tensor([1.0, INF]))


TRAP = (
    "made the first NaN or Inf: the `{}` at {{# {}}} does not select its result at entry [0] and sends a gradient of 0 "
)
SOURCES_IN_BACKWARD = [
    (overflow_that_the_result_hides, f"exp at {{# hidden}} {FORWARD}exp(1000) = inf at entry [0], an overflow of "
     "float32; the result does not show it, but in backward ExpBackward0, {# hidden}, turns it into NaN"),
    (overflow_under_a_division, f"exp at {{# under}} {FORWARD}exp(1000) = inf at entry [0], an overflow of float32"),
    (root_at_zero_times_zero, f"SqrtBackward0, {{# at zero}}, {BACKWARD}it received a gradient of 0 at entry [0] and "
     "returned NaN (saved for this entry: result = 0): the derivative is infinite there, and 0·inf is NaN"),
    (power_at_zero, f"PowBackward0, {{# power}}, {BACKWARD}it received a gradient of 1 at entry [0] and returned Inf "
     "(saved for this entry: self = 0); keep its operand away from 0"),
    (norm_of_zeros, f"SqrtBackward0, {{# norm}}, {BACKWARD}it received a gradient of 1 and returned "
     "Inf (saved for this entry: result"),
    (where_around_a_root, "SqrtBackward0, {# root}, " + TRAP.format("where", "around")),
    (where_around_a_division, "DivBackward0, {# ratio}, " + TRAP.format("where", "division")),
    (where_around_an_overflow, "ExpBackward0, {# growth}, " + TRAP.format("where", "limited")),
    (masked_fill_over_a_logarithm, "LogBackward0, {# logarithm}, " + TRAP.format("masked_fill", "filled")),
    (inside_a_backward, "SquareBackward made the first NaN or Inf: in its backward, div at {# inside backward} "
     "computes 1 / 0 = inf at entry [0]; keep the divisor away from 0"),
    (inside_a_backward_that_the_user_runs, "SquareBackward made the first NaN or Inf: in its backward, div at "
     "{# inside backward} computes 1 / 0 = inf at entry [0]"),
    (a_hook, "the hook `spoil` at "),
    (given_to_backward, "the gradient passed to backward is itself NaN or infinite"),
]  # fmt: skip


def placed(sentence):
    """The sentence with each {mark} replaced by the line that ends with it."""
    return re.sub(r"\{(# .*?)\}", lambda found: f"{NAME}:{line_of(HERE, found[1])}", sentence)


def stripped(text):
    return re.sub(r"[^\s(]*/(?=test_nonfinite)", "", text)


def run_silently(framework, program):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="std.*degrees of freedom", category=UserWarning)
        return traced(framework, lambda: program(framework))


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    ("program", "sentence"), SOURCES + SOURCES_IN_BACKWARD, ids=lambda value: getattr(value, "__name__", "")
)
def test_the_source_is_named_and_what_passes_it_on_is_not(framework, program, sentence):
    graph = run_silently(framework, program)
    assert graph.error is None
    assert graph.graph_symptoms == ("non-finite-gradient",)
    told = [stripped(lint) for lint in graph.lints]
    assert len(told) == 1
    assert told[0].startswith(placed(sentence)), told[0]


def test_a_warning_of_compiled_code_keeps_its_line():
    torch = pytest.importorskip("torch", reason="the engine has no compiled code")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced(torch, lambda: deviation_of_one_entry(torch))
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, line_of(HERE, "# one entry"))]


def where_with_a_safe_operand(f):
    x = leaf(f, 0.0, 4.0)
    safe = f.where(x > 0, x, f.ones(2))
    return f.where(x > 0, f.sqrt(safe), f.zeros(2)).sum()


def softmax_of_partly_masked_rows(f):
    hidden = f.tensor([[True, False], [False, True]])
    scores = f.ones(2, 2, requires_grad=True).masked_fill(hidden, -INF)
    return (f.softmax(scores, -1) * f.tensor([[1.0, 2.0], [3.0, 4.0]])).sum()


def infinity_that_is_compared(f):
    x = leaf(f, 1.0, 4.0)
    return f.minimum(x, f.tensor([INF, 2.0])).sum()


def nan_that_is_not_used(f):
    x = leaf(f, 0.0, 4.0)
    assert not f.isfinite(f.log(x)).all()
    return (x * 2).sum()


@pytest.mark.parametrize(
    "program",
    [where_with_a_safe_operand, softmax_of_partly_masked_rows, infinity_that_is_compared, nan_that_is_not_used],
)
def test_infinity_that_does_no_harm_is_not_reported(framework, program):
    graph = run_silently(framework, program)
    assert (graph.graph_symptoms, graph.lints) == ((), ())


@pytest.mark.sampled(10)
@pytest.mark.parametrize(
    "program", [entry[0] for entry in SOURCES + SOURCES_IN_BACKWARD], ids=lambda value: value.__name__
)
def test_gradients_are_bit_for_bit_those_of_an_untraced_run(framework, program, monkeypatch):
    made, plain_leaf = [], leaf

    def kept(f, *values):
        made.append(plain_leaf(f, *values))
        return made[-1]

    monkeypatch.setattr(HERE, "leaf", kept)
    graph = run_silently(framework, program)
    seen = [None if t.grad is None else t.grad.numpy().tobytes() for t in made]
    made.clear()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="std.*degrees of freedom", category=UserWarning)
        result = program(framework)
        if graph.pass_site is None:
            result.backward()
    assert [None if t.grad is None else t.grad.numpy().tobytes() for t in made] == seen


def test_the_first_nan_is_blamed_on_the_operation_that_made_it(framework):
    def loss():
        x = framework.tensor([0.0, 4.0], requires_grad=True)
        return (framework.sqrt(x) * 0 + x * 2).sum()  # the trap

    with np.errstate(divide="ignore", invalid="ignore"):
        graph = traced(framework, loss)
    assert graph.error is None
    assert "non-finite-gradient" in graph.symptoms
    assert any(lint.startswith("SqrtBackward0, ") and "made the first NaN or Inf" in lint for lint in graph.lints)
