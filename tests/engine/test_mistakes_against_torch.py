"""The same mistake raises the same kind of error as in PyTorch, and never passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these errors is PyTorch")


def _assigned(t: Any, key: Any) -> None:
    t.zeros(3, 4)[key] = 1


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "negative step read": lambda t: t.zeros(3)[::-1],
    "negative step written": lambda t: _assigned(t, slice(None, None, -1)),
    "float index": lambda t: t.zeros(3)[1.5],
    "string index": lambda t: t.zeros(3)["a"],
    "index too large read": lambda t: t.zeros(3, 4)[0, 9],
    "index too large written": lambda t: _assigned(t, (0, 9)),
    "list index too large written": lambda t: _assigned(t, [5]),
    "too many indices written": lambda t: _assigned(t, (0, 0, 0)),
    "index of real numbers": lambda t: t.zeros(3)[t.tensor([1.5])],
    "mask of another shape": lambda t: t.zeros(3, 4)[t.tensor([True, False])],
    "gather outside": lambda t: t.zeros(3, 4).gather(0, t.tensor([[9]])),
    "gather from the end": lambda t: t.zeros(3, 4).gather(0, t.tensor([[-1]])),
    "gather of fewer axes": lambda t: t.zeros(3, 4).gather(0, t.tensor([1])),
    "gather of a wider index": lambda t: t.zeros(3, 4).gather(0, t.zeros(1, 5).long()),
    "scatter outside": lambda t: t.zeros(3, 4).scatter(0, t.tensor([[3]]), 1.0),
    "scatter add outside": lambda t: t.zeros(3, 4).scatter_add(0, t.tensor([[-1]]), t.ones(1, 1)),
    "narrow past the end": lambda t: t.zeros(3, 4).narrow(0, 2, 5),
    "narrow from past the end": lambda t: t.zeros(3, 4).narrow(0, 5, 0),
    "narrow of negative length": lambda t: t.zeros(3, 4).narrow(0, 0, -1),
    "split of negative size": lambda t: t.zeros(3).split(-1),
    "chunk in none": lambda t: t.zeros(3).chunk(0),
    "float of several": lambda t: float(t.zeros(2)),
    "int of several": lambda t: int(t.zeros(2)),
    "complex of none": lambda t: complex(t.zeros(0)),
    "item of several": lambda t: t.zeros(2).item(),
    "tensor of None": lambda t: t.tensor(None),
    "negative size": lambda t: t.zeros(2, -1),
    "range against its step": lambda t: t.arange(0, 5, -1),
    "range without a step": lambda t: t.arange(0, 5, 0),
    "mask of real numbers": lambda t: t.zeros(3).masked_fill(t.zeros(3), 1.0),
    "softmax of integers": lambda t: t.zeros(3).long().softmax(0),
    "log_softmax of booleans": lambda t: t.zeros(3).bool().log_softmax(0),
    "bits of real numbers": lambda t: t.zeros(3) & t.zeros(3),
    "inverted real numbers": lambda t: ~t.zeros(3),
    "negated booleans": lambda t: -t.zeros(3).bool(),
    "inverse of a vector": lambda t: t.linalg.inv(t.zeros(3)),
    "inverse of what is not square": lambda t: t.linalg.inv(t.zeros(3, 4)),
    "factor of what is not square": lambda t: t.linalg.cholesky(t.zeros(3, 4)),
    "determinant of what is not square": lambda t: t.linalg.det(t.zeros(3, 4)),
    "eigenvalues of what is not square": lambda t: t.linalg.eigh(t.zeros(3, 4)),
}
SINGULAR: dict[str, Callable[[Any], Any]] = {
    "inv": lambda t: t.linalg.inv(t.zeros(2, 2)),
    "solve": lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2)),
    "cholesky": lambda t: t.linalg.cholesky(-t.eye(2)),
}


def _raised(call: Callable[[Any], Any], framework: Any) -> type[BaseException]:
    with pytest.raises(Exception) as caught:
        call(framework)
    return caught.type


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_raises_the_class_of_error_that_torch_raises(name: str) -> None:
    assert _raised(MISTAKES[name], engine) is _raised(MISTAKES[name], torch)


@pytest.mark.parametrize("name", SINGULAR)
def test_what_cannot_be_factored_raises_a_runtime_error_as_in_torch(name: str) -> None:
    assert _raised(SINGULAR[name], torch) is torch.linalg.LinAlgError
    assert _raised(SINGULAR[name], engine) is engine.linalg.LinAlgError
    assert issubclass(engine.linalg.LinAlgError, RuntimeError)
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)
