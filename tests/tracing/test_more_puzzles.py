"""More programs with one mistake each: the trace names it with the line marked `# here`, or says that it is none."""

import copy
import re
import warnings
from pathlib import Path

import pytest

from gradcli.reporters.graph.tree import meaning
from tests.tracing.test_puzzles import PUZZLES as EARLIER
from tests.tracing.tracing import traced, untraced_and_traced

SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()
_MADE = []


def leaf(f, n=3):
    return kept(f.tensor([0.5 * (i + 1) for i in range(n)], requires_grad=True))


def kept(*_new):
    _MADE.extend(_new)
    return _new[0]


def here(program):
    """The place of the line of a program that ends with `# here`, as a pattern."""
    first = program.__code__.co_firstlineno
    number = next(n for n in range(first, len(SOURCE) + 1) if SOURCE[n - 1].endswith("# here"))
    return rf"\S*{Path(__file__).name}:{number}\b"


# --- why is .grad None


def copied_net_is_trained(f):
    net = f.nn.Linear(2, 1)
    twin = copy.deepcopy(net)  # here
    kept(*net.parameters(), *twin.parameters())
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
            self.scale = kept(f.nn.Parameter(f.ones(2)))

        def forward(self, x):
            scale = f.nn.Parameter(self.scale.data)  # here
            return x * scale

    net = Net()
    net(f.ones(1, 2)).sum().backward()


def flag_set_after_use(f):
    x, w = kept(f.tensor([1.0, 2.0])), leaf(f, 2)
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
    kept(*net.parameters())
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
    kept(*net.parameters())
    net[0].register_forward_hook(lambda m, i, o: o.detach())  # here
    net(f.ones(1, 2)).sum().backward()


def detached_by_a_pre_hook(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    kept(*net.parameters())
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


# --- why is it zero


def cancels_with_its_mean(f):
    w = f.tensor([0.5, 1.5, 4.0], requires_grad=True)
    kept(w)
    (w - w.mean()).sum().backward()  # here


def cancels_with_itself(f):
    w = leaf(f)
    h = w * 2
    (h - h).sum().backward()  # here


def backward_of_nothing(f):
    w = leaf(f)
    (w * 2).backward(f.zeros(3))


def saturated(f):
    w = kept(f.tensor([1000.0, 2000.0], requires_grad=True))
    f.sigmoid(w).sum().backward()  # here


def second_layer_is_zero(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    kept(*net.parameters())
    with f.no_grad():
        net[1].weight.zero_()
    net(f.ones(1, 2)).sum().backward()  # here


def padding_alone(f):
    table = f.nn.Embedding(3, 2, padding_idx=0)
    kept(*table.parameters())
    table(f.tensor([0, 0])).sum().backward()  # here


def zeroed_after_backward(f):
    w = leaf(f)
    (w * w).sum().backward()
    w.grad.zero_()  # here


# --- NaN and Inf


def masked_by_a_product(f):
    scores, mask = leaf(f), f.tensor([1.0, 0.0, 1.0])
    bias = (1 - mask) * float("-inf")  # here
    f.softmax(scores + bias, 0)[0].backward()


def infinite_constant(f):
    x = kept(f.tensor([0.0, 1.0], requires_grad=True))
    (x * float("inf")).sum().backward()  # here


def root_of_negative_behind_a_where(f):
    x = kept(f.tensor([-1.0, 4.0], requires_grad=True))
    root = f.sqrt(x)  # here
    f.where(x > 0, root, f.zeros_like(x)).sum().backward()


def masked_row_behind_nan_to_num(f):
    q = kept(f.ones(2, 2, requires_grad=True))
    scores = q.masked_fill(f.tensor([[True, True], [True, False]]), float("-inf"))
    weights = f.softmax(scores, dim=-1)  # here
    weights.nan_to_num(0.0).sum().backward()


def no_target_counts(f):
    logits = leaf(f).reshape(1, 3)
    f.nn.functional.cross_entropy(logits, f.tensor([1]), weight=f.zeros(3)).backward()  # here


def overflow_of_a_gradient(f):
    x = kept(f.tensor([1e20], requires_grad=True))
    y = x * 1e-30
    (y * 1e10).backward(f.tensor([1e38]))  # here


def log1p_at_its_pole(f):
    x = kept(f.tensor([-1.0, 1.0], requires_grad=True))
    f.log1p(x).sum().backward()  # here


def normalised_without_spread(f):
    class Norm(f.nn.Module):
        def forward(self, x):
            centred = x - x.mean()
            return centred / f.sqrt((centred**2).mean())  # here

    Norm()(kept(f.ones(3, requires_grad=True))).sum().backward()


def diverging_steps(f):
    w = kept(f.tensor([1.0], requires_grad=True))
    for rate in (1e30, 1e30):
        loss = (w**3).sum()  # here
        loss.backward()
        with f.no_grad():
            w -= rate * w.grad
        w.grad = None


def given_nan(f):
    w = leaf(f, 2)
    (w * w).backward(f.tensor([float("nan"), 1.0]))


# --- hooks


def scales_one_of_several_arguments(f):
    class Mix(f.nn.Module):
        def forward(self, n, x, y):
            return n * x + y * 1

    a, b = leaf(f), leaf(f)
    mix = Mix()
    mix.register_full_backward_hook(lambda m, gi, go: (None, gi[1] * 7, gi[2]))  # here
    mix(3.0, a * 1, b * 1).sum().backward()


def scales_one_of_several_results(f):
    class Both(f.nn.Module):
        def forward(self, x, y):
            return x * 2, 5, y * 3

    a, b = leaf(f), leaf(f)
    both = Both()
    both.register_full_backward_pre_hook(lambda m, go: (go[0], None, go[2] * 7))  # here
    u, _, v = both(a * 1, b * 1)
    (u + v).sum().backward()


def scales_before_a_module(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.Linear(2, 1))
    kept(*net.parameters())
    net[1].register_full_backward_pre_hook(lambda m, go: (go[0] * 0.1,))  # here
    net(f.ones(1, 2)).sum().backward()


def zeroes_one_of_two_arguments(f):
    class Sum(f.nn.Module):
        def forward(self, x, y):
            return x + y

    a, b = leaf(f), leaf(f)
    both = Sum()
    both.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[1] * 0))  # here
    both(a * 1, b * 1).sum().backward()


