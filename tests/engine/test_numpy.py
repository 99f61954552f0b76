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
