"""Shapes and indices that do not fit are refused with PyTorch's class of error, and the beginning of its words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine


def ones(t: Any, *shape: int) -> Any:
    return t.ones(*shape)


def rows(t: Any) -> Any:
    return t.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])


def written(t: Any, key: Any, value: Any) -> Any:
    result = rows(t)
    result[key] = value
    return result.tolist()


def padded(*pads: int, **options: Any) -> Callable[[Any], Any]:
    return lambda t: tuple(t.nn.functional.pad(ones(t, 2, 3), pads, **options).shape)


def crossed(first: tuple[int, ...], second: tuple[int, ...], **options: Any) -> Callable[[Any], Any]:
    return lambda t: tuple(t.linalg.cross(ones(t, *first), ones(t, *second), **options).shape)


CASES: dict[str, Callable[[Any], Any]] = {
    "one padding": padded(1),
    "three paddings": padded(1, 2, 3),
    "three reflections": padded(1, 1, 1, mode="reflect"),
    "paddings of three axes": padded(1, 1, 1, 1, 1, 1),
    "paddings of two axes": padded(1, 2, 0, 1),
    "no paddings": padded(),
    "more cut off than there is": padded(-4, 0),
    "more cut off in two parts": padded(-2, -2),
    "all cut off": padded(-2, -1),
    "cut off and added": padded(-4, 2),
    "cross of 3 and 4": crossed((2, 3), (2, 4)),
    "cross of 4": crossed((2, 4), (2, 4)),
    "cross along axis 0": crossed((2, 3), (2, 3), dim=0),
    "cross of other axes": crossed((2, 3), (3,)),
    "cross of other rows": crossed((2, 3), (5, 3)),
    "cross of one row": crossed((2, 3), (1, 3)),
    "cross of columns": crossed((3, 2), (3, 1), dim=0),
    "cross of no 3": lambda t: t.cross(ones(t, 2, 4), ones(t, 2, 4), dim=-1),
    "second index": lambda t: ones(t, 2, 3)[0, 3],
    "second index from the end": lambda t: ones(t, 2, 3)[0, -4],
    "third index": lambda t: ones(t, 2, 3, 4)[0, 2, 9],
    "index after a slice": lambda t: ones(t, 2, 3, 4)[1, :, 4],
    "index after a new axis": lambda t: ones(t, 2, 3)[0, None, 5],
    "index after an ellipsis": lambda t: ones(t, 2, 3, 4)[0, ..., 4],
    "index of a row": lambda t: ones(t, 2, 3)[0][5],
    "written": lambda t: ones(t, 2, 3).__setitem__((0, 5), 1.0),
    "a list of lists reads at pairs": lambda t: rows(t)[[[0, 1], [1, 2]]].tolist(),
    "a list of lists writes at pairs": lambda t: written(t, [[0, 1], [1, 2]], 5.0),
    "a list with a slice": lambda t: rows(t)[[0, slice(1, 3)]].tolist(),
    "a list with a tensor": lambda t: rows(t)[[t.tensor([1, 0]), 2]].tolist(),
    "a list of indices alone": lambda t: rows(t)[[1, 0]].tolist(),
    "a list of 32 lists": lambda t: tuple(rows(t)[[[0, 1]] * 32].shape),
    "bytes are a mask": lambda t: rows(t)[t.tensor([0, 1], dtype=t.uint8)].tolist(),
    "bytes are a mask that is written to": lambda t: written(t, t.tensor([1, 0]).to(t.uint8), ones(t, 3)),
    "bytes of another number": lambda t: rows(t)[t.tensor([0, 1, 1], dtype=t.uint8)],
    "indices of other lengths": lambda t: rows(t)[[0, 1], [0, 1, 2]],
    "a list in a list": lambda t: ones(t, 3)[[0, [1]]],
    "index of a number": lambda t: t.tensor(1.0)[0],
    "a vector written to a number": lambda t: written(t, (0, 0), ones(t, 2)),
    "a vector written to a longer one": lambda t: written(t, 0, ones(t, 2)),
    "a tracked vector written to a longer one": lambda t: written(t, 0, ones(t, 2).requires_grad_()),
    "a matrix written to a slice": lambda t: written(t, (slice(None), slice(0, 2)), ones(t, 3, 2)),
    "a vector written at a mask": lambda t: written(t, (0, t.tensor([True, False, True])), ones(t, 3)),
    "a word written": lambda t: written(t, 0, "a"),
    "put at places": lambda t: rows(t).put(t.tensor([0, -1, 0]), t.tensor([7.0, 8.0, 9.0]), accumulate=True).tolist(),
    "put where there is no place": lambda t: rows(t).put_(t.tensor([6]), t.tensor([7.0])),
    "put too few": lambda t: rows(t).put_(t.tensor([0, 1]), t.tensor([7.0])),
    "rows of other lengths": lambda t: t.cat([ones(t, 2, 3), ones(t, 2, 4)]),
    "rows and a vector": lambda t: t.cat([ones(t, 2, 3), ones(t, 3)]),
    "columns of other lengths": lambda t: t.cat([ones(t, 2, 3), ones(t, 2, 4), ones(t, 3, 3)], 1),
    "batches of two axes": lambda t: t.bmm(ones(t, 2, 3), ones(t, 1, 3, 2)),
    "a second batch of two axes": lambda t: t.bmm(ones(t, 1, 3, 2), ones(t, 2, 3)),
    "unflatten": lambda t: ones(t, 2, 3).unflatten(1, (2, 2)),
    "unflatten with a rest": lambda t: ones(t, 2, 3).unflatten(1, (-1, 2)),
    "gather": lambda t: ones(t, 2, 3).gather(1, t.tensor([0])),
    "condition of numbers": lambda t: t.where(ones(t, 2), ones(t, 2), ones(t, 2)),
    "negative class": lambda t: t.nn.functional.one_hot(t.tensor([-1])),
    "class too large": lambda t: t.nn.functional.one_hot(t.tensor([5]), 3),
    "layer norm": lambda t: t.nn.functional.layer_norm(ones(t, 2, 3), (4,)),
    "arange": lambda t: t.arange(3, 0),
    "a number for a tensor": lambda t: t.sin(3),
    "a second number for a tensor": lambda t: t.matmul(ones(t, 2), 3),
    "tril of a vector": lambda t: t.tril(ones(t, 3)),
    "a diagonal between two": lambda t: ones(t, 2, 3).tril(0.5),
    "a diagonal between two, of a function": lambda t: t.triu(ones(t, 2, 3), 1.0),
    "a diagonal by its name": lambda t: t.diag(ones(t, 3), diagonal=0.5),
    "an index between two": lambda t: ones(t, 2, 3).select(0, 0.5),
    "an axis between two": lambda t: t.softmax(ones(t, 2, 3), 0.5),
    "an axis of a number of NumPy": lambda t: ones(t, 2, 3).unsqueeze(np.float64(1)),
    "an axis that is true": lambda t: ones(t, 2, 3).cumsum(True),
    "no axis": lambda t: ones(t, 2, 3).cummax(None),
    "an axis that is a word": lambda t: ones(t, 2, 3).transpose(0, "rows"),
    "an axis that is a real tensor": lambda t: ones(t, 2, 3).topk(t.tensor(1.0)),
    "a power between two": lambda t: ones(t, 2, 2).matrix_power(1.5),
    "an axis of integers": lambda t: [
        tuple(ones(t, 2, 3).sum(axis).shape) for axis in (np.int64(1), t.tensor(0), (np.int64(0),))
    ],
    "parts of a length of NumPy": lambda t: [tuple(part.shape) for part in ones(t, 3).split(t.tensor(2))],
    "a list for a tensor": lambda t: ones(t, 2, 3).gather(0, [0]),
    "a number for a matrix": lambda t: ones(t, 2, 3).mm(2),
    "a number for an index": lambda t: ones(t, 2, 3).take(1),
}
# Of these, the engine says more.
LONGER = {"tril of a vector", "more cut off than there is", "more cut off in two parts", "cut off and added"}


def outcome(case: Callable[[Any], Any], namespace: Any) -> tuple[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "returned", repr(case(namespace))
        except Exception as error:
            return type(error).__name__, str(error).rstrip(".")


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_is_refused_as_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these errors is PyTorch")
    ours, theirs = outcome(CASES[name], engine), outcome(CASES[name], torch)
    if name in LONGER:
        ours = (ours[0], ours[1][: len(theirs[1])])
    assert ours == theirs


def test_singular_matrices_raise_the_class_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="the reference for these errors is PyTorch")
    for namespace in (torch, engine):
        with pytest.raises(namespace.linalg.LinAlgError) as caught:
            namespace.linalg.inv(namespace.zeros(2, 2))
        assert caught.type.__name__ == "_LinAlgError"
