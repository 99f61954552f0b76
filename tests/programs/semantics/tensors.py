"""Programs on tensors: types, factories, names, copies, errors of operations, printing."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np

from tests.programs.semantics.table import case, caught, leaf, name, plain

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@case
def promotion_of_tensors(t: Any) -> Any:
    table = {}
    for first in DTYPES:
        for second in DTYPES:
            for shapes in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
                x = t.ones(shapes[0], dtype=getattr(t, first))
                y = t.ones(shapes[1], dtype=getattr(t, second))
                if {first, second} & {"float16"} and {first, second} & {"complex64", "complex128"}:
                    continue  # NumPy has no half precision complex numbers
                table[f"{first} {second} {shapes}"] = str((x * y).dtype)
    return table


@case
def promotion_of_numbers(t: Any) -> Any:
    table = {}
    for first in DTYPES:
        for shape in ((2,), ()):
            for number in (True, 2, 2.5, 1j)[: 3 if first == "float16" else 4]:
                x = t.ones(shape, dtype=getattr(t, first))
                table[f"{first} {shape} {number}"] = [str((x * number).dtype), str((number + x).dtype)]
            x = t.ones(shape, dtype=getattr(t, first))
            table[f"{first} {shape} div"] = str((x / 2).dtype)
            table[f"{first} {shape} sum"] = [str(x.sum().dtype), str((x == 1).dtype), str((x**2).dtype)]
    return table


@case
def integers_and_floats(t: Any) -> Any:
    i = t.tensor([7, -7, 3])
    results = [i // 2, i % 3, i / 2, i**2, -i, i.float().mean(), i.sum(), i.prod(), i.cumsum(0), i.exp(), i.sqrt()]
    return [[str(entry.dtype), entry.tolist()] for entry in results[:9]] + [str(entry.dtype) for entry in results[9:]]


@case
def factories(t: Any) -> Any:
    made = [
        t.zeros(2, 3),
        t.ones((2,)),
        t.full((2,), 3),
        t.full((2,), 3.5),
        t.full((1,), True),
        t.arange(3),
        t.arange(1, 2, 0.25),
        t.arange(5, 1, -2),
        t.linspace(0, 1, 5),
        t.eye(2, 3),
        t.tensor(1),
        t.tensor([1, 2.5]),
        t.tensor(True),
        t.tensor([]),
        t.tensor(1j),
        t.tensor([[1], [2]]),
        t.zeros_like(t.ones(2, dtype=t.int32)),
        t.ones_like(t.zeros(1), dtype=t.float64),
        t.zeros(()),
        t.tensor(np.float64(2.0)),
        t.tensor(np.array([1, 2], dtype=np.int32)),
        t.as_tensor([1.0]),
        t.from_numpy(np.ones(2)),
        t.zeros(3, dtype=t.bool),
        t.ones(2).new_zeros(3),
        t.ones(2, dtype=t.int64).new_tensor([1.5]),
    ]
    return [[str(entry.dtype), list(entry.shape), entry.tolist()] for entry in made]


@case
def numpy_style_names(t: Any) -> Any:
    x = t.arange(6.0).reshape(2, 3)
    return plain(
        [
            x.sum(axis=0),
            x.mean(axis=1, keepdims=True),
            t.sum(x, axis=1),
            x.max(axis=1)[0],
            t.cat([x, x], axis=1),
            x.std(axis=0),
        ]
    )


@case
def attributes(t: Any) -> Any:
    x = t.zeros(2, 3, 4)
    return [
        x.ndim,
        x.dim(),
        x.numel(),
        x.nelement(),
        list(x.size()),
        x.size(1),
        x.size(-1),
        list(x.stride()),
        x.is_contiguous(),
        x.transpose(0, 1).is_contiguous(),
        x.element_size(),
        x[1].storage_offset(),
        str(x.device),
        len(x),
        x.is_floating_point(),
        x.is_complex(),
        x.type(),
        x.long().type(),
        repr(x.shape),
        x.shape.numel(),
        x.view(-1).shape[0],
        bool(x.data_ptr() == x.view(-1).data_ptr()),
        x.is_leaf,
        x.requires_grad,
        x.grad_fn,
        x.output_nr,
    ]


@case
def copies(t: Any) -> Any:
    x = leaf(t, 1, 2)
    x.tag = "kept"
    (x * 2).sum().backward()
    deep = copy.deepcopy(x)
    shallow = x.clone()
    back = pickle.loads(pickle.dumps(x))
    return [
        plain(deep),
        deep.requires_grad,
        plain(deep.grad),
        deep is x,
        name(shallow),
        plain(back),
        back.requires_grad,
        caught(lambda: copy.deepcopy(x * 2), words=False),
    ]


@case
def complex_gradients(t: Any) -> Any:
    z = t.tensor([1 + 2j, -0.5 + 1j], dtype=t.complex128, requires_grad=True)
    w = t.tensor([2 - 1j, 3 + 0.5j], dtype=t.complex128, requires_grad=True)
    x = leaf(t, 1.5, -2)
    out = []
    functions = [
        lambda: (z * w).abs().sum(),
        lambda: (z * z.conj()).real.sum(),
        lambda: (z / w).imag.sum(),
        lambda: (z.exp() * w).real.sum(),
        lambda: (z * x).abs().sum(),
        lambda: (z**2).real.sum(),
        lambda: (z - w).angle().sum(),
        lambda: t.view_as_real(z * w).sum(),
        lambda: z.sin().real.sum() + w.log().imag.sum(),
        lambda: (z.reshape(1, 2) @ w.reshape(2, 1)).abs().sum(),
        lambda: (z * 2j + 1).abs().pow(2).sum(),
        lambda: z.sgn().real.sum(),
        lambda: t.complex(x, x * 2).abs().sum(),
        lambda: z.mean().real,
        lambda: z.norm() + w.abs().sum(),
        lambda: z.sqrt().real.sum(),
        lambda: z.tanh().imag.sum(),
        lambda: z.prod().real,
        lambda: z.cumsum(0).abs().sum(),
        lambda: z.reciprocal().real.sum(),
        lambda: (z**w).real.sum(),
    ]
    for function in functions:
        grads = t.autograd.grad(function(), [z, w, x], allow_unused=True)
        out.append(
            [[[e.real, e.imag] for e in g.tolist()] if g is not None and g.is_complex() else plain(g) for g in grads]
        )
    return [out, caught(lambda: z.sum().backward()), caught(lambda: z > w, words=False)]


@case
def errors_of_operations(t: Any) -> Any:
    a, b = t.ones(2, 3), t.ones(2, 2)
    return [
        caught(lambda: a.mm(a)),
        caught(lambda: a @ b),
        caught(lambda: a + t.ones(4), words=False),
        caught(lambda: a.view(4)),
        caught(lambda: a.t().view(6)),
        caught(lambda: a.sum(5)),
        caught(lambda: a[5]),
        caught(lambda: a[0, 0, 0]),
        caught(lambda: t.ones(2).long().mean(), words=False),
        caught(lambda: a.expand(3, 3)),
        caught(lambda: a.squeeze(7)),
        caught(lambda: t.cat([])),
        caught(lambda: t.cat([a, b]), words=False),
        caught(lambda: t.stack([a, b])),
        caught(lambda: a.item()),
        caught(lambda: t.tensor(["x"]), words=False),
        caught(lambda: a.add("x"), words=False),
        caught(lambda: a + "x", words=False),
        caught(lambda: a.clamp(), words=False),
        caught(lambda: a[t.tensor(1.5)], words=False),
        caught(lambda: a.permute(0), words=False),
        caught(lambda: t.tensor([True]) - t.tensor([True])),
        caught(lambda: a.t().t().unsqueeze(0).t()),
        caught(lambda: a.dot(a), words=False),
        caught(lambda: t.where(a, a, a), words=False),
        caught(lambda: a[a > 5].tolist()),
        caught(lambda: t.tensor([[1, 2], [3]]), words=False),
        caught(lambda: a.reshape(-1, 4)),
        None,
        caught(lambda: a[::-1]),
        caught(lambda: a.split([1, 2])),
    ]


@case
def results_with_names(t: Any) -> Any:
    x = t.tensor([[2.0, 1.0]])
    return [
        repr(x.max(1)),
        repr(x.sort()),
        repr(x.topk(1)),
        repr(x.min(0)),
        plain(x.median(1)),
        f"{t.tensor(1.5, requires_grad=True)}",
        caught(lambda: t.ones(2, dtype=t.float64) @ t.ones(2)),
        caught(lambda: t.ones(2, 2, dtype=t.float64).mm(t.ones(2, 2))),
        caught(lambda: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0, 3]))),
        caught(lambda: t.arange(3).requires_grad_()),
    ]


@case
def printing(t: Any) -> Any:
    x = t.ones(2, 2, requires_grad=True)
    return [
        repr(x),
        repr(x * 2),
        repr((x * 2).detach()),
        str(x.sum()),
        f"{x.sum().item():.3f}",
        repr(t.tensor([1 + 2j])),
        repr(t.zeros(0, 3)),
        repr(t.tensor([1e-8, 1.0])),
        repr(t.ones(3, dtype=t.int32)),
        repr(t.nn.Parameter(t.zeros(1))),
        repr(t.nn.Conv2d(1, 2, 3, padding=1)),
        repr(t.nn.Sequential(t.nn.Dropout(0.1), t.nn.BatchNorm1d(3))),
        repr(t.float64),
        repr(t.Size([1, 2])),
        str(t.device("cpu")),
        repr(t.device("cpu")),
        repr(t.nn.CrossEntropyLoss()),
        repr(t.nn.Embedding(3, 4)),
        repr(t.nn.LayerNorm(3)),
        f"{t.tensor(1.5)}",
        f"{t.tensor([1.5])}",
        repr(t.tensor(2, dtype=t.uint8)),
        repr(x.sum(0)),
        repr(t.nn.LeakyReLU(0.2)),
        repr(t.nn.Flatten()),
        repr(t.nn.MaxPool2d(2)),
    ]
