"""Right programs get no symptom, and errors of a custom backward are told as they are."""

import pytest

from tests.tracing.puzzles.answers import leaf, told
from tests.tracing.tracing import traced


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