def taken_off_again(f):
    x = leaf(f)
    y = x * 3
    handle = y.register_hook(lambda g: g * 2)
    handle.remove()  # here
    y.sum().backward()


def halved_after_it_has_arrived(f):
    x = leaf(f)

    def halve(held):  # here
        held.grad.mul_(0.5)

    x.register_post_accumulate_grad_hook(halve)
    (x * 3).sum().backward()


def before_the_node(f):
    a = leaf(f)
    y = a * 3
    y.grad_fn.register_prehook(lambda g: (g[0] * 5,))  # here
    y.sum().backward()


PUZZLES = (
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
    (cancels_with_its_mean, r"w\.grad zero\?.*the gradients from SubBackward0 \({here}\), MeanBackward0 .* cancel"),
    (cancels_with_itself, r"w\.grad zero\?.*the gradients from SubBackward0 \({here}\) cancel"),
    (backward_of_nothing, r"w\.grad zero\?.*the gradient that backward began with is zero"),
    (saturated, r"w\.grad zero\?.*SigmoidBackward0 \({here}\) returns zeros"),
    (second_layer_is_zero, r"0\.weight\.grad.* zero\?.*AddmmBackward0 \({here}\) returns zeros for its operand 1"),
    (padding_alone, r"weight\.grad zero\?.*\({here}\) returns zeros for its operand 0"),
    (zeroed_after_backward, r"w\.grad zero\?.*backward filled \.grad, and {here} zeroed it again"),
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
    (scales_one_of_several_arguments, r"^grad of a is scaled by 7 because `<lambda>` at {here}"),
    (scales_one_of_several_results, r"^grad of b is scaled by 7 because `<lambda>` at {here}"),
    (scales_before_a_module, r"^grad of [^;]*0\.weight[^;]* is scaled by 0\.1 because `<lambda>` at {here}"),
    (zeroes_one_of_two_arguments, r"^why is b\.grad zero\?.*the hook `<lambda>` at {here} returned zeros"),
    (taken_off_again, r"did not fire: it was removed at {here}"),
    (halved_after_it_has_arrived, r"^grad of x is scaled by 0\.5 because `halve` at {here} mutated in place"),
    (before_the_node, r"^grad of a is scaled by 5 because `<lambda>` at {here}"),
)  # fmt: skip


