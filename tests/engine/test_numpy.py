"""NumPy's functions and arrays beside tensors: recorded, or refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli import engine as torch


def test_a_numpy_function_is_recorded() -> None:
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    y = np.exp(x)
    assert isinstance(y, torch.Tensor)
    y.sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.exp([0.5, 1.5]))


@pytest.mark.parametrize("operation", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.power])
def test_arrays_and_tensors_mix(operation: np.ufunc) -> None:
    array = np.array([1.5, 2.5])
    x = torch.tensor([0.5, 3.0], dtype=torch.float64, requires_grad=True)
    for result in (operation(array, x), operation(x, array)):
        assert isinstance(result, torch.Tensor)
        assert result.requires_grad
    np.testing.assert_allclose(operation(array, x).detach().numpy(), operation(array, np.array([0.5, 3.0])))


def test_operators_with_an_array_on_the_left() -> None:
    x = torch.tensor([0.5, 3.0], dtype=torch.float64, requires_grad=True)
    result = np.array([2.0, 4.0]) * x
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [1.0, 12.0]


def test_what_is_not_differentiated_says_so() -> None:
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    with pytest.raises(TypeError, match=r"numpy.cbrt is not differentiated on tensors"):
        np.cbrt(x)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.asarray(x)
    assert np.asarray(x.detach()).tolist() == [0.5]


def test_memory_is_shared_with_arrays() -> None:
    array = np.zeros(2)
    x = torch.from_numpy(array)
    x[0] = 5
    assert array[0] == 5
    x.numpy()[1] = 7
    assert x.tolist() == [5.0, 7.0]


FUNCTIONS = {
    "sum": lambda x: np.sum(x, axis=0),
    "mean": lambda x: np.mean(x, axis=1, keepdims=True),
    "concatenate": lambda x: np.concatenate([x, x], axis=1),
    "stack": lambda x: np.stack([x, x]),
    "vstack": lambda x: np.vstack([x, x]),
    "dot": lambda x: np.dot(x, x),
    "where": lambda x: np.where(np.ones((3, 3)) > 0, x, 0.0),
    "reshape": lambda x: np.reshape(x, (9,)),
    "transpose": lambda x: np.transpose(x),
    "clip": lambda x: np.clip(x, -0.5, 0.5),
    "max": lambda x: np.max(x, axis=0),
    "min": lambda x: np.amin(x),
    "var": lambda x: np.var(x, 0, ddof=1),
    "std": lambda x: np.std(x),
    "prod": lambda x: np.prod(x, axis=1),
    "cumsum": lambda x: np.cumsum(x),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "tensordot": lambda x: np.tensordot(x, x, axes=1),
    "outer": lambda x: np.outer(x, x),
    "squeeze": lambda x: np.squeeze(np.expand_dims(x, 0)),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "flip": lambda x: np.flip(x),
    "sort": lambda x: np.sort(x, axis=0),
    "diag": lambda x: np.diag(x),
    "tril": lambda x: np.tril(x),
    "norm": lambda x: np.linalg.norm(x, axis=0),
    "inv": lambda x: np.linalg.inv(x),
    "left matmul": lambda x: np.arange(3.0) @ x,
    "maximum": lambda x: np.maximum(x, 0.1),
    "split": lambda x: np.split(x, [1, 2])[1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_numpy_function_gives_numpys_values_and_a_gradient(name: str) -> None:
    array = np.random.default_rng(0).normal(size=(3, 3))
    x = torch.tensor(array, requires_grad=True)
    result = FUNCTIONS[name](x)
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(result.detach().numpy(), FUNCTIONS[name](array), rtol=1e-12)
    weights = np.random.default_rng(1).normal(size=result.shape)
    (result * torch.tensor(weights)).sum().backward()
    assert x.grad is not None
    step = 1e-6
    for place in np.ndindex(3, 3):
        shift = np.zeros((3, 3))
        shift[place] = step
        change = (FUNCTIONS[name](array + shift) - FUNCTIONS[name](array - shift)) / (2 * step)
        assert x.grad.numpy()[place] == pytest.approx(float((change * weights).sum()), rel=1e-5, abs=1e-7)


def test_other_functions_and_arguments_on_tracked_tensors_are_refused_in_words() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    for call in (
        lambda: np.median(x),
        lambda: np.fft.fft(x),
        lambda: np.sum(x, where=np.array([True, False])),
        lambda: np.add(x, 1, out=np.zeros(2)),
        lambda: np.exp(x, where=np.array([True, False])),
        lambda: np.add.reduce(x),
    ):
        with pytest.raises(TypeError, match=r"detach\(\).numpy\(\)"):
            call()
    assert np.median(x.detach()) == 1.5
    assert np.cbrt(x.detach()).tolist() == pytest.approx([1.0, 2 ** (1 / 3)])


def test_the_module_of_gradcheck_and_the_function_live_beside_each_other() -> None:
    import importlib

    module = importlib.import_module("gradcli.engine.autograd.gradcheck")
    assert torch.autograd.gradcheck is module.gradcheck
    assert issubclass(module.GradcheckError, RuntimeError)
