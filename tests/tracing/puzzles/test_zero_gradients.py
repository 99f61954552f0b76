"""Why is .grad zero: short programs with one mistake each, which the trace names on both frameworks."""

import pytest

from tests.tracing.puzzles.answers import check_answer, leaf, watched


def round_zero(f):
    w = leaf(f)
    x = leaf(f)
    (f.round(w) * x).sum().backward()


def clamp_dead(f):
    w = f.tensor([5.0, 6.0], requires_grad=True)
    w.clamp(0, 1).sum().backward()


def relu_dead(f):
    w = f.tensor([-5.0, -6.0], requires_grad=True)
    f.relu(w).sum().backward()


def fn_zeros(f):

    class M(f.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return f.zeros_like(g)

    a = leaf(f)
    M.apply(a).sum().backward()


def softmax_sum(f):
    w = leaf(f)
    f.softmax(w, 0).sum().backward()


def sign(f):
    w = leaf(f)
    x = leaf(f)
    (f.sign(w) * x).sum().backward()


def multiplied_by_zero(f):
    w = leaf(f)
    (w * 0).sum().backward()


def atan2_00(f):
    y = f.tensor([0.0], requires_grad=True)
    x = f.tensor([0.0], requires_grad=True)
    f.atan2(y, x).sum().backward()


def cancels_with_its_mean(f):
    w = f.tensor([0.5, 1.5, 4.0], requires_grad=True)
    watched(w)
    (w - w.mean()).sum().backward()  # here


def cancels_with_itself(f):
    w = leaf(f)
    h = w * 2
    (h - h).sum().backward()  # here


def backward_of_nothing(f):
    w = leaf(f)
    (w * 2).backward(f.zeros(3))


def saturated(f):
    w = watched(f.tensor([1000.0, 2000.0], requires_grad=True))
    f.sigmoid(w).sum().backward()  # here


def second_layer_is_zero(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    watched(*net.parameters())
    with f.no_grad():
        net[1].weight.zero_()
    net(f.ones(1, 2)).sum().backward()  # here


def padding_alone(f):
    table = f.nn.Embedding(3, 2, padding_idx=0)
    watched(*table.parameters())
    table(f.tensor([0, 0])).sum().backward()  # here


def zeroed_after_backward(f):
    w = leaf(f)
    (w * w).sum().backward()
    w.grad.zero_()  # here


PUZZLES = (
    (round_zero, r"w\.grad zero\?.*RoundBackward0"),
    (clamp_dead, r"w\.grad zero\?.*ClampBackward"),
    (relu_dead, r"w\.grad zero\?.*ReluBackward0"),
    (fn_zeros, r"a\.grad zero\?.*returns zeros for its operand 0; its backward is at"),
    (softmax_sum, r"w\.grad zero\?.*SoftmaxBackward0"),
    (sign, r"w\.grad zero\?.*SignBackward0"),
    (multiplied_by_zero, r"w\.grad zero\?.*MulBackward0"),
    (atan2_00, r"y\.grad zero\?.*Atan2Backward0"),
    (cancels_with_its_mean, r"w\.grad zero\?.*the gradients from SubBackward0 \({here}\), MeanBackward0 .* cancel"),
    (cancels_with_itself, r"w\.grad zero\?.*the gradients from SubBackward0 \({here}\) cancel"),
    (backward_of_nothing, r"w\.grad zero\?.*the gradient that backward began with is zero"),
    (saturated, r"w\.grad zero\?.*SigmoidBackward0 \({here}\) returns zeros"),
    (second_layer_is_zero, r"0\.weight\.grad.* zero\?.*AddmmBackward0 \({here}\) returns zeros for its operand 1"),
    (padding_alone, r"weight\.grad zero\?.*\({here}\) returns zeros for its operand 0"),
    (zeroed_after_backward, r"w\.grad zero\?.*backward filled \.grad, and {here} zeroed it again"),
)  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("program", "answer"), PUZZLES, ids=[program.__name__ for program, _ in PUZZLES])
def test_the_mistake_is_named_at_its_line(framework, program, answer):
    check_answer(framework, program, answer)
