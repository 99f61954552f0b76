"""The same mistake raises the same kind of error as in PyTorch, and never passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these errors is PyTorch")


def _assigned(t: Any, key: Any) -> None:
    t.zeros(3, 4)[key] = 1


def leaf(t: Any) -> Any:
    return t.ones(2, requires_grad=True)


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "negative step read": lambda t: t.zeros(3)[::-1],
    "negative step written": lambda t: _assigned(t, slice(None, None, -1)),
    "float index": lambda t: t.zeros(3)[1.5],
    "slice of floats read": lambda t: t.zeros(3)[0.3:1.7],
    "slice of floats written": lambda t: _assigned(t, (slice(None), slice(0, 2.0))),
    "slice by a real tensor": lambda t: t.zeros(3)[t.tensor(1.0) :],
    "slice by a word": lambda t: t.zeros(3)["a":],
    "slice without a step": lambda t: t.zeros(3)[::0],
    "narrow by a float": lambda t: t.zeros(3, 4).narrow(0, 0.5, 2),
    "split into lengths between two": lambda t: t.zeros(5).split([2.0, 3.0]),
    "repeated one and a half times": lambda t: t.zeros(2).repeat_interleave(1.5),
    "unflattened to a float": lambda t: t.zeros(4).unflatten(0, (2.0, 2)),
    "split at a float": lambda t: t.zeros(4).tensor_split((1.5,)),
    "a permutation of a float": lambda t: t.randperm(2.5),
    "a stride of a float": lambda t: t.nn.functional.avg_pool2d(t.zeros(1, 1, 4, 4), 2, (1.5, 1)),
    "numbers less a truth": lambda t: t.ones(2) - True,
    "a truth less numbers": lambda t: True - t.ones(2),
    "a remainder of truths": lambda t: t.tensor([True]) % t.tensor([True]),
    "a quotient of truths": lambda t: t.tensor([True]) // t.tensor([True]),
    "maxima of a matrix": lambda t: t.nn.functional.max_pool2d(t.ones(2, 3), 2),
    "a class for each number": lambda t: t.nn.functional.cross_entropy(t.ones(2), t.tensor([0, 1])),
    "a quantile of nothing": lambda t: t.ones(0).quantile(0.5),
    "a batch of no cotangents": lambda t: t.autograd.grad(leaf(t).sum(), leaf(t), is_grads_batched=True),
    "a negative deviation": lambda t: t.normal(0.0, -1.0, (2,)),
    "negative deviations": lambda t: t.normal(0.0, t.tensor([-1.0, 1.0])),
    "filled by a vector": lambda t: t.zeros(2, 2).fill_(t.ones(2)),
    "a tensor for tensors to join": lambda t: t.cat(t.ones(2, 2)),
    "a grid of matrices": lambda t: t.meshgrid(t.ones(2, 2)),
    "outer product of matrices": lambda t: t.outer(t.ones(2, 2), t.ones(2)),
    "probabilities above 1": lambda t: t.bernoulli(t.tensor([1.5])),
    "two corrections": lambda t: t.ones(3).std(unbiased=True, correction=1),
    "a target that does not broadcast": lambda t: t.nn.functional.mse_loss(t.ones(2), t.ones(3)),
    "limits that do not broadcast": lambda t: t.ones(2, 3).clamp(t.ones(5)),
    "expanded to a float": lambda t: t.zeros(3).expand(2.0, 3),
    "a view of float sizes": lambda t: t.zeros(4).view(2.0, 2),
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
    "a permutation of negative length": lambda t: t.randperm(-1),
    "integers in a negative shape": lambda t: t.randint(5, (-1,)),
    "integers between none": lambda t: t.randint(5, 5, (2,)),
    "a negative number of steps": lambda t: t.linspace(0, 1, -1),
    "an element type of NumPy's alone": lambda t: t.as_tensor(np.array([1], dtype="datetime64[s]")),
    "real numbers as indices": lambda t: t.ones(2, 3).index_fill(0, t.tensor([1.0]), 1.0),
    "a triangle of other rows": lambda t: t.linalg.solve_triangular(t.eye(3), t.ones(4, 1), upper=True),
    "least squares of other rows": lambda t: t.linalg.lstsq(t.eye(3), t.ones(4, 1)),
    "negative size": lambda t: t.zeros(2, -1),
    "range against its step": lambda t: t.arange(0, 5, -1),
    "range without a step": lambda t: t.arange(0, 5, 0),
    "mask of real numbers": lambda t: t.zeros(3).masked_fill(t.zeros(3), 1.0),
    "softmax of integers": lambda t: t.zeros(3).long().softmax(0),
    "log_softmax of booleans": lambda t: t.zeros(3).bool().log_softmax(0),
    "bits of real numbers": lambda t: t.zeros(3) & t.zeros(3),
    "inverted real numbers": lambda t: ~t.zeros(3),
    "several numbers in a format": lambda t: f"{t.ones(2):.2f}",
    "one minus a mask": lambda t: 1 - (t.ones(3) > 0),
    "numbers minus a mask": lambda t: t.ones(3) - (t.ones(3) > 0),
    "a mask minus one": lambda t: (t.ones(3) > 0) - 1,
    "negated booleans": lambda t: -t.zeros(3).bool(),
    "gradient of letters": lambda t: (t.ones(2, requires_grad=True) * 2).backward("a"),
    "gradients of letters": lambda t: t.autograd.backward([t.ones(2, requires_grad=True) * 2], ["a"]),
    "gradient by letters": lambda t: t.autograd.grad(t.ones(2, requires_grad=True).sum(), "a"),
    "inputs of letters": lambda t: t.ones(2, requires_grad=True).sum().backward(inputs=["a"]),
    "largest of none": lambda t: t.ones(0).max(),
    "smallest of none": lambda t: t.ones(0, 3).min(),
    "amax of none": lambda t: t.ones(0).amax(),
    "amin along an axis of none": lambda t: t.ones(0, 3).amin(0),
    "place of the largest of none": lambda t: t.ones(0).argmax(),
    "place of the smallest of none": lambda t: t.ones(0, 3).argmin(),
    "extremes of none": lambda t: t.aminmax(t.ones(0)),
    "mode of none": lambda t: t.ones(0).mode(),
    "integers to a negative power": lambda t: t.tensor([2]) ** -1,
    "integers to a negative power in place": lambda t: t.tensor([2]).pow_(-1),
    "integers // 0": lambda t: t.tensor([2]) // 0,
    "0 among divisors": lambda t: 5 // t.tensor([1, 0]),
    "integers // 0 in place": lambda t: t.tensor([2]).floor_divide_(0),
    "integers % 0": lambda t: t.tensor([2]) % t.tensor([0]),
    "fmod of integers by 0": lambda t: t.tensor([2]).fmod(0),
    "whole quotient by 0": lambda t: t.div(t.tensor([2]), 0, rounding_mode="trunc"),
    "integers as data of what requires a gradient": lambda t: setattr(
        t.ones(2, requires_grad=True), "data", t.ones(2).long()
    ),
    "integers as data of a result": lambda t: setattr(t.ones(2, requires_grad=True) * 2, "data", t.ones(2).bool()),
    "sum into integers of another shape": lambda t: t.add(t.ones(2), 1, out=t.ones(3).long()),
    "sum into booleans of another shape": lambda t: t.add(t.ones(2).long(), 1, out=t.ones(3).bool()),
    "type named by letters": lambda t: t.ones(2, dtype="float"),
    "type of a copy named by letters": lambda t: t.ones(2).to(dtype="float32"),
    "type of a sum named by letters": lambda t: t.ones(2).cumsum(0, dtype="float32"),
    "a NumPy type": lambda t: t.tensor([1.0], dtype=np.dtype("float64")),
    "channels in uneven groups": lambda t: t.nn.Conv1d(3, 4, 1, groups=2),
    "outputs in uneven groups": lambda t: t.nn.ConvTranspose2d(4, 3, 1, groups=2),
    "no groups": lambda t: t.nn.Conv2d(4, 4, 1, groups=0),
    "padding of another word": lambda t: t.nn.Conv1d(4, 4, 3, padding="x"),
    "same padding with a stride": lambda t: t.nn.Conv1d(4, 4, 3, padding="same", stride=2),
    "weights in uneven groups": lambda t: t.nn.functional.conv1d(t.ones(1, 4, 5), t.ones(3, 2, 2), groups=2),
    "transposed weights in uneven groups": lambda t: t.nn.functional.conv_transpose1d(
        t.ones(1, 3, 5), t.ones(3, 2, 2), groups=2
    ),
    "weights in no groups": lambda t: t.nn.functional.conv1d(t.ones(1, 4, 5), t.ones(4, 2, 2), groups=0),
    "heads that do not divide": lambda t: t.nn.MultiheadAttention(5, 2),
    "padding past the table": lambda t: t.nn.Embedding(3, 2, padding_idx=5),
    "limits in the wrong order": lambda t: t.nn.Hardtanh(2, 1),
    "dropout of 200 %": lambda t: t.nn.LSTM(2, 3, dropout=2.0),
    "no hidden states": lambda t: t.nn.GRU(2, 0),
    "einsum of two lengths": lambda t: t.einsum("ij,jk", t.ones(2, 3), t.ones(2, 3)),
    "einsum of too many subscripts": lambda t: t.einsum("ij,jk->ik", t.ones(2, 3), t.ones(3)),
    "einsum of an unknown output": lambda t: t.einsum("ij->ijk", t.ones(2, 3)),
    "einsum of a repeated output": lambda t: t.einsum("i->ii", t.ones(2)),
    "einsum of an uneven diagonal": lambda t: t.einsum("ii", t.ones(2, 3)),
    "einsum of digits": lambda t: t.einsum("i1", t.ones(2, 3)),
    "einsum of two dots": lambda t: t.einsum("i..j", t.ones(2, 3)),
    "einsum of one operand for two": lambda t: t.einsum("ij,j", t.ones(2, 3)),
    "gradient of nothing": lambda t: t.autograd.grad([t.ones(1, requires_grad=True).sum(), None], t.ones(1)),
    "gradient of a number": lambda t: t.autograd.grad([3.0], t.ones(1, requires_grad=True)),
    "gradient of None": lambda t: t.autograd.grad(None, t.ones(1, requires_grad=True)),
    "backward of nothing": lambda t: t.autograd.backward([None]),
    "letters in a tensor": lambda t: "a" in t.ones(2),
    "None in a tensor": lambda t: None in t.ones(2),
    "a list in a tensor": lambda t: [1.0] in t.ones(2),
    "product with a number": lambda t: t.ones(2) @ 1,
    "where of three lengths": lambda t: t.where(t.ones(3) > 0, t.ones(2), 0.0),
    "cosine loss of four for two": lambda t: t.nn.CosineEmbeddingLoss()(t.ones(2, 2), t.ones(2, 2), t.ones(4)),
    "cosine loss of one label": lambda t: t.nn.CosineEmbeddingLoss()(t.ones(2, 2), t.ones(2, 2), t.tensor(1)),
    "distances within a vector": lambda t: t.pdist(t.ones(3)),
    "distances of a negative power": lambda t: t.pdist(t.ones(3, 2), -1.0),
    "Bessel function of complex numbers": lambda t: t.i0(t.ones(2, dtype=t.complex64)),
    "vmap of a number": lambda t: t.func.vmap(lambda x: 1.0)(t.ones(2)),
    "vmap of nothing": lambda t: t.func.vmap(lambda x: None)(t.ones(2)),
    "vmap over a number": lambda t: t.func.vmap(lambda x: x)(3),
    "vmap over a 0-d tensor": lambda t: t.func.vmap(lambda x: x)(t.tensor(1.0)),
    "vmap over axis 5": lambda t: t.func.vmap(lambda x: x, in_dims=5)(t.ones(2)),
    "vmap over axis -3": lambda t: t.func.vmap(lambda x: x, in_dims=-3)(t.ones(2, 2)),
    "vmap over letters": lambda t: t.func.vmap(lambda x: x, in_dims="a")(t.ones(2, 2)),
    "vmap over no axis": lambda t: t.func.vmap(lambda x: x, in_dims=None)(t.ones(2, 2)),
    "inverse of a vector": lambda t: t.linalg.inv(t.zeros(3)),
    "inverse of what is not square": lambda t: t.linalg.inv(t.zeros(3, 4)),
    "factor of what is not square": lambda t: t.linalg.cholesky(t.zeros(3, 4)),
    "determinant of what is not square": lambda t: t.linalg.det(t.zeros(3, 4)),
    "eigenvalues of what is not square": lambda t: t.linalg.eigh(t.zeros(3, 4)),
}
MIXED: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "matmul": lambda t, a, b, i: a @ b,
    "addmm": lambda t, a, b, i: t.addmm(b, a, a),
    "linear": lambda t, a, b, i: t.nn.functional.linear(a, a, b[0]),
    "einsum": lambda t, a, b, i: t.einsum("ij,jk", a, b),
    "lerp": lambda t, a, b, i: a.lerp(b, 0.5),
    "scatter": lambda t, a, b, i: a.scatter(0, i, b),
    "scatter_add": lambda t, a, b, i: a.scatter_add(0, i, b),
    "index_add": lambda t, a, b, i: a.index_add(0, i[0], b),
    "index_copy": lambda t, a, b, i: a.index_copy(0, i[0], b),
    "masked_scatter": lambda t, a, b, i: a.masked_scatter(a > 0, b),
    "cross": lambda t, a, b, i: t.cross(t.ones(3), t.ones(3).double(), dim=0),
    "layer_norm": lambda t, a, b, i: t.nn.functional.layer_norm(a, (2,), b[0]),
    "group_norm": lambda t, a, b, i: t.nn.functional.group_norm(a, 1, b[0]),
    "solve": lambda t, a, b, i: t.linalg.solve(t.eye(2), b),
    "prelu": lambda t, a, b, i: t.nn.functional.prelu(a, b[0]),
    "binary_cross_entropy": lambda t, a, b, i: t.nn.functional.binary_cross_entropy(a, b),
    "nll_loss": lambda t, a, b, i: t.nn.functional.nll_loss(a, i[0], weight=b[0]),
    "grad": lambda t, a, b, i: setattr(a.clone().requires_grad_(), "grad", b),
}
COMPLEX: dict[str, Callable[[Any, Any], Any]] = {
    "floor_divide": lambda t, z: z // 2,
    "remainder": lambda t, z: z % 2,
    "fmod": lambda t, z: z.fmod(z),
    "atan2": lambda t, z: t.atan2(z, z),
    "maximum": lambda t, z: t.maximum(z, z),
    "max": lambda t, z: z.max(),
    "argmax": lambda t, z: z.argmax(),
    "median": lambda t, z: z.median(),
    "softmax": lambda t, z: z.softmax(0),
    "clamp": lambda t, z: z.clamp(min=0),
}
SINGULAR: dict[str, Callable[[Any], Any]] = {
    "inv": lambda t: t.linalg.inv(t.zeros(2, 2)),
    "solve": lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2)),
    "cholesky": lambda t: t.linalg.cholesky(-t.eye(2)),
}


RIGHT: dict[str, Callable[[Any], Any]] = {
    "power of integers": lambda t: [t.tensor([2, 3]) ** 2, t.tensor([2]) ** -1.0],
    "powers of integers": lambda t: t.tensor([2, 1, -1, -1, 3]) ** t.tensor([-1, -2, -3, -2, 2]),
    "power of a number": lambda t: 2 ** t.tensor([-1, 3]),
    "quotients of integers": lambda t: [t.tensor([-7]) // 2, t.tensor([-7]) % 2, t.tensor([-7]).fmod(2)],
    "no quotients": lambda t: [t.ones(0).long() // 0, t.ones(0).long() % 0],
    "quotients of numbers by 0": lambda t: [t.tensor([2.0]) // 0, t.tensor([2]) / 0],
    "extremes": lambda t: [t.ones(1).max(), t.ones(1, 3).amin(0), t.ones(2).argmax(), t.ones(0, 3).argmax(1)],
    "vmap": lambda t: [
        t.func.vmap(lambda x: x * 2, in_dims=-1)(t.ones(2, 3)),
        t.func.vmap(lambda x, y: x * y, in_dims=(0, None))(t.ones(2), 3),
    ],
}


def _raised(call: Callable[[Any], Any], framework: Any) -> type[BaseException]:
    with pytest.raises(Exception) as caught:
        call(framework)
    return caught.type


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_raises_the_class_of_error_that_torch_raises(name: str) -> None:
    assert _raised(MISTAKES[name], engine) is _raised(MISTAKES[name], torch)


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_no_mistake_gives_what_torch_gives(name: str) -> None:
    def listed(framework: Any) -> Any:
        result = RIGHT[name](framework)
        return [entry.tolist() for entry in (result if isinstance(result, list) else [result])]

    assert str(listed(engine)) == str(listed(torch))


@pytest.mark.parametrize("name", SINGULAR)
def test_what_cannot_be_factored_raises_a_runtime_error_as_in_torch(name: str) -> None:
    assert _raised(SINGULAR[name], torch) is torch.linalg.LinAlgError
    assert _raised(SINGULAR[name], engine) is engine.linalg.LinAlgError
    assert issubclass(engine.linalg.LinAlgError, RuntimeError)
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize("name", MIXED)
def test_mixed_element_types_are_refused_where_torch_refuses_them(name: str) -> None:
    def call(framework: Any) -> Any:
        a = framework.ones(2, 2)
        return MIXED[name](framework, a, a.double(), framework.zeros(2, 2).long())

    assert _raised(call, torch) is RuntimeError
    assert _raised(call, engine) is RuntimeError


@pytest.mark.parametrize("name", COMPLEX)
def test_what_has_no_meaning_for_complex_numbers_is_refused_as_in_torch(name: str) -> None:
    def call(framework: Any) -> Any:
        return COMPLEX[name](framework, framework.ones(2, dtype=framework.complex64))

    assert _raised(call, engine) is _raised(call, torch)


def test_losses_refuse_what_torch_refuses() -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda t: t.nn.functional.binary_cross_entropy(t.ones(2) * 5, t.ones(2)),
        lambda t: t.nn.functional.binary_cross_entropy(t.ones(2), t.ones(3)),
        lambda t: t.nn.functional.nll_loss(t.ones(2, 2), t.ones(2)),
        lambda t: t.norm(t.ones(2).long()),
        lambda t: t.randint(1, 2, 3, 4, 5),
    ]
    for call in calls:
        assert _raised(call, engine) is _raised(call, torch)
