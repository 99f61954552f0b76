"""Programs on what nodes save, on files, and on names of earlier versions."""

from __future__ import annotations

import functools
import io
import pickle
from typing import Any

import numpy as np
import pytest

from tests.programs.semantics.table import case, caught, leaf, plain


@case
def hooks_on_what_one_node_has_saved(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x**2
    y.grad_fn._raw_saved_self.register_hooks(lambda kept: kept * 4, lambda packed: packed / 2)
    again = caught(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda a: a, lambda a: a))
    y.sum().backward()
    freed = caught(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda a: a, lambda a: a), words=False)

    def writing(kept: Any) -> Any:
        kept += 1
        return kept

    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda kept: kept.numpy(), t.from_numpy)
    (second,) = t.autograd.grad(t.autograd.grad(z.sum(), x, create_graph=True)[0].sum(), x)
    w = (x * 1) ** 2
    return [
        plain(x.grad),
        again,
        freed,
        plain(second),
        caught(lambda: w.grad_fn._raw_saved_self.register_hooks(writing, lambda packed: packed)),
    ]


@case
def hooks_on_saved_tensors_refused(t: Any) -> Any:
    graph = t.autograd.graph

    def enter() -> Any:
        with graph.saved_tensors_hooks(lambda kept: kept, lambda packed: packed):
            return "entered"

    with graph.disable_saved_tensors_hooks("none here"):
        refused = caught(enter)
    return [refused, caught(enter)]


