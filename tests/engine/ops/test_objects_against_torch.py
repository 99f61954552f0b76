"""Copies, shapes, arrays and the names of nodes are as PyTorch's, and so are messages about them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these objects is PyTorch")

Program = Callable[[Any], Any]


def leaf(t: Any) -> Any:
    return t.tensor([[0.5, 1.0, -2.0], [0.3, -1.2, 0.7]], requires_grad=True)


def shared(t: Any) -> Any:
    whole = t.zeros(2)
    part = copy.copy(whole)
    part[0] = 3.0
    return whole.tolist(), part is whole


def copied(t: Any, made: Callable[[Any], Any]) -> Any:
    x = made(leaf(t))
    y = copy.copy(x)
    return type(y).__name__, y.requires_grad, y.is_leaf, y.grad_fn is None, y.data_ptr() == x.data_ptr(), y is x


def joined(t: Any) -> Any:
    size, other = t.zeros(2, 3).shape, (4, 1)
    sums = (size + other, other + size, size * 2, 2 * size, size[1:], size[::-1], size + t.Size((5,)))
    return [(repr(each), each.numel()) for each in sums], size[0], size[-1]


def more_cotangents(t: Any) -> Any:
    x, seed = leaf(t), t.full((2, 3), 2.0)
    t.autograd.backward([x * 3], [seed, seed])
    return t.autograd.grad(x * 2, x, [seed, seed])[0].tolist(), x.grad.tolist()


def without_dim(t: Any, name: str, ndim: int) -> Any:
    """Return values, the printed form of the layer, and the warnings."""
    x = t.arange(2.0**ndim).reshape((2,) * ndim)
    module = getattr(t.nn, {"softmax": "Softmax", "log_softmax": "LogSoftmax", "softmin": "Softmin"}[name])()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        results = getattr(t.nn.functional, name)(x), module(x)
    chosen = [[np.round(y.numpy().astype(float), 5).tolist() for y in results], repr(module)]
    return chosen, [str(entry.message) for entry in seen]


def counted(t: Any) -> Any:
    found = []
    for kind in (t.uint8, t.int32, t.bool, t.float32):
        for values in ([200, 100, 0], 3):
            x = t.tensor(values).to(kind)
            results = (x.cumsum(0), x.cumprod(0), x.any(), x.all(0, keepdim=True), x.cumsum(0, dtype=t.float32))
            found += [(str(y.dtype), y.tolist()) for y in results]
    return found


ALIKE: dict[str, Program] = {
    "running sums and truths of integers": counted,
    "parts of nothing": lambda t: [tuple(part.shape) for part in t.zeros(0, 3).chunk(4)],
    "the largest of one number": lambda t: [x.tolist() for x in t.tensor(3.0).topk(1)],
    "the mean loss of no examples": lambda t: (
        repr(t.nn.functional.nll_loss(t.zeros(0, 3), t.zeros(0, dtype=t.int64))),
        repr(t.nn.functional.nll_loss(t.zeros(0, 3), t.zeros(0, dtype=t.int64), reduction="sum")),
    ),
    "a histogram of nothing": lambda t: t.zeros(0).histc(3).tolist(),
    "one number": lambda t: [(str(x.dtype), x.item()) for x in (t.scalar_tensor(1), t.scalar_tensor(1, dtype=t.int32))],
    "a copy shares memory": shared,
    "a copy of a leaf": lambda t: copied(t, lambda x: x),
    "a copy of a result": lambda t: copied(t, lambda x: x * 2),
    "a copy of a parameter": lambda t: copied(t, t.nn.Parameter),
    "a copy of a view": lambda t: copied(t, lambda x: x.detach()[0]),
    "sums of shapes": joined,
    "more cotangents than outputs": more_cotangents,
    "an image without a batch": lambda t: t.nn.functional.conv2d(t.ones(3, 4, 4), t.ones(2, 3, 2, 2)).tolist(),
    **{
        f"{name} of {ndim} axes without a dim": lambda t, name=name, ndim=ndim: without_dim(t, name, ndim)
        for name in ("softmax", "log_softmax", "softmin")
        for ndim in range(5)
    },
}


@pytest.mark.parametrize("name", ALIKE)
def test_objects_behave_alike(name: str) -> None:
    assert ALIKE[name](engine) == ALIKE[name](torch)


NODES: dict[str, Callable[[Any, Any], Any]] = {
    "index_fill": lambda t, x: x.index_fill(0, t.tensor([0]), 1.0),
    "index_fill_": lambda t, x: (x * 1).index_fill_(0, t.tensor([-1]), 1.0),
    "index_fill of a tensor": lambda t, x: x.index_fill(1, t.tensor([0, 2]), t.tensor(2.0, requires_grad=True)),
    "t_": lambda t, x: (x * 1).t_(),
    "transpose_": lambda t, x: (x * 1).transpose_(0, 1),
    "unsqueeze_": lambda t, x: (x * 1).unsqueeze_(0),
    "squeeze_": lambda t, x: (x * 1)[:1].clone().squeeze_(),
    "squeeze_ of an axis": lambda t, x: (x * 1)[:1].clone().squeeze_(0),
    "t": lambda t, x: x.t(),
    "unsqueeze": lambda t, x: x.unsqueeze(0),
    "embedding": lambda t, x: t.nn.functional.embedding(t.tensor([[0, 1, 0]]), x),
    "embedding with padding": lambda t, x: t.nn.functional.embedding(t.tensor([0, 1]), x, padding_idx=0),
    "embedding with padding from the end": lambda t, x: t.nn.functional.embedding(t.tensor([0, 1]), x, padding_idx=-1),
    "celu": lambda t, x: t.nn.functional.celu(x, 0.5),
    **{
        f"{name}, {reduction}": lambda t, x, name=name, reduction=reduction: getattr(t.nn.functional, name)(
            x.sigmoid(), t.full((2, 3), 0.4), reduction=reduction
        )
        for name in ("binary_cross_entropy", "binary_cross_entropy_with_logits", "smooth_l1_loss", "huber_loss")
        for reduction in ("mean", "sum", "none")
    },
    "smooth_l1_loss, beta": lambda t, x: t.nn.functional.smooth_l1_loss(x, t.zeros(2, 3), beta=0.6),
    "huber_loss, delta": lambda t, x: t.nn.functional.huber_loss(x, t.zeros(2, 3), delta=0.6),
    "binary_cross_entropy, weights": lambda t, x: t.nn.functional.binary_cross_entropy(
        x.sigmoid(), t.ones(2, 3), weight=t.tensor([1.0, 2.0, 3.0])
    ),
    "binary_cross_entropy_with_logits, weights": lambda t, x: t.nn.functional.binary_cross_entropy_with_logits(
        x, t.full((2, 3), 0.3), t.tensor([1.0, 2.0, 3.0]), pos_weight=t.tensor([0.5, 2.0, 3.0])
    ),
}


def node(t: Any, program: Callable[[Any, Any], Any]) -> tuple[str, Any, Any]:
    """Return the name of the node, the value, and the gradient for a cotangent of different numbers."""
    x = leaf(t)
    result = program(t, x)
    seed = t.arange(1.0, result.numel() + 1).reshape(result.shape)
    name = result.grad_fn.name()
    result.backward(seed)
    return name, result.detach().numpy(), x.grad.numpy()


@pytest.mark.parametrize("name", NODES)
def test_nodes_have_the_same_names_and_rules(name: str) -> None:
    ours, theirs = (node(t, NODES[name]) for t in (engine, torch))
    assert ours[0] == theirs[0]
    for mine, reference in zip(ours[1:], theirs[1:], strict=True):
        np.testing.assert_allclose(mine, reference, rtol=1e-5, atol=1e-7)


MISTAKES: dict[str, Program] = {
    "solve with other rows": lambda t: t.linalg.solve(t.eye(3), t.ones(4)),
    "solve with other rows, several": lambda t: t.linalg.solve(t.eye(3), t.ones(4, 2)),
    "solve with another batch": lambda t: t.linalg.solve(t.eye(3).expand(2, 3, 3), t.ones(3, 3, 1)),
    "float index of index_select": lambda t: t.ones(2).index_select(0, t.tensor([1.0])),
    "float index of index_add": lambda t: t.ones(2, 3).index_add(0, t.tensor([1.0]), t.ones(1, 3)),
    "float index of index_copy": lambda t: t.ones(2, 3).index_copy(0, t.tensor([1.0]), t.ones(1, 3)),
    "float index of take": lambda t: t.ones(2, 3).take(t.tensor([1.0])),
    "float index of index_fill": lambda t: t.ones(2, 3).index_fill(0, t.tensor([1.0]), 1.0),
    "diagonal of one axis": lambda t: t.ones(2, 2).diagonal(0, 0, 0),
    "diagonal of one axis, from the end": lambda t: t.ones(2, 2).diagonal(0, 1, -1),
    "eye of negative size": lambda t: t.eye(-1),
    "eye of negative width": lambda t: t.eye(2, -3),
    "permutation of negative length": lambda t: t.randperm(-1),
    "negative shape": lambda t: t.full((2, -1), 1.0),
    "negative steps": lambda t: t.linspace(0, 1, -1),
    "letters": lambda t: t.from_numpy(np.array(["a"])),
    "objects": lambda t: t.tensor(np.array([None])),
    "dates": lambda t: t.as_tensor(np.array([1], dtype="datetime64[s]")),
    "booleans compared by gradcheck": lambda t: t.autograd.gradcheck(lambda a: a > 0, leaf(t).double()[0]),
    "an unknown matrix norm": lambda t: t.linalg.norm(t.ones(2, 2), "foo"),
    "a matrix norm of order 3": lambda t: t.linalg.matrix_norm(t.ones(2, 2), 3),
    "an unknown norm of a vector": lambda t: t.linalg.norm(t.ones(2), "foo"),
    "a nuclear norm of a vector": lambda t: t.linalg.norm(t.ones(2), "nuc"),
    "a norm of three axes": lambda t: t.linalg.norm(t.ones(2, 2, 2), 2),
    "a matrix norm along one axis": lambda t: t.linalg.norm(t.ones(2, 2), "fro", 1),
    "a matrix norm along an axis twice": lambda t: t.linalg.matrix_norm(t.ones(2, 2), "fro", (1, -1)),
    "a vector norm named fro": lambda t: t.linalg.vector_norm(t.ones(2), "fro"),
    "an unknown norm of the method": lambda t: t.ones(2).norm("foo"),
    "a condition number in no norm": lambda t: t.linalg.cond(t.ones(2, 2), 3),
    "an image without channels": lambda t: t.nn.functional.conv2d(t.ones(4, 4), t.ones(2, 3, 2, 2)),
    "an image of other channels": lambda t: t.nn.functional.conv2d(t.ones(2, 4, 4), t.ones(2, 3, 2, 2)),
    "a bias of other size": lambda t: t.nn.functional.conv1d(t.ones(3, 4), t.ones(2, 3, 2), t.ones(3)),
    "no stride": lambda t: t.nn.functional.conv1d(t.ones(3, 4), t.ones(2, 3, 2), stride=0),
    "negative padding": lambda t: t.nn.functional.conv1d(t.ones(3, 4), t.ones(2, 3, 2), padding=-1),
    "strides of three axes": lambda t: t.nn.functional.conv2d(t.ones(3, 4, 4), t.ones(2, 3, 2, 2), stride=(1, 2, 3)),
    "fewer cotangents than outputs": lambda t: t.autograd.grad([leaf(t) * 2, leaf(t)], leaf(t), [t.ones(2, 3)]),
    "booleans beside numbers": lambda t: t.autograd.gradcheck(lambda a: (a, a > 0), leaf(t).double()[0]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_alike(name: str) -> None:
    found = []
    for t in (engine, torch):
        with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)) as raised:
            MISTAKES[name](t)
        found.append((type(raised.value), str(raised.value)[:110]))
    assert found[0] == found[1]


def test_what_gradcheck_can_compare_passes_still() -> None:
    for t in (engine, torch):
        x = leaf(t).detach().double().requires_grad_()
        assert t.autograd.gradcheck(lambda a: (a * 2, (a * 2).long()), x)
        assert t.autograd.gradcheck(lambda a: a.sign(), x)
