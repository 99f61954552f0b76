"""Nodes whose saved tensors changed after forward, and gradients that changed after backward."""

import numpy as np
import pytest

import gradcli


def leaf(f, size=3):
    return f.tensor(np.linspace(0.5, 2.0, size), requires_grad=True)


def write_to_data(f):
    x = leaf(f)
    y = x * x
    x.data.fill_(7.0)
    y.sum().backward()


def write_of_one_percent(f):
    x = leaf(f, 40)
    y = x * x
    x.data.mul_(1.01)
    y.sum().backward()


def write_to_numpys_memory(f):
    x = leaf(f)
    y = x.sin()
    x.detach().numpy()[:] = 5.0
    y.sum().backward()


def wrong_unpack(f):
    x = leaf(f)
    with f.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * 3):
        y = x * x
    y.sum().backward()


def checked(f, program):
    return gradcli.trace(lambda: program(f), check=True, every_node=True)


@pytest.mark.parametrize("program", [write_to_data, write_of_one_percent, write_to_numpys_memory, wrong_unpack])
def test_a_node_whose_saved_tensors_were_changed_is_named(framework, program):
    if framework.__name__ != "torch" and program is write_to_numpys_memory:
        pytest.skip("what the engine's numpy() returns may be a copy")
    graph = checked(framework, program)
    assert graph.symptoms == ("wrong-node",)
    assert "returned other gradients in this pass than those of its forward" in graph.lints[0]
    assert not any(note.startswith("--check") for note in graph.notes)


def untouched(f):
    x = leaf(f, 12)
    a, b = x.reshape(2, 6).unbind(0)
    y = (a.softmax(-1) * b).cumsum(0)
    v, _ = y.sort(-1)
    (f.cat([v, a * 2]).exp() + f.stack([b, a]).reshape(-1)).sum().backward()


def rounded_on_purpose(f):
    x = leaf(f, 40)
    with f.autograd.graph.saved_tensors_hooks(lambda t: t.to(f.float16), lambda t: t.to(f.float64)):
        y = x * x
    y.sum().backward()


def written_after_backward(f):
    x = leaf(f)
    (x * x).sum().backward()
    x.data.fill_(7.0)


def random_and_captured(f):
    scale = leaf(f)

    class Noisy(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.factor = float(f.rand(1).item())
            return x * ctx.factor

        @staticmethod
        def backward(ctx, g):
            return g * ctx.factor

    class Scaled(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g * scale

    x = leaf(f)
    Scaled.apply(Noisy.apply(x)).sum().backward()
    scale.data.fill_(9.0)


def hook_on_a_node(f):
    x = leaf(f)
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: tuple(None if g is None else g * 5 for g in inputs))
    y.sum().backward()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "program", [untouched, rounded_on_purpose, written_after_backward, random_and_captured, hook_on_a_node]
)
def test_other_nodes_are_not(framework, program):
    graph = checked(framework, program)
    assert "wrong-node" not in graph.symptoms
    assert not [lint for lint in graph.lints if "other gradients in this pass" in lint]


@pytest.mark.sampled(1)
def test_the_number_of_checked_calls_is_said(framework):
    assert "--check: the backward of 2 calls is right" in checked(framework, written_after_backward).notes
    quiet = gradcli.trace(lambda: written_after_backward(framework), check=True)
    assert "--check: there was no call to check" in quiet.notes
    assert gradcli.trace(lambda: written_after_backward(framework)).notes == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x.grad.mul_(3), "by mul_() at "),
        (lambda x: setattr(x, "grad", x.grad * 2), "by .grad = at "),
        (lambda x: x.grad.sum(), None),
    ],
)
def test_a_gradient_that_changed_after_backward_is_said_to_have(framework, change, said):
    def program():
        x = leaf(framework)
        (x * x).sum().backward()
        change(x)

    notes = gradcli.trace(program).notes
    assert (said is None) == (notes == ())
    assert said is None or f"the .grad of x was changed after backward had filled it, {said}" in notes[0]


def test_nan_is_no_change(framework):
    def program():
        x = framework.tensor([float("nan"), 1.0], requires_grad=True)
        (x * x).sum().backward()

    assert gradcli.trace(program).notes == ()
