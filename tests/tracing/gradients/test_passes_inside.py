"""Leaves that a Function uses without being given them, and backward passes inside another one."""

import pytest

from tests.tracing.tracing import fate, grads, traced


def functions(f):
    w = f.tensor([2.0, 3.0], requires_grad=True)
    unused = f.tensor([2.0, 3.0], requires_grad=True)

    class Takes(f.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            _ = unused * 2
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * w

    class Given(f.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g * w, None

    return w, unused, Takes, Given


def test_a_leaf_that_a_forward_takes_from_elsewhere(framework):
    w, unused, takes, _ = functions(framework)

    def program():
        x = framework.ones(2, requires_grad=True)
        (takes.apply(x) + w.detach() * unused.detach()).sum().backward()

    graph = traced(framework, program, named={"w": w, "unused": unused})
    assert fate(graph, "w").symptom == "no-grad"
    assert "uses it in the forward of Takes, at " in fate(graph, "w").why
    assert "backward returns gradients for the arguments of apply() only" in fate(graph, "w").why
    assert "forward of Takes" not in fate(graph, "unused").why


def test_a_leaf_that_a_forward_is_given_is_lost_in_its_backward(framework):
    w, _, _, given = functions(framework)

    def program():
        x = framework.ones(2, requires_grad=True)
        given.apply(x, w).sum().backward()

    assert fate(traced(framework, program, named={"w": w}), "w").symptom == "function-returned-none"


def test_a_backward_that_fills_what_its_forward_took(framework):
    w = framework.tensor([2.0, 3.0], requires_grad=True)

    class Nested(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * w

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with framework.enable_grad():
                again = x.detach().requires_grad_()
                (again * w).backward(g)
            return again.grad

    def program():
        x = framework.ones(2, requires_grad=True)
        Nested.apply(x).sum().backward()

    graph = traced(framework, program, named={"w": w})
    assert grads(graph)["w"] == [1.0, 1.0]
    assert fate(graph, "w").why is None
    assert any(note.startswith("the .grad of ") and "w was filled by another backward" in note for note in graph.notes)


def test_a_pass_by_itself_is_not_said_to_be_inside_another(framework):
    def program():
        x = framework.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        (x * 3).sum().backward()

    assert traced(framework, program).notes == ()


@pytest.mark.parametrize("requires", [True, False])
def test_a_reentrant_checkpoint(requires):
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint

    layer = torch.nn.Linear(2, 2)

    def program():
        x = torch.ones(3, 2, requires_grad=requires)
        last = torch.ones(2, requires_grad=True)
        (checkpoint(layer, x, use_reentrant=True) * last).sum().backward()

    if requires:
        graph = traced(torch, program, modules={"": layer})
        assert "the .grad of bias and weight was filled by another backward pass" in graph.notes[0]
        assert fate(graph, "weight").why is None
    else:
        with pytest.warns(UserWarning, match="None of the inputs"):
            graph = traced(torch, program, modules={"": layer})
        assert fate(graph, "weight").symptom == "no-grad"
        assert "a reentrant checkpoint), which runs under no_grad, and none of the" in fate(graph, "weight").why
        assert "pass use_reentrant=False" in fate(graph, "weight").why
