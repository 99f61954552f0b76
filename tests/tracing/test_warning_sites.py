"""Warnings under a trace have the file and line that they have without it, which decide whether a filter shows them."""

import warnings

import pytest

from tests.tracing.tracing import traced


def gradient_of_a_result(f):
    y = f.ones(2, requires_grad=True) * 2
    y.sum().backward()
    return y.grad


def full_hook_without_a_tracked_input(f):
    net = f.nn.Linear(2, 1)
    net.register_full_backward_hook(lambda m, gi, go: None)
    net(f.ones(3, 2)).sum().backward()


def legacy_hook(f):
    net = f.nn.Sequential(f.nn.Linear(2, 2), f.nn.ReLU())
    net.register_backward_hook(lambda m, gi, go: None)
    net(f.ones(3, 2, requires_grad=True)).sum().backward()


def loss_of_two_sizes(f):
    return f.nn.functional.mse_loss(f.ones(2, 1, requires_grad=True), f.ones(2))


def own_warning(f):
    def helper():
        warnings.warn("mine", UserWarning, stacklevel=2)

    helper()
    return f.ones(2, requires_grad=True).sum()


def placed(run):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    return [(w.category, str(w.message), w.filename, w.lineno) for w in seen]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "program",
    [gradient_of_a_result, full_hook_without_a_tracked_input, legacy_hook, loss_of_two_sizes, own_warning],
    ids=lambda program: program.__name__,
)
def test_a_warning_keeps_its_line(framework, program):
    expected = placed(lambda: program(framework))
    assert len(expected) == 1
    assert placed(lambda: traced(framework, lambda: program(framework))) == expected


def test_a_warning_keeps_its_line_where_the_program_hands_calls_over_itself():
    torch = pytest.importorskip("torch", reason="the modes and subclasses are PyTorch's")

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    def of_a_subclass():
        return torch.nn.functional.mse_loss(torch.ones(2, 1, requires_grad=True).as_subclass(Own), torch.ones(2))

    def in_a_mode():
        with Mode():
            return torch.nn.functional.mse_loss(torch.ones(2, 1, requires_grad=True), torch.ones(2))

    for program in (of_a_subclass, in_a_mode):
        expected = placed(program)
        assert len(expected) == 1
        assert placed(lambda program=program: traced(torch, program)) == expected
