"""Hooks that are registered too late, removed, or registered twice: why one did not fire, and what all of them did."""

import inspect
import re
import sys

import pytest

from tests.tracing.tracing import fate, line_of, traced

HERE = sys.modules[__name__]


def double(gradient):
    return gradient * 2


def nothing(*_):
    return None


class Program:
    """y = x * w and s = y.sum(), for hooks to be put on; what `x`, `w` and `y` get without hooks is known."""

    def __init__(self, framework):
        self.f = framework
        self.x = framework.tensor([1.0, 2.0], requires_grad=True)
        self.w = framework.tensor([3.0, 4.0], requires_grad=True)
        self.y = self.x * self.w
        self.s = self.y.sum()


def removed_by_its_handle(p):
    handle = p.w.register_hook(double)
    handle.remove()  # by its handle
    p.s.backward()


def removed_by_leaving_its_block(p):
    with p.y.register_hook(double):  # leaving its block
        pass
    p.s.backward()


def removed_from_a_leaf_that_accumulates(p):
    p.w.register_post_accumulate_grad_hook(nothing).remove()  # accumulates
    p.s.backward()


def removed_from_several_tensors(p):
    handle = p.f.autograd.graph.register_multi_grad_hook((p.x, p.w), nothing)
    handle.remove()  # several tensors
    p.s.backward()


def removed_from_a_module_before_forward(p):
    net = p.f.nn.Linear(2, 1)
    handle = net.register_full_backward_hook(nothing)
    handle.remove()  # before forward
    net(p.y).sum().backward()


def forward_hook_removed(p):
    net = p.f.nn.Linear(2, 1)
    net.register_forward_pre_hook(nothing).remove()  # forward hook
    net(p.y).sum().backward()


def removed_between_two_passes(p):
    other = (p.x * 3).sum()
    handle = p.y.register_hook(double)
    other.backward()
    handle.remove()  # between two
    p.s.backward()


def taken_out_of_the_dict(p):
    p.w.register_hook(double)
    p.w._backward_hooks.clear()
    p.s.backward()


def removed_after_backward_did_not_reach_it(p):
    side = p.x * 3
    handle = side.register_hook(double)
    p.s.backward()
    handle.remove()


def registered_after_backward(p):
    p.s.backward()
    p.y.register_hook(double)


def registered_between_two_passes_of_other_tensors(p):
    p.s.backward()
    p.w.register_hook(double)
    (p.x * 3).sum().backward()


def registered_while_backward_runs(p):
    p.x.register_hook(lambda gradient: nothing(p.y.register_hook(double)))
    p.s.backward()


def module_hook_after_forward(p):
    net = p.f.nn.Linear(2, 1)
    out = net(p.y).sum()
    net.register_full_backward_pre_hook(nothing)
    out.backward()


def asked_for_another(p):
    p.w.register_hook(double)
    p.s.backward(inputs=[p.x])


SILENT = [
    (removed_by_its_handle, "on p.w did not fire: it was removed at {# by its handle} before it could"),
    (removed_by_leaving_its_block, "on p.y did not fire: it was removed at {# leaving its block} before it could"),
    (removed_from_a_leaf_that_accumulates, "on p.w did not fire: it was removed at {# accumulates} before it could"),
    (removed_from_several_tensors, "on several tensors did not fire: it was removed at {# several tensors} before"),
    (removed_from_a_module_before_forward, "on Linear did not fire: it was removed at {# before forward} before it"),
    (forward_hook_removed, "on Linear did not fire: it was removed at {# forward hook} before it could"),
    (removed_between_two_passes, "on p.y did not fire: it was removed at {# between two} before it could"),
    (taken_out_of_the_dict, "on p.w did not fire: it was removed before it could"),
    (removed_after_backward_did_not_reach_it, "on side did not fire: side is not part of the graph"),
    (registered_after_backward, "on p.y did not fire: it was registered after backward had run; register it before"),
    (registered_between_two_passes_of_other_tensors, "on p.w did not fire: p.w is not part of the graph"),
    (registered_while_backward_runs, "on p.y did not fire: it was registered during backward"),
    (module_hook_after_forward, "on Linear did not fire: it was registered after forward"),
    (asked_for_another, "on p.w did not fire: no gradient reached p.w in this backward pass"),
]


def placed(sentence):
    """The sentence with each {mark} replaced by the line that ends with it."""
    name = __file__.rsplit("/", 1)[-1]
    return re.sub(r"\{(.*?)\}", lambda found: f"{name}:{line_of(HERE, found[1])}", sentence)


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("program", "sentence"), SILENT, ids=lambda value: getattr(value, "__name__", ""))
def test_a_hook_that_did_not_fire_says_why(framework, program, sentence):
    graph = traced(framework, lambda: program(Program(framework)))
    assert graph.error is None
    assert len(graph.lints) == 1
    told = re.sub(r"at \S*/", "at ", graph.lints[0])
    assert placed(sentence) in told
    assert graph.effects == ()


def removed_after_backward(p):
    handle = p.y.register_hook(nothing)
    p.s.backward()
    handle.remove()


def module_hook_removed_after_forward(p):
    net = p.f.nn.Linear(2, 1)
    handle = net.register_full_backward_hook(nothing)
    out = net(p.y).sum()
    handle.remove()
    out.backward()


@pytest.mark.parametrize("program", [removed_after_backward, module_hook_removed_after_forward])
def test_a_hook_that_fired_is_not_reported_for_its_removal(framework, program):
    graph = traced(framework, lambda: program(Program(framework)))
    assert (len(graph.hooks), graph.lints) == (1, ())


