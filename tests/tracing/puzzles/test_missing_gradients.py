"""Why is .grad None: short programs with one mistake each, which the trace names on both frameworks."""

import copy

import pytest

from tests.tracing.puzzles.answers import check_answer, leaf, watched


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


def scaled_leaf(f):
    w = f.ones(3, requires_grad=True) * 0.1
    w.sum().backward()
    return w


def view_of_leaf(f):
    base = leaf(f, 4)
    w = base.view(2, 2)
    w.sum().backward()
    return w


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


def copied_net_is_trained(f):
    net = f.nn.Linear(2, 1)
    twin = copy.deepcopy(net)  # here
    watched(*net.parameters(), *twin.parameters())
    twin(f.ones(1, 2)).sum().backward()


def copied_leaf_is_used(f):
    w = leaf(f)
    other = copy.deepcopy(w)  # here
    (other * 2).sum().backward()


def result_made_a_parameter(f):
    base = leaf(f, 2)
    net = f.nn.Linear(2, 1, bias=False)
    net.weight = f.nn.Parameter((base * 2).reshape(1, 2))  # here
    net(f.ones(1, 2)).sum().backward()


def parameter_made_in_forward(f):
    class Net(f.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = watched(f.nn.Parameter(f.ones(2)))

        def forward(self, x):
            scale = f.nn.Parameter(self.scale.data)  # here
            return x * scale

    net = Net()
    net(f.ones(1, 2)).sum().backward()


def flag_set_after_use(f):
    x, w = watched(f.tensor([1.0, 2.0])), leaf(f, 2)
    y = x * 2  # here
    x.requires_grad_(True)
    (y * w).sum().backward()


def pass_for_others(f):
    a, b = leaf(f), leaf(f)
    (a * b).sum().backward(inputs=[b])


def taken_away_between_passes(f):
    a, b = leaf(f), leaf(f)
    (a * b).sum().backward()
    a.grad = None  # here
    (b * 2).sum().backward()


def part_that_is_never_called(f):
    class Net(f.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = f.nn.Linear(2, 2), f.nn.Linear(2, 2)

        def forward(self, x):
            return self.a(x)

    net = Net()
    watched(*net.parameters())
    net(f.ones(1, 2)).sum().backward()


def loss_made_again_of_its_number(f):
    w = leaf(f)
    loss = (w * w).sum()
    loss = f.tensor(loss.item(), requires_grad=True)  # here
    loss.backward()


def loss_made_to_require(f):
    w = leaf(f)
    loss = (w.detach() * 2).sum()  # here
    loss.requires_grad_(True)
    loss.backward()


def detached_by_a_forward_hook(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    watched(*net.parameters())
    net[0].register_forward_hook(lambda m, i, o: o.detach())  # here
    net(f.ones(1, 2)).sum().backward()


def detached_by_a_pre_hook(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    watched(*net.parameters())
    net[1].register_forward_pre_hook(lambda m, i: (i[0].detach(),))  # here
    net(f.ones(1, 2)).sum().backward()


def truncated_in_a_loop(f):
    start, w = leaf(f), leaf(f)
    h = start
    for step in range(3):
        h = h * w
        if step == 1:
            h = h.detach()  # here
    h.sum().backward()


def written_into_a_buffer(f):
    w, x = leaf(f), leaf(f)
    buffer = f.zeros(3)
    with f.no_grad():  # here
        buffer.copy_(w * 2)
    (buffer * x).sum().backward()


def recording_on_inside_of_off(f):
    w, x = leaf(f), leaf(f)
    with f.no_grad():  # here
        h = w * 2
        with f.enable_grad():
            k = x * h
    k.sum().backward()


def chosen_by_topk(f):
    w, x = leaf(f), leaf(f)
    places = f.topk(w, 2)[1]  # here
    x[places].sum().backward()


def needed_gradient_forgotten(f):
    class Product(f.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, scale):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod  # here
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b if ctx.needs_input_grad[2] else None, g * a, None

    a, b = leaf(f), leaf(f)
    Product.apply(a, b, 2).sum().backward()


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
    (requires_grad_false_param, r"weight\.grad None\?.*requires_grad is False"),
    (unused_layer, r"b\.weight\.grad.* None\?.*uses it, but no traced operation leads"),
    (
        param_wrapped_again,
        r"w0\.grad None\?.*new leaf with nn\.Parameter\(\).*the gradient is in w\.grad",
    ),
    (optimizer_zero_after, r"weight\.grad, bias\.grad None\?.*set to None again at"),
    (fn_none, r"b\.grad None\?.*returned None for its operand 1; its backward is at"),
    (scaled_leaf, r"w .*grad None\?.*computes it with mul from a tensor without a name"),
    (view_of_leaf, r"non-leaf tensors keep no \.grad without retain_grad\(\): w .*view from base"),
    (detach_underscore, r"w\.grad None\?.*detach_\(\)"),
    (autograd_grad_only, r"w\.grad None\?.*only autograd\.grad was called"),
    (set_grad_enabled_left_off, r"w\.grad None\?.*computes under set_grad_enabled\(False\)"),
    (float_builtin, r"w\.grad None\?.*float\(\)"),
    (sorted_indices, r"w\.grad None\?.*sort\(\): the result was computed only from the indices"),
    (copied_net_is_trained, r"net\.weight\.grad None\?.*: {here} turns it into a new leaf with deepcopy\(\)"),
    (copied_leaf_is_used, r"w\.grad None\?.*: {here} turns it into a new leaf with deepcopy\(\)"),
    (result_made_a_parameter, r"base\.grad None\?.*: {here} turns it into a new leaf with nn\.Parameter\(\)"),
    (parameter_made_in_forward, r"scale\.grad None\?.*: {here} takes it out of the graph with \.data"),
    (flag_set_after_use, r"x\.grad None\?.*: {here} used it when its requires_grad was still False"),
    (pass_for_others, r"a\.grad None\?.*restricted to other tensors \(inputs=\.\.\.\)"),
    (taken_away_between_passes, r"a\.grad None\?.*an earlier backward pass filled .*{here} set it to None again"),
    (part_that_is_never_called, r"b\.weight\.grad.* None\?.*no traced operation used it"),
    (loss_made_again_of_its_number, r"w\.grad None\?.*: {here} takes it out of the graph with item\(\)"),
    (loss_made_to_require, r"w\.grad None\?.*: {here} takes it out of the graph with detach\(\)"),
    (detached_by_a_forward_hook, r"0\.weight\.grad.* None\?.*: {here} takes it out of the graph with detach\(\)"),
    (detached_by_a_pre_hook, r"0\.weight\.grad.* None\?.*: {here} takes it out of the graph with detach\(\)"),
    (truncated_in_a_loop, r"start\.grad None\?.*: {here} takes it out of the graph with detach\(\)"),
    (written_into_a_buffer, r"w\.grad None\?.*computes under no_grad, which {here} turned on"),
    (recording_on_inside_of_off, r"w\.grad None\?.*computes under no_grad, which {here} turned on"),
    (chosen_by_topk, r"w\.grad None\?.*: {here} takes it out of the graph with topk\(\): .* only from the indices"),
    (needed_gradient_forgotten, r"a\.grad None\?.*returned None for its operand 0; its backward is at {here}"),
)  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("program", "answer"), PUZZLES, ids=[program.__name__ for program, _ in PUZZLES])
def test_the_mistake_is_named_at_its_line(framework, program, answer):
    check_answer(framework, program, answer)
