"""What a hook does to gradients: short programs with one mistake each, which the trace names on both frameworks."""

import re

import pytest

from tests.tracing.puzzles.answers import check_answer, leaf, watched
from tests.tracing.tracing import traced


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
    watched(*net.parameters())
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
    (double, r"grad of x is scaled by 2 because `<lambda>`"),
    (clip_leaf, r"grad of x is scaled by 0\.2 because"),
    (direct_forward, r"did not fire: .*calls Linear\.forward directly"),
    (registered_twice, r"grad of x is scaled by 4 because `d` at .*fired twice"),
    (zeroing, r"grad of x is 0 because"),
    (full_backward_scales, r"grad of 0\.bias and 0\.weight is scaled by 3 because"),
    (scales_one_of_several_arguments, r"^grad of a is scaled by 7 because `<lambda>` at {here}"),
    (scales_one_of_several_results, r"^grad of b is scaled by 7 because `<lambda>` at {here}"),
    (scales_before_a_module, r"^grad of [^;]*0\.weight[^;]* is scaled by 0\.1 because `<lambda>` at {here}"),
    (zeroes_one_of_two_arguments, r"^why is b\.grad zero\?.*the hook `<lambda>` at {here} returned zeros"),
    (taken_off_again, r"did not fire: it was removed at {here}"),
    (halved_after_it_has_arrived, r"^grad of x is scaled by 0\.5 because `halve` at {here} changed .* in place"),
    (before_the_node, r"^grad of a is scaled by 5 because `<lambda>` at {here}"),
)  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("program", "answer"), PUZZLES, ids=[program.__name__ for program, _ in PUZZLES])
def test_the_mistake_is_named_at_its_line(framework, program, answer):
    check_answer(framework, program, answer)


def test_a_hook_on_one_result_is_said_to_change_nothing_else(framework):
    graph = traced(framework, lambda: scales_one_of_several_results(framework))
    assert [line for line in graph.effects if re.search(r"\ba\b", line.split(" because")[0])] == []