def same_hook_twice(p):
    p.w.register_hook(double)
    p.w.register_hook(double)


def same_hook_three_times(p):
    for _ in range(3):
        p.w.register_hook(double)


def hook_on_two_tensors_in_a_row(p):
    p.y.register_hook(double)
    p.w.register_hook(double)


def removed_once_of_two(p):
    p.w.register_hook(double)
    p.w.register_hook(double).remove()


def two_factors(p):
    p.y.register_hook(double)
    p.w.register_hook(lambda g: g * -3)


def factor_and_in_place(p):
    p.w.register_hook(double)
    p.w.register_post_accumulate_grad_hook(lambda leaf: nothing(leaf.grad.mul_(0.5)))


def one_that_returns_none_beside(p):
    p.w.register_hook(nothing)
    p.w.register_hook(double)


def factor_and_sum(p):
    p.w.register_hook(double)
    p.w.register_hook(lambda g: g + 1)


def node_hook_and_tensor_hook(p):
    p.y.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    p.w.register_hook(double)


def node_post_hook_twice(p):
    for _ in range(2):
        p.y.grad_fn.register_hook(lambda given, _: tuple(None if g is None else g * 2 for g in given))


DOUBLED = r"`double` at \S+:\d+"
TWICE, THRICE = (rf"{DOUBLED} fired {often} and each time returned a new value" for often in ("twice", "three times"))
STACKED = [
    (
        same_hook_twice,
        "grad of p.w is scaled by 4",
        rf"{TWICE} \(2x\)$",
    ),
    (
        same_hook_three_times,
        "grad of p.w is scaled by 8",
        THRICE,
    ),
    (
        hook_on_two_tensors_in_a_row,
        "grad of p.w is scaled by 4",
        TWICE,
    ),
    (removed_once_of_two, "grad of p.w is scaled by 2", f"{DOUBLED} returned a new value$"),
    (
        two_factors,
        "grad of p.w is scaled by -6",
        r"a new value \(2x\) and `<lambda>` at \S+ returned a new value \(-3x\)$",
    ),
    (
        factor_and_in_place,
        "grad of p.w is scaled by 1",
        r"\(2x\) and `<lambda>` at \S+ changed .* in place \(0.5x\)$",
    ),
    (one_that_returns_none_beside, "grad of p.w is scaled by 2", f"{DOUBLED} returned a new value$"),
    (
        factor_and_sum,
        "grad of p.w differs from the gradient that autograd computed",
        r"\(2x\) and `<lambda>` at \S+ returned",
    ),
    (node_hook_and_tensor_hook, "grad of p.w is scaled by 10", rf"\(5x\) and {DOUBLED} returned a new value \(2x\)$"),
    (
        node_post_hook_twice,
        "grad of p.x and p.w is scaled by 4",
        r"`<lambda>` at \S+ fired twice and each time returned",
    ),
]


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("program", "change", "reason"), STACKED, ids=lambda value: getattr(value, "__name__", ""))
def test_hooks_that_stack_are_told_together(framework, program, change, reason):
    def loss():
        p = Program(framework)
        program(p)
        p.s.backward()
        return p.w.grad

    graph = traced(framework, loss)
    about = [effect for effect in graph.effects if effect.startswith(change)]
    assert len(about) == 1, graph.effects
    assert re.search(f"because .*{reason}", about[0]), about[0]
    assert sum("p.w " in effect for effect in graph.effects) == 1
    told = re.search(r" is scaled by (\S+) because", about[0])
    if told is not None:
        assert fate(graph, "p.w").grad.values == (float(told[1]), 2 * float(told[1]))


def test_the_factor_of_one_pass_is_not_claimed_for_the_sum_of_two(framework):
    def loss():
        p = Program(framework)
        p.s.backward(retain_graph=True)
        p.w.register_hook(double)
        p.s.backward()

    graph = traced(framework, loss)
    assert fate(graph, "p.w").grad.values == (3.0, 6.0)
    assert graph.effects[0].startswith("what the last backward pass added to the grad of p.w is scaled by 2 because")


def test_retaining_after_backward_is_named(framework):
    def loss():
        p = Program(framework)
        y = p.y
        p.s.backward()
        y.retain_grad()  # too late
        return y

    y = fate(traced(framework, loss), "y")
    assert y.symptom == "retained-late"
    assert re.sub(r"at \S*/", "at ", y.why) == placed(
        "retain_grad() was called only after backward at {# too late}; call it before backward"
    )


@pytest.mark.sampled(7)
@pytest.mark.parametrize("program", [entry[0] for entry in (*SILENT, *STACKED)], ids=lambda value: value.__name__)
def test_gradients_and_hooks_are_those_of_an_untraced_run(framework, program):
    def run(given):
        program(given)
        if given.x.grad is None and given.w.grad is None:
            given.s.backward()
        return given

    framework.manual_seed(3)
    plain = run(Program(framework))
    framework.manual_seed(3)
    seen = Program(framework)
    traced(framework, lambda: run(seen).s)
    for one, other in ((plain.x, seen.x), (plain.w, seen.w)):
        assert (None if one.grad is None else one.grad.tolist()) == (
            None if other.grad is None else other.grad.tolist()
        )
        assert [hook.__name__ for hook in (one._backward_hooks or {}).values()] == [
            hook.__name__ for hook in (other._backward_hooks or {}).values()
        ]
        assert all(inspect.isfunction(hook) for hook in (other._backward_hooks or {}).values())
