"""Where do NaN and Inf come from: short programs with one mistake each, which the trace names on both frameworks."""

import pytest

from tests.tracing.puzzles.answers import check_answer, leaf, watched


def log0(f):
    x = f.tensor([1.0, 0.0], requires_grad=True)
    f.log(x).sum().backward()


def sqrt0_grad(f):
    x = f.tensor([0.0, 1.0], requires_grad=True)
    f.sqrt(x).sum().backward()


def norm0(f):
    x = f.zeros(3, requires_grad=True)
    f.sqrt((x * x).sum()).backward()


def div0(f):
    x = f.tensor([1.0, 2.0], requires_grad=True)
    (x / (x - 1.0)).sum().backward()


def zero_by_zero(f):
    x = f.tensor([0.0, 2.0], requires_grad=True)
    (x / x).sum().backward()


def exp_overflow(f):
    x = f.tensor([1000.0, 1.0], requires_grad=True)
    (f.exp(x) / f.exp(x).sum()).sum().backward()


def mask_all_inf(f):
    s = f.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    m = f.tensor([[True, True], [False, False]])
    f.softmax(s.masked_fill(m, float("-inf")), -1).sum().backward()


def std_one(f):
    x = f.tensor([[1.0]], requires_grad=True)
    x.std(dim=1).sum().backward()


def pow_neg(f):
    x = f.tensor([-1.0, 4.0], requires_grad=True)
    (x**0.5).sum().backward()


def where_trap(f):
    x = f.tensor([0.0, 4.0], requires_grad=True)
    f.where(x > 0, f.log(x), f.zeros_like(x)).sum().backward()


def inf_minus_inf(f):
    x = f.tensor([800.0], requires_grad=True)
    (f.exp(x) - f.exp(x)).sum().backward()


def acos1(f):
    x = f.tensor([1.0, 0.2], requires_grad=True)
    f.acos(x).sum().backward()


def hook_nan(f):
    x = leaf(f)
    y = x * 2
    y.register_hook(lambda g: g / 0 * 0)
    y.sum().backward()


def fn_backward_div0(f):

    class M(f.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g / (a - a)

    x = leaf(f)
    M.apply(x).sum().backward()


def xlogx(f):
    x = f.tensor([0.0, 0.5], requires_grad=True)
    (x * f.log(x)).sum().backward()


def mean_empty(f):
    x = f.tensor([1.0, 2.0], requires_grad=True)
    x[x > 5].mean().backward()


def masked_by_a_product(f):
    scores, mask = leaf(f), f.tensor([1.0, 0.0, 1.0])
    bias = (1 - mask) * float("-inf")  # here
    f.softmax(scores + bias, 0)[0].backward()


def infinite_constant(f):
    x = watched(f.tensor([0.0, 1.0], requires_grad=True))
    (x * float("inf")).sum().backward()  # here


def root_of_negative_behind_a_where(f):
    x = watched(f.tensor([-1.0, 4.0], requires_grad=True))
    root = f.sqrt(x)  # here
    f.where(x > 0, root, f.zeros_like(x)).sum().backward()


def masked_row_behind_nan_to_num(f):
    q = watched(f.ones(2, 2, requires_grad=True))
    scores = q.masked_fill(f.tensor([[True, True], [True, False]]), float("-inf"))
    weights = f.softmax(scores, dim=-1)  # here
    weights.nan_to_num(0.0).sum().backward()


def no_target_counts(f):
    logits = leaf(f).reshape(1, 3)
    f.nn.functional.cross_entropy(logits, f.tensor([1]), weight=f.zeros(3)).backward()  # here


def overflow_of_a_gradient(f):
    x = watched(f.tensor([1e20], requires_grad=True))
    y = x * 1e-30
    (y * 1e10).backward(f.tensor([1e38]))  # here


def log1p_at_its_pole(f):
    x = watched(f.tensor([-1.0, 1.0], requires_grad=True))
    f.log1p(x).sum().backward()  # here


def normalised_without_spread(f):
    class Norm(f.nn.Module):
        def forward(self, x):
            centred = x - x.mean()
            return centred / f.sqrt((centred**2).mean())  # here

    Norm()(watched(f.ones(3, requires_grad=True))).sum().backward()


def diverging_steps(f):
    w = watched(f.tensor([1.0], requires_grad=True))
    for rate in (1e30, 1e30):
        loss = (w**3).sum()  # here
        loss.backward()
        with f.no_grad():
            w -= rate * w.grad
        w.grad = None


def given_nan(f):
    w = leaf(f, 2)
    (w * w).backward(f.tensor([float("nan"), 1.0]))


PUZZLES = (
    (log0, r"log at .*log\(0\) = -inf at entry \[1\]; keep its operand away from 0"),
    (sqrt0_grad, r"SqrtBackward0, .*keep its operand away from 0"),
    (norm0, r"SqrtBackward0, "),
    (div0, r"div at .*1 / 0 = inf at entry \[0\]"),
    (zero_by_zero, r"div at .*0 / 0 = nan"),
    (exp_overflow, r"exp at .*overflow of float32; div at .*turns it into NaN: inf / inf"),
    (mask_all_inf, r"softmax of a row that holds only -inf is 0/0.*masked_fill at"),
    (std_one, r"std of one entry is 0/0"),
    (pow_neg, r"\(-1\) \*\* 0\.5 = nan.*from becoming negative"),
    (where_trap, r"LogBackward0, .*the `where` at .*does not select its result at entry \[0\]"),
    (inf_minus_inf, r"exp\(800\) = inf.*sub at .*turns it into NaN"),
    (acos1, r"AcosBackward0, .*keep its operand away from -1 and 1"),
    (hook_nan, r"the hook `<lambda>` at .*made the first NaN or Inf"),
    (fn_backward_div0, r"in its backward, div at .*1 / 0 = inf"),
    (xlogx, r"log\(0\) = -inf.*mul at .*turns it into NaN"),
    (mean_empty, r"mean of an empty tensor is 0/0"),
    (masked_by_a_product, r"mul at {here} made .*: 0 · \(-inf\) = nan at entry \[0\]; .* `masked_fill` or `where`"),
    (infinite_constant, r"mul at {here} made .*: 0 · inf = nan at entry \[0\]"),
    (root_of_negative_behind_a_where, r"sqrt at {here} made .*sqrt\(-1\) = nan.*the result does not show it"),
    (masked_row_behind_nan_to_num, r"softmax at {here} made .* a row that holds only -inf .*leave at least one entry"),
    (no_target_counts, r"cross_entropy at {here} made .*make sure that at least one target"),
    (overflow_of_a_gradient, r"MulBackward0, {here}, .*gradient of 1e\+38 .*an overflow; scale down the loss"),
    (log1p_at_its_pole, r"log1p at {here} made .*log1p\(-1\) = -inf at entry \[0\]; keep its operand above -1"),
    (normalised_without_spread, r"div at {here} made .*: 0 / 0 = nan"),
    (diverging_steps, r"pow at {here} made .*: \(-3e\+30\) \*\* 3 = -inf"),
    (given_nan, r"the gradient passed to backward is itself NaN"),
)  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("program", "answer"), PUZZLES, ids=[program.__name__ for program, _ in PUZZLES])
def test_the_mistake_is_named_at_its_line(framework, program, answer):
    check_answer(framework, program, answer)
