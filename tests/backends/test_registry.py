"""Which framework a callable belongs to: its own home, the names it uses, its inputs, and last its module."""

import functools

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="this module imports two frameworks")

import gradcli  # noqa: E402 - needs PyTorch, which may be absent
from gradcli import engine  # noqa: E402 - as above
from gradcli.backends.registry import backend_for  # noqa: E402 - as above
from gradcli.errors import TargetError, UsageError  # noqa: E402 - as above
from gradcli.examples.exp import Exp  # noqa: E402 - as above
from gradcli.verdict import Verdict  # noqa: E402 - as above


def leaf():
    return torch.tensor([0.5, -1.25, 2.0], dtype=torch.float64, requires_grad=True)


WITHOUT_CODE = [
    torch.relu,
    torch.sin,
    torch.nn.functional.gelu,
    torch.special.i0e,
    torch.Tensor.exp,
    torch.ops.aten.sin,
    functools.partial(torch.mul, 3.0),
]


@pytest.mark.parametrize("function", WITHOUT_CODE, ids=lambda each: getattr(each, "__name__", type(each).__name__))
def test_a_built_in_function_is_known_by_its_home(function):
    assert backend_for(function).name == "torch"
    assert gradcli.check(function, (leaf(),), order=1, shrink=False).verdict is Verdict.PASSED


def test_a_bound_method_is_known_by_its_object():
    assert backend_for(leaf().mul).name == "torch"
    assert backend_for(engine.tensor([1.0]).mul).name == "engine"
    assert backend_for(np.ones(3).dot).name == "numpy"


def test_inputs_of_a_built_in_function_are_inferred():
    (case,) = gradcli.check("torch:sin", order=1, shrink=False).cases
    assert (case.backend, case.verdict) == ("torch", Verdict.PASSED)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * grad_output * x


def quadratic(x, a):
    return x @ a @ x


def quadratic_gradient(x, a):
    return (a + a.T) @ x, np.outer(x, x)


def wrong_gradient(x, a):
    return a @ x, np.outer(x, x)


def with_torch(x, a):
    return torch.as_tensor(x) @ a


def helped(x, a):
    return with_torch(x, a)


MATRIX = np.array([[1.0, 2.0], [-0.5, 3.0]])


@pytest.mark.parametrize(
    ("gradient", "verdict"), [(quadratic_gradient, Verdict.PASSED), (wrong_gradient, Verdict.FAILED)]
)
def test_the_gradients_names_go_before_those_of_the_module(gradient, verdict):
    assert gradcli.check(quadratic, (np.array([1.0, 2.0]), MATRIX), grad=gradient, shrink=False).verdict is verdict


@pytest.mark.parametrize(("function", "gradient"), [(with_torch, quadratic_gradient), (helped, lambda x, a: (a, x))])
def test_the_gradient_of_what_uses_a_framework_takes_that_of_the_result(function, gradient):
    with pytest.raises(UsageError, match="output, such as grad_output, before these parameters"):
        gradcli.check(function, (np.ones(2), MATRIX), grad=gradient, shrink=False)


@pytest.mark.parametrize(
    ("target", "inputs", "said"),
    [
        (Exp, (leaf(),), "Exp runs on engine, but among its inputs is a tensor of torch"),
        (Exp, {"x": leaf()}, "Exp runs on engine, but among its inputs is a tensor of torch"),
        (Exp, [(leaf(),)], "Exp runs on engine, but among its inputs is a tensor of torch"),
        (Square, (engine.tensor([1.0, 2.0]),), "Square runs on torch, but among its inputs is a tensor of engine"),
    ],
)
def test_a_tensor_of_another_framework_is_refused(target, inputs, said):
    with pytest.raises(TargetError, match=said):
        gradcli.check(target, inputs, shrink=False)
