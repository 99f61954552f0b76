"""A factor is told only if the gradient without the hooks, times the factor, is the one with them: measured."""

import importlib
import re

import pytest

from tests.tracing.hooks import factors_of_nodes as nodes
from tests.tracing.hooks import factors_of_passes as passes
from tests.tracing.hooks.factors_of_nodes import scaled, vector
from tests.tracing.tracing import fate, traced

CLAIM = re.compile(
    r"^(?:grad|what (?:the last backward pass|backward) added to the grad) of (?P<names>.*?) is "
    r"(?:(?P<zero>0)|scaled by (?P<factor>\S+))(?: on every path)? because"
)
PART = re.compile(r"^(?:a part of the gradient|what .* added to the grad|grad) of (?P<names>.*?) (?:is|differs|may)\b")


PROGRAMS = [
    found
    for module in (nodes, passes)
    for found in vars(module).values()
    if getattr(found, "__code__", None) is not None and found.__code__.co_varnames[:2] == ("f", "on")
]

UNKNOWN = (
    nodes.stacked_and_unbound,
    nodes.one_half_of_a_concatenation,
    nodes.one_output_of_a_function,
    nodes.operands_of_a_node_differently,
    passes.two_roots,
    passes.one_leaf_as_both_arguments,
    passes.in_place_on_a_leaf,
    passes.expanded,
    passes.cancelled_by_a_factor,
)
"""Programs in which paths of different factors add up to one factor, or each carries what the trace cannot tell."""


class Registering:
    """Registers the hooks of a program, or none of them."""

    def __init__(self, registers):
        self.registers = registers

    def __call__(self, _tensor, hook):
        if self.registers:
            _tensor.register_hook(hook)


def gradients(leaves):
    return {name: None if leaf.grad is None else leaf.grad.tolist() for name, leaf in leaves.items()}


def names_in(text):
    return re.split(r", | and ", text)


def flat(value):
    return [entry for part in value for entry in flat(part)] if isinstance(value, list) else [value]


def is_times(factor, without, with_hooks):
    return flat(with_hooks) == pytest.approx([factor * value for value in flat(without)], rel=1e-9, abs=1e-12)


def factor_of(without, with_hooks):
    """The factor between two gradients, None if there is not one."""
    pairs = [pair for pair in zip(flat(without), flat(with_hooks), strict=True) if pair[0]]
    factor = pairs[0][1] / pairs[0][0] if pairs else None
    return factor if factor is not None and is_times(factor, without, with_hooks) else None


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_factor_is_that_between_the_gradients_with_and_without_the_hooks(framework, program):
    without = gradients(program(framework, Registering(registers=False)))
    with_hooks = gradients(program(framework, Registering(registers=True)))
    _seen = {}  # a name that the trace does not take
    graph = traced(framework, lambda: _seen.update(program(framework, Registering(registers=True))))
    assert graph.error is None
    assert gradients(_seen) == with_hooks
    mentioned = {}
    for effect in graph.effects:
        claim, part = CLAIM.match(effect), PART.match(effect)
        assert part is not None, effect
        for name in names_in(part["names"]):
            assert name not in mentioned, graph.effects
            mentioned[name] = None if claim is None else float(claim["factor"] or claim["zero"])
    for name, gradient in with_hooks.items():
        factor = mentioned.get(name)
        if factor is not None:
            assert is_times(factor, without[name], gradient), (graph.effects, without, with_hooks)
        elif gradient != without[name]:
            assert name in mentioned, (graph.effects, without, with_hooks)
            if program not in UNKNOWN:
                assert factor_of(without[name], gradient) is None, (graph.effects, without, with_hooks)


SENTENCES = [
    (nodes.unbind_both, r"grad of x is scaled by 2 on every path because .* \(2x\) \(on some of the paths to it\)$"),
    (nodes.unbind_one, "a part of the gradient of x is scaled by -1 because"),
    (nodes.unbind_one_beside_an_unused, "grad of x is scaled by 3 because"),
    (nodes.split_one, "a part of the gradient of x is scaled by 10 because"),
    (nodes.unbind_both_differently, "grad of x differs from the gradient that autograd computed because"),
    (
        nodes.one_output_of_a_function,
        r"grad of x and w may differ .*: TwoBackward at \S+ may give each of its operands",
    ),
    (
        nodes.both_outputs_of_a_function,
        r".*on every path .*, provided that the backward of TwoBackward at \S+ is linear$",
    ),
    (passes.in_place_on_a_leaf, r"grad of w differs from .* in place of x, which is this gradient's memory as well"),
]


@pytest.mark.parametrize(("program", "sentence"), SENTENCES, ids=lambda value: getattr(value, "__name__", ""))
def test_what_differs_by_path_is_said_to(framework, program, sentence):
    effects = traced(framework, lambda: program(framework, Registering(registers=True))).effects
    assert any(re.match(sentence, effect) for effect in effects), effects