@case
def mutation_of_saved_tensors_allowed(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = y**2
        y.sin_()
        z.sum().backward()
    return plain(x.grad)


@case
def old_names_of_functions(t: Any) -> Any:
    class Square(t.autograd.function.InplaceFunction):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        @t.amp.custom_fwd(device_type="cpu")
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @t.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_variables[0]

    x = leaf(t, 1.0, 2.0)
    return [plain(Square.apply(x)), plain(list(t.autograd.grad(Square.apply(x).sum(), x)))]


@case
def constructors_of_old(t: Any) -> Any:
    x = t.DoubleTensor([1.0, 2.0])
    made = [x, x.new([3]), x.new(np.ones(2)), t.LongTensor([1, 2]), t.ByteTensor([1]), t.FloatTensor(np.ones(1))]
    kinds = [isinstance(x, t.DoubleTensor), isinstance(x, t.FloatTensor), isinstance(x, t.Tensor)]
    return [plain(made), [str(entry.dtype) for entry in made], kinds, list(x.new(2, 3).shape), x.new().numel()]


@case
def limits_of_types(t: Any) -> Any:
    real = [t.finfo(kind) for kind in (t.float16, t.float32, t.float64, t.complex64)]
    whole = [t.iinfo(kind) for kind in (t.int8, t.uint8, t.int64)]
    return [
        [[f.eps, f.max, f.min, f.tiny, f.bits, f.dtype, f.resolution] for f in real],
        [[i.max, i.min, i.bits, i.dtype] for i in whole],
        caught(lambda: t.finfo(t.int32), words=False),
        caught(lambda: t.iinfo(t.float32), words=False),
    ]


@case
def saved_to_a_file(t: Any) -> Any:
    file = io.BytesIO()
    layer = t.nn.Linear(2, 1).double()
    with t.no_grad():
        layer.weight.fill_(2.0)
        layer.bias.zero_()
    t.save({"layer": layer.state_dict(), "x": leaf(t, 1.0), "parameter": layer.weight, "number": 3}, file)
    file.seek(0)
    read = t.load(file)
    with pytest.raises(pickle.UnpicklingError):
        t.load(_file_of(t, layer))
    whole = t.load(_file_of(t, layer), weights_only=False)
    return [
        plain(dict(read["layer"])),
        plain(read["x"]),
        read["x"].requires_grad,
        type(read["parameter"]).__name__,
        read["number"],
        plain(whole(t.ones(1, 2, dtype=t.float64))),
    ]


def _file_of(t: Any, thing: Any) -> Any:
    file = io.BytesIO()
    t.save(thing, file)
    file.seek(0)
    return file


@case
def derivatives_of_functions_by_their_options(t: Any) -> Any:
    functional = t.autograd.functional

    def f(x: Any) -> Any:
        return x.exp().sum(0)

    x = t.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=t.float64)
    return [
        plain(functional.jacobian(f, x, vectorize=True, strategy="forward-mode")),
        plain(functional.hessian(lambda z: z.exp().sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode")),
        caught(lambda: functional.jacobian(f, x, strategy="forward-mode"), words=False),
        caught(lambda: functional.jacobian(f, x, strategy="sideways"), words=False),
        caught(lambda: functional.vjp(f, x)),
        caught(lambda: functional.jvp(f, x)),
        caught(lambda: functional.hvp(lambda z: z.sum(), x)),
    ]


@case
def reshaped_in_place(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = (x * 2).unsqueeze_(0)
    z = y.t_().mul_(3)
    y.sum().backward()
    view = t.zeros(2, 3, dtype=t.float64)
    part = view[:, 1:]
    part.transpose_(0, 1)
    part.add_(1)
    return [z is y, list(y.shape), plain(y), plain(x.grad), plain(view), list(part.shape), caught(lambda: x.t_())]


@case
def printed_by_a_profile(t: Any) -> Any:
    x = t.arange(30.0) / 7
    t.set_printoptions(profile="short")
    short = repr(x[:4])
    t.set_printoptions(profile="full")
    full = repr(x)
    t.set_printoptions(profile="default")
    return [short, full, repr(x[:4])]


@case
def found_places(t: Any) -> Any:
    x = t.tensor([[3.0, 1.0, 3.0], [float("nan"), 2.0, 0.0]])
    whole = t.tensor([4, 4, 2, 2, 2, 4])
    return [
        plain([whole.mode()[0], whole.mode()[1]]),
        plain(x[:1].mode(1)[1]),
        plain(x.nanmedian()),
        plain(x.nanmedian(1)[0]),
        plain(list(t.unique_consecutive(whole, return_inverse=True, return_counts=True))),
        plain(t.isin(whole, t.tensor([2, 9]))),
        plain(t.argwhere(whole > 2)),
        plain(list(whole.nonzero(as_tuple=True))),
        plain([*t.hsplit(x, [1]), *t.vsplit(x, 2), t.vander(x[0])]),
        plain([whole << 1, whole >> 1, t.gcd(whole, whole * 3), t.lcm(whole, whole + 1)]),
        plain(t.combinations(whole[:3])),
        plain(
            t.searchsorted(t.tensor([[1.0, 2.0], [0.0, 5.0]]), t.tensor([[2.0, 0.0, 3.0], [2.0, 5.0, 9.0]]), right=True)
        ),
        plain(t.histc(x[:1], 3)),
        plain(x.cumsum(1, dtype=t.float64)[0]),
        plain([t.isreal(whole), t.signbit(-whole), t.isposinf(1 / (x * 0)), t.isneginf(x.log())]),
    ]


@case
def written_to_out(t: Any) -> Any:
    x = t.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=t.float64)
    tracked = x.clone().requires_grad_()
    product, empty, whole = t.zeros(2, 2, dtype=t.float64), t.empty(0, dtype=t.float64), t.zeros(2, 2).long()
    returned = t.matmul(x, x.T, out=product) is product
    t.mul(x, 3, out=empty)
    values, places = t.zeros(2, dtype=t.float64), t.zeros(2).long()
    t.max(x, 1, out=(values, places))
    half = t.zeros(2, 2)
    t.exp(x, out=half)
    with t.no_grad():
        t.sin(tracked, out=product[0:2])
    return [
        returned,
        plain([product, empty, values, places, half]),
        str(half.dtype),
        caught(lambda: t.exp(tracked, out=product)),
        caught(lambda: t.exp(x, out=product.clone().requires_grad_())),
        caught(lambda: t.exp(x, out=whole)),
        caught(lambda: t.exp(x, out=3), words=False),
    ]


@case
def functions_of_what_is_no_tensor(t: Any) -> Any:
    functions = (t.exp, t.sum, t.relu, t.linalg.inv, t.linalg.norm)
    values = (3.0, "a", [1.0], np.ones(2), None)
    calls = [functools.partial(function, value) for function in functions for value in values]
    calls += [functools.partial(t.cat, ["a", "b"]), functools.partial(t.stack, [np.ones(2)])]
    return [caught(call, words=False) for call in calls]
