"""Fifty short programs, each with one mistake, and what the trace has to say about it on both frameworks."""

import re
import warnings

import pytest

from gradcli.reporters.graph.tree import meaning
from tests.tracing.tracing import untraced_and_traced

_MADE = []


def leaf(f, n=3):
    _MADE.append(f.tensor([0.5 * (i + 1) for i in range(n)], requires_grad=True))
    return _MADE[-1]


def numpy_roundtrip(f):
    w = leaf(f)
    a = f.tensor((w.detach().numpy() * 2).tolist())
    x = leaf(f)
    (a * x).sum().backward()


def data_in_loss(f):
    w = leaf(f)
    x = leaf(f)
    loss = (w.data * x).sum()
    loss.backward()


def item_in_scale(f):
    w = leaf(f, 1)
    x = leaf(f)
    s = w.item()
    (x * s).sum().backward()


def tensor_of_list(f):
    a = leaf(f, 1)
    b = leaf(f, 1)
    stacked = f.tensor([a.item(), b.item()])
    x = leaf(f, 2)
    (stacked * x).sum().backward()


def no_grad_block(f):
    w = leaf(f)
    x = leaf(f)
    with f.no_grad():
        h = w * 3
    (h * x).sum().backward()


def inference_mode(f):
    w = leaf(f)
    x = leaf(f)
    with f.inference_mode():
        h = w * 3
    h = h.clone()
    (h * x).sum().backward()


def decorated_no_grad(f):
    w = leaf(f)
    x = leaf(f)

    @f.no_grad()
    def enc(t):
        return t * 2

    (enc(w) * x).sum().backward()


def argmax_index(f):
    logits = leaf(f)
    x = leaf(f)
    k = logits.argmax()
    (x[k] * 2).backward()


def long_cast(f):
    w = leaf(f)
    x = leaf(f)
    (w.long().float() * x).sum().backward()


def mask_compare(f):
    thr = leaf(f)
    x = leaf(f)
    m = (thr < 1.0).float()
    (m * x).sum().backward()


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


def requires_grad_false_param(f):
    net = f.nn.Linear(2, 2)
    net.weight.requires_grad_(False)
    net(f.ones(1, 2)).sum().backward()


def unused_layer(f):

    class N(f.nn.Module):
        def __init__(s):
            super().__init__()
            s.a = f.nn.Linear(2, 2)
            s.b = f.nn.Linear(2, 2)

        def forward(s, x):
            s.b(x)
            return s.a(x)

    N()(f.ones(1, 2)).sum().backward()


def param_wrapped_again(f):
    w0 = leaf(f)
    x = leaf(f)
    w = f.nn.Parameter(w0)
    (w * x).sum().backward()


def optimizer_zero_after(f):
    net = f.nn.Linear(2, 1)
    opt = f.optim.SGD(net.parameters(), lr=0.1)
    net(f.ones(1, 2)).sum().backward()
    opt.zero_grad()