def clipping(f):
    class Clip(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g.clamp(-1, 1)

    return Clip


def test_a_factor_presumes_that_a_users_backward_is_linear_and_says_so(framework):
    def loss():
        x = vector(framework, 2)
        y = clipping(framework).apply(x)
        y.register_hook(scaled(10))
        y.sum().backward()  # x.grad is 1, with the hook and without it

    (effect,) = traced(framework, loss).effects
    assert re.search(r", provided that the backward of ClipBackward at \S+ is linear$", effect)


def test_a_hook_below_a_users_backward_presumes_nothing(framework):
    def loss():
        x = vector(framework, 2)
        x.register_hook(scaled(10))
        clipping(framework).apply(x).sum().backward()

    (effect,) = traced(framework, loss).effects
    assert "provided" not in effect


def test_a_hook_of_a_leaf_that_a_checkpoint_fills_as_well_is_not_multiplied():
    torch = pytest.importorskip("torch", reason="reentrant checkpoints are PyTorch's")
    checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint

    def loss():
        x, w = vector(torch, 2), vector(torch, 2)
        w.register_hook(scaled(3))
        y = checkpoint(lambda t: t * w, x, use_reentrant=True)
        (y + w).sum().backward()
        return w.grad

    graph = traced(torch, loss)
    assert [call.factor for call in graph.hooks] == [3.0, 3.0]
    assert [effect.split(" because")[0] for effect in graph.effects] == ["a part of the gradient of w is scaled by 3"]


def test_a_hook_of_several_tensors_that_writes_to_one_is_named(framework):
    def loss():
        a, b = vector(framework, 2), vector(framework, 2)
        y, z = a * 2, b * 3
        a.register_hook(scaled(2))

        def write(gradients):
            for gradient in gradients:
                gradient.mul_(5)

        framework.autograd.graph.register_multi_grad_hook((y, z), write)
        (y * z).sum().backward()

    graph = traced(framework, loss)
    between = fate(graph, "a").grad.values[0] / 6
    told = [effect.split(" because")[0] for effect in graph.effects if "grad of a " in effect]
    whole = "grad of a differs from the gradient that autograd computed"
    assert told == (["grad of a is scaled by 2"] if between == 2 else [whole])


def test_what_a_hook_of_grad_does_to_an_earlier_gradient_is_told(framework):
    def loss():
        x = vector(framework, 2)
        x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(0.5) is leaf or None)
        x.grad = framework.tensor([100.0, 100.0], dtype=framework.float64)
        x.sum().backward()

    (effect,) = traced(framework, loss).effects
    assert effect.startswith("what backward added to the grad of x is scaled by 0.5 because `")
    assert effect.endswith("; what it held before is scaled by 0.5 as well")


def test_a_gradient_that_held_something_is_not_said_to_be_scaled_or_zero(framework):
    def loss(factor, before):
        x = vector(framework, 2)
        if before is not None:
            x.grad = framework.tensor([before, before], dtype=framework.float64)
        x.register_hook(scaled(factor))
        (x * x).sum().backward()

    def told(factor, before):
        (effect,) = traced(framework, lambda: loss(factor, before)).effects
        return effect.split(" because")[0]

    assert told(2, 100.0) == "what backward added to the grad of x is scaled by 2"
    assert told(0, 100.0) == "what backward added to the grad of x is 0"
    assert told(2, 0.0) == told(2, None) == "grad of x is scaled by 2"


def test_a_gradient_that_did_not_arrive_is_not_said_to_be_scaled(framework):
    def loss(raises):
        x = vector(framework, 2)
        y = x * 2
        z = y * 3

        def fail(gradient):
            if raises:
                raise ValueError

        z.register_hook(scaled(2))
        y.register_hook(fail)
        z.sum().backward()

    assert traced(framework, lambda: loss(True)).effects == ()
    assert traced(framework, lambda: loss(False)).effects[0].startswith("grad of x is scaled by 2 because")


def passes_with_a_hook_that_removes_itself(f, *, twice):
    x = vector(f, 2)
    y = x * 3

    def once(g):
        if not twice:
            handle.remove()
        return g * 5

    handle = y.register_hook(once)
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()


def test_what_a_hook_did_in_an_earlier_pass_alone_is_told_of_that_pass(framework):
    graph = traced(framework, lambda: passes_with_a_hook_that_removes_itself(framework, twice=False))
    assert fate(graph, "x").grad.values[:1] == (6 * 18.0,)
    (effect,) = graph.effects
    assert re.match(
        r"what backward pass 1 of 2, at \S+, added to the grad of x is scaled by 5 because `.*once`", effect
    )


def test_a_hook_of_every_pass_is_told_of_the_last(framework):
    graph = traced(framework, lambda: passes_with_a_hook_that_removes_itself(framework, twice=True))
    assert fate(graph, "x").grad.values[:1] == (10 * 18.0,)
    (effect,) = graph.effects
    assert effect.startswith("what the last backward pass added to the grad of x is scaled by 5 because")