def told(graph):
    return [*dict.fromkeys(graph.effects), *(line.text for line in meaning(graph))]


@pytest.mark.parametrize(("program", "answer"), PUZZLES, ids=[program.__name__ for program, _ in PUZZLES])
def test_the_mistake_is_named_at_its_line(framework, program, answer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of divisions by zero and the like, which are the mistakes
        lines = told(untraced_and_traced(framework, program, _MADE))
    pattern = answer.format(here=here(program)) if "{here}" in answer else answer
    assert any(re.search(pattern, line) for line in lines), "\n".join(lines)


def test_the_programs_have_many_causes():
    """At least 14 causes of a missing or zero gradient, 12 sources of NaN or Inf, 8 effects of hooks, all different."""
    answers = [answer.replace("{here}", "") for _, answer in (*PUZZLES, *EARLIER)]
    kinds = {"missing or zero": r"None\\\?|zero\\\?", "hook": r"grad of|fire|twice"}
    counted = {kind: {a for a in answers if re.search(pattern, a)} for kind, pattern in kinds.items()}
    counted["not finite"] = {*answers} - set().union(*counted.values())
    assert len(counted["missing or zero"]) >= 14
    assert len(counted["not finite"]) >= 12
    assert len(counted["hook"]) >= 8
    assert len(answers) >= 92


# --- what is blamed for nothing


def metric_without_recording(f):
    w, x = leaf(f), leaf(f)
    loss = (w * x).sum()
    with f.no_grad():
        (w > 0).float().mean().item()
    loss.backward()


def clipped_after_backward(f):
    net = f.nn.Linear(2, 1)
    net(f.ones(1, 2)).sum().backward()
    f.nn.utils.clip_grad_norm_(net.parameters(), 0.1)


def row_written_without_recording(f):
    w = leaf(f)
    with f.no_grad():
        first = w[0]
        first.fill_(2.0)
    (w * w).sum().backward()


def trained_in_place(f):
    w = leaf(f)
    for _ in range(2):
        w.grad = None
        (w * w).sum().backward()
        with f.no_grad():
            w -= 0.1 * w.grad


@pytest.mark.parametrize(
    "program",
    [metric_without_recording, clipped_after_backward, row_written_without_recording, trained_in_place],
    ids=lambda program: program.__name__,
)
def test_a_right_program_gets_no_symptom_and_no_advice(framework, program):
    graph = traced(framework, lambda: program(framework))
    assert graph.error is None
    assert graph.symptoms == ()
    assert not [line for line in told(graph) if line.startswith(("why", "!", "grad of"))]


def test_a_hook_on_one_result_is_said_to_change_nothing_else(framework):
    graph = traced(framework, lambda: scales_one_of_several_results(framework))
    assert [line for line in graph.effects if re.search(r"\ba\b", line.split(" because")[0])] == []


def raises_in_backward(f):
    class Broken(f.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            raise LookupError("mine")

    return Broken


def returns_the_wrong_shape(f):
    class Short(f.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, g):
            return g[:1].reshape(1, 1).expand(2, 1)

    return Short


@pytest.mark.parametrize("broken", [raises_in_backward, returns_the_wrong_shape], ids=lambda made: made.__name__)
def test_the_error_of_a_custom_backward_is_told_as_it_is(framework, broken):
    function = broken(framework)

    def run():
        function.apply(leaf(framework)).sum().backward()

    with pytest.raises((LookupError, RuntimeError)) as raised:
        run()
    graph = traced(framework, run)
    assert graph.error == f"{type(raised.value).__name__}: {raised.value}"
    x = framework.ones(2, requires_grad=True)
    (x * 3).sum().backward()  # and the framework works on
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_parameter_made_of_a_leaf_before_the_trace_is_told_by_its_memory(framework):
    w0, x = leaf(framework), leaf(framework)
    w = framework.nn.Parameter(w0)
    graph = traced(framework, lambda: (w * x).sum(), named={"w0": w0, "w": w, "x": x})
    assert any("used w in its place, a different leaf that shares its memory" in line for line in told(graph))