def fn_none(f):

    class M(f.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            _, b = ctx.saved_tensors
            return (g * b, None)

    a = leaf(f)
    b = leaf(f)
    M.apply(a, b).sum().backward()


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


def scaled_leaf(f):
    w = f.ones(3, requires_grad=True) * 0.1
    w.sum().backward()
    return w


def view_of_leaf(f):
    base = leaf(f, 4)
    w = base.view(2, 2)
    w.sum().backward()
    return w


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


def detach_underscore(f):
    w = leaf(f)
    h = w * 2
    h.detach_()
    x = leaf(f)
    (h * x).sum().backward()


def autograd_grad_only(f):
    w = leaf(f)
    (g,) = f.autograd.grad((w * w).sum(), w)
    return g


def set_grad_enabled_left_off(f):
    w = leaf(f)
    x = leaf(f)
    f.set_grad_enabled(False)
    h = w * 2
    f.set_grad_enabled(True)
    (h * x).sum().backward()


def float_builtin(f):
    w = leaf(f, 1)
    x = leaf(f)
    (x * float(w)).sum().backward()


def sorted_indices(f):
    w = leaf(f)
    x = leaf(f)
    _, i = f.sort(w)
    x[i].sum().backward()


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


def atan2_00(f):
    y = f.tensor([0.0], requires_grad=True)
    x = f.tensor([0.0], requires_grad=True)
    f.atan2(y, x).sum().backward()


def double(f):
    x = leaf(f)
    y = x * 3
    y.register_hook(lambda g: g * 2)
    y.sum().backward()


def clip_leaf(f):
    x = leaf(f)
    x.register_hook(lambda g: g.clamp(-1, 1))
    (x * 5).sum().backward()


def direct_forward(f):
    net = f.nn.Linear(2, 1)
    net.register_forward_hook(lambda m, i, o: o * 2)
    net.forward(f.ones(1, 2)).sum().backward()


def registered_twice(f):
    x = leaf(f)
    y = x * 1

    def d(g):
        return g * 2

    y.register_hook(d)
    y.register_hook(d)
    y.sum().backward()


def zeroing(f):
    x = leaf(f)
    y = x * 2
    y.register_hook(lambda g: f.zeros_like(g))
    y.sum().backward()


def full_backward_scales(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    net[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
    net(f.ones(1, 2)).sum().backward()


PUZZLES = (
    (numpy_roundtrip, r"w\.grad None\?.*detach\(\), which may be the cause"),
    (data_in_loss, r"w\.grad None\?.*\.data"),
    (item_in_scale, r"w\.grad None\?.*item\(\)"),
    (tensor_of_list, r"a\.grad.* None\?.*item\(\)"),
    (no_grad_block, r"w\.grad None\?.*computes under no_grad"),
    (inference_mode, r"w\.grad None\?.*computes under inference_mode"),
    (decorated_no_grad, r"w\.grad None\?.*computes under no_grad"),
    (argmax_index, r"logits\.grad None\?.*argmax\(\)"),
    (long_cast, r"w\.grad None\?.*long\(\)"),
    (mask_compare, r"thr\.grad None\?.*True and False have no gradient"),
    (round_zero, r"w\.grad zero\?.*RoundBackward0"),
    (clamp_dead, r"w\.grad zero\?.*ClampBackward"),
    (relu_dead, r"w\.grad zero\?.*ReluBackward0"),
    (requires_grad_false_param, r"weight\.grad None\?.*requires_grad is False"),
    (unused_layer, r"b\.weight\.grad.* None\?.*uses it, but no traced operation leads"),
    (
        param_wrapped_again,
        r"w0\.grad None\?.*new leaf with nn\.Parameter\(\).*the gradient is in w\.grad",
    ),
    (optimizer_zero_after, r"weight\.grad, bias\.grad None\?.*set to None again at"),
    (fn_none, r"b\.grad None\?.*returned None for its operand 1; its backward is at"),
    (fn_zeros, r"a\.grad zero\?.*returns zeros for its operand 0; its backward is at"),
    (scaled_leaf, r"w .*grad None\?.*computes it with mul from a tensor without a name"),
    (view_of_leaf, r"non-leaf tensors keep no \.grad without retain_grad\(\): w .*view from base"),
    (softmax_sum, r"w\.grad zero\?.*SoftmaxBackward0"),
    (sign, r"w\.grad zero\?.*SignBackward0"),
    (multiplied_by_zero, r"w\.grad zero\?.*MulBackward0"),
    (detach_underscore, r"w\.grad None\?.*detach_\(\)"),
    (autograd_grad_only, r"w\.grad None\?.*only autograd\.grad was called"),
    (set_grad_enabled_left_off, r"w\.grad None\?.*computes under set_grad_enabled\(False\)"),
    (float_builtin, r"w\.grad None\?.*float\(\)"),
    (sorted_indices, r"w\.grad None\?.*sort\(\): the result was computed only from the indices"),
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
    (atan2_00, r"y\.grad zero\?.*Atan2Backward0"),
    (double, r"grad of x is scaled by 2 because `<lambda>`"),
    (clip_leaf, r"grad of x is scaled by 0\.2 because"),
    (direct_forward, r"did not fire: .*calls Linear\.forward directly"),
    (registered_twice, r"grad of x is scaled by 4 because `d` at .*fired twice"),
    (zeroing, r"grad of x is 0 because"),
    (full_backward_scales, r"grad of 0\.bias and 0\.weight is scaled by 3 because"),
)


@pytest.mark.parametrize(("program", "answer"), PUZZLES, ids=[program.__name__ for program, _ in PUZZLES])
def test_the_mistake_is_named(framework, program, answer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of divisions by zero and the like, which are the mistakes
        graph = untraced_and_traced(framework, program, _MADE)
    told = [*dict.fromkeys(graph.effects), *(line.text for line in meaning(graph))]
    assert any(re.search(answer, line) for line in told), "\n".join(told)
