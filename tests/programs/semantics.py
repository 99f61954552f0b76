"""Small programs about autograd's behaviour; each returns plain data, so that two frameworks can be compared."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

CASES: dict[str, Callable[[Any], Any]] = {}


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a program to the table."""
    CASES[function.__name__] = function
    return function


def plain(value: Any) -> Any:
    """Return tensors as lists, and containers of them likewise."""
    if isinstance(value, (tuple, list)):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (bool, int, float, complex, str)) or value is None:
        return value
    return value.detach().tolist()


def caught(function: Callable[[], Any], words: bool = True) -> Any:
    """Return what a call returns, or the class and first line of what it raises."""
    try:
        return ["returned", plain(function())]
    except Exception as error:
        line = str(error).split("\n")[0].strip()
        return [type(error).__name__, line] if words else [type(error).__name__]


def name(tensor: Any) -> str | None:
    """Return the class of a tensor's node."""
    return None if tensor.grad_fn is None else type(tensor.grad_fn).__name__


def chain(node: Any) -> Any:
    """Return the graph below a node."""
    if node is None:
        return None
    return [type(node).__name__, [[chain(child), index] for child, index in node.next_functions]]


def leaf(t: Any, *values: float) -> Any:
    """Return a tracked float64 vector."""
    return t.tensor(list(values), dtype=t.float64, requires_grad=True)


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
def backward_twice(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = (x * x).sum()
    y.backward()
    again = caught(y.backward)
    z = (x + x).sum()
    z.backward()
    z.backward()
    w = (x * x).sum()
    w.backward(retain_graph=True)
    w.backward()
    return [again, plain(x.grad), caught(w.backward)]


@case
def saved_tensors_freed(t: Any) -> Any:
    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (_,) = ctx.saved_tensors
            return g * 2

    x = leaf(t, 1)
    y = Twice.apply(x)
    y.backward()
    return [caught(y.backward), caught(lambda: y.grad_fn.saved_tensors)]


@case
def changed_in_place(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 1
    z = y * y
    y.add_(1)
    first = caught(lambda: z.sum().backward())
    e = x.exp()
    e.mul_(2)
    second = caught(lambda: e.sum().backward())
    s = x + 1
    s.add_(1)
    s.sum().backward()
    m = x * 1
    n = m.sin()
    m.data.zero_()
    n.sum().backward()
    return [first, second, plain(x.grad)]


@case
def in_place_graphs(t: Any) -> Any:
    x = leaf(t, 1, 2)
    out = []
    for op in ("add_", "mul_", "sub_", "div_", "pow_"):
        y = x * 1
        getattr(y, op)(3)
        x.grad = None
        y.sum().backward()
        out.append([op, name(y), plain(y), plain(x.grad), y._version])
    for op in ("exp_", "sqrt_", "zero_", "neg_", "relu_", "sigmoid_", "tanh_", "abs_", "reciprocal_", "log_"):
        y = x * 1
        getattr(y, op)()
        x.grad = None
        y.sum().backward()
        out.append([op, name(y), plain(y), plain(x.grad), y._version])
    y = x * 1
    y.mul_(y)
    out.append([name(y), caught(y.sum().backward, words=False)])
    y = x * 1
    y.clamp_(0, 1.5).fill_(3)
    y.copy_(x * 5)
    x.grad = None
    y.sum().backward()
    out.append([name(y), plain(x.grad), y._version])
    y = x * 1
    y.masked_fill_(y > 1.5, 0.0)
    x.grad = None
    y.sum().backward()
    out.append([name(y), plain(x.grad)])
    return out


@case
def in_place_on_views(t: Any) -> Any:
    x = t.arange(6, dtype=t.float64).reshape(2, 3).clone().requires_grad_()
    y = x * 1
    y[0].mul_(5)
    y[:, 1] += 10
    y.view(-1)[5] = 0
    y.t()[2].add_(x[0, 0])
    (y * y).sum().backward()
    v = (x * 1)[0]
    base = v._base
    v.mul_(2)
    z = t.zeros(3, dtype=t.float64)
    z[1:] = x[0, :2]
    w = t.zeros(2, 3, dtype=t.float64)
    part = w[0]
    w.add_(x)
    g = t.autograd.grad((z * z).sum() + (part * part).sum() + (base * base).sum(), x)
    return [plain(y), plain(x.grad), name(y), name(z), z.requires_grad, part.requires_grad, plain(g)]


@case
def in_place_errors(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 1

    def view_without_grad() -> Any:
        with t.no_grad():
            v = y[:1]
        return v.mul_(x[:1])

    return [
        caught(lambda: x.add_(1)),
        caught(lambda: x[0].add_(1)),
        caught(lambda: x.__setitem__(0, 1.0)),
        caught(lambda: x.view(-1).mul_(2)),
        caught(lambda: t.ones(2, dtype=t.int64).add_(1.5)),
        caught(lambda: t.ones(2).add_(t.ones(3, 2))),
        caught(lambda: t.ones(1).expand(3).add_(1), words=False),
        caught(view_without_grad),
        caught(lambda: t.zeros(2, dtype=t.int64).mul_(1j), words=False),
        caught(lambda: x.zero_()),
        caught(lambda: x.uniform_()),
        caught(lambda: x.data.fill_(3).tolist()),
    ]


@case
def versions(t: Any) -> Any:
    x = t.zeros(4)
    v, d, p = x[:2], x.detach(), x.data
    x.add_(1)
    v.mul_(2)
    d.sub_(1)
    p.add_(1)
    x[0] = 5
    x[x > 100] = 1
    x.copy_(t.ones(4))
    x.zero_()
    return [x._version, v._version, d._version, p._version, plain(x)]


@case
def views_and_bases(t: Any) -> Any:
    x = t.arange(6.0)
    v = x.view(2, 3)
    w = v[0]
    return [
        x._base is None,
        v._base is x,
        w._base is x,
        x.clone()._base is None,
        x.detach()._base is None,
        v.t()._base is x,
        x[[0, 1]]._base is None,
        x.reshape(3, 2)._base is x,
        v.t().reshape(6)._base is None,
        (x + 1)._base is None,
    ]


@case
def grad_arguments(t: Any) -> Any:
    x, y, z = leaf(t, 1, 2), leaf(t, 3, 4), leaf(t, 5)
    out = x * y
    g = t.autograd.grad
    return [
        plain(g(out.sum(), [x, y], retain_graph=True)),
        caught(lambda: g(out.sum(), z)),
        plain(g(out.sum(), [x, z], allow_unused=True, retain_graph=True)),
        plain(g(out.sum(), [x, z], materialize_grads=True, retain_graph=True)),
        caught(lambda: g(out, x)),
        plain(g(out, x, t.ones(2, dtype=t.float64), retain_graph=True)),
        plain(g([out.sum(), (out * 2).sum()], x, retain_graph=True)),
        plain(g([out, out], x, [t.ones(2, dtype=t.float64)] * 2, retain_graph=True)),
        caught(lambda: g(out.sum(), t.ones(2))),
        caught(lambda: g(t.ones(()), x)),
        plain(g(out, x, t.eye(2, dtype=t.float64), is_grads_batched=True)),
        caught(lambda: g(out.sum(), [], retain_graph=True), words=False),
        x.grad is None,
    ]


@case
def grad_by_intermediate(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 3
    z = y * y
    seen = []
    y.register_hook(lambda g: seen.append(plain(g)))
    first = t.autograd.grad(z.sum(), y, retain_graph=True)
    second = t.autograd.grad(z.sum(), [y, x], retain_graph=True)
    x.register_hook(lambda g: g * 10)
    third = t.autograd.grad(z.sum(), x)
    return [plain(first), plain(second), plain(third), seen, x.grad is None]


@case
def backward_with_inputs(t: Any) -> Any:
    x, w = leaf(t, 1, 2), leaf(t, 3, 4)
    y = x * w
    y.sum().backward(inputs=[x], retain_graph=True)
    first = [plain(x.grad), w.grad is None]
    y.sum().backward(inputs=w)
    return [first, plain(w.grad), caught(lambda: (x * 1).sum().backward(inputs=[]))]


@case
def create_graph_in_backward(t: Any) -> Any:
    x = leaf(t, 2)
    (x**3).backward(create_graph=True)
    g = x.grad
    g.backward()
    return [plain(g), plain(x.grad), g.requires_grad]


@case
def accumulation(t: Any) -> Any:
    x = leaf(t, 1, 2)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    seed = t.ones(2, dtype=t.float64)
    y = leaf(t, 1, 2)
    (y + 0).backward(seed)
    seed.zero_()
    return [x.grad is first, plain(first), plain(y.grad)]


@case
def setting_grad(t: Any) -> Any:
    x = leaf(t, 1, 2)
    x.grad = t.ones(2, dtype=t.float64)
    (x * 2).sum().backward()
    first = plain(x.grad)
    x.grad = None
    return [
        first,
        caught(lambda: setattr(x, "grad", t.ones(3, dtype=t.float64)), words=False),
        caught(lambda: setattr(x, "grad", 3), words=False),
    ]


@case
def hooks_on_tensors(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    handle = y.register_hook(lambda g: log.append(["y", plain(g)]))
    x.register_hook(lambda g: log.append(["x", plain(g)]))
    x.register_post_accumulate_grad_hook(lambda p: log.append(["post", plain(p.grad)]))
    y.sum().backward(retain_graph=True)
    handle.remove()
    handle.remove()
    y.sum().backward()
    with y.register_hook(lambda g: g):
        inside = len(y._backward_hooks)
    return [
        log,
        plain(y.grad),
        plain(x.grad),
        inside,
        len(y._backward_hooks),
        type(x._backward_hooks).__name__,
        x._post_accumulate_grad_hooks is not None,
        t.ones(1)._backward_hooks,
        caught(lambda: y.register_post_accumulate_grad_hook(lambda p: None)),
    ]


@case
def hooks_replaced_in_their_dict(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.register_hook(lambda g: log.append("original"))
    for hooks in (y._backward_hooks,):
        for key in list(hooks):
            hooks[key] = lambda g: log.append("replaced")
    y.sum().backward()
    return log


@case
def hooks_on_nodes(t: Any) -> Any:
    log: list[Any] = []
    x, w = leaf(t, 1, 2), leaf(t, 3, 4)
    y = x * w
    y.grad_fn.register_prehook(lambda gs: log.append(["pre", plain(gs)]))
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 2,))
    y.grad_fn.register_hook(lambda gi, go: log.append(["post", plain(gi), plain(go)]))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    y.sum().backward()
    first = [plain(x.grad), plain(w.grad)]
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: log.append(["leaf", len(gi), plain(go)]))
    (x * 2).sum().backward()
    y = x * w
    y.grad_fn.register_hook(lambda gi, go: (gi[0],))
    return [log, first, caught(lambda: y.sum().backward())]


@case
def hooks_and_in_place(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)
    y = x * 2
    y.register_hook(lambda g: log.append(["before", plain(g)]))
    y.mul_(3)
    y.register_hook(lambda g: log.append(["after", plain(g)]))
    y.retain_grad()
    (y * 5).sum().backward()
    return [log, plain(y.grad), plain(x.grad)]


@case
def multi_grad_hooks(t: Any) -> Any:
    log: list[Any] = []
    a, b, c = leaf(t, 1), leaf(t, 2), leaf(t, 3)
    t.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append(plain(gs)))
    (a * b).backward()
    handle = t.autograd.graph.register_multi_grad_hook((a, b, c), lambda g: log.append(["any", plain(g)]), mode="any")
    (a * b * c).backward()
    handle.remove()
    return log


@case
def saved_tensor_hooks(t: Any) -> Any:
    log: list[Any] = []
    x = leaf(t, 1, 2)

    def pack(tensor: Any) -> Any:
        log.append(["pack", plain(tensor)])
        return tensor.tolist()

    def unpack(packed: Any) -> Any:
        log.append(["unpack", packed])
        return t.tensor(packed, dtype=t.float64)

    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    y.sum().backward()
    return [sorted(map(str, log)), plain(x.grad)]


@case
def node_attributes(t: Any) -> Any:
    x = leaf(t, 4, 9)
    y = x**3
    z = x.exp()
    return [
        plain(y.grad_fn._saved_self),
        y.grad_fn._saved_exponent,
        plain(z.grad_fn._saved_result),
        y.grad_fn.requires_grad,
        isinstance(y.grad_fn, t.autograd.graph.Node),
        plain(y.grad_fn(t.ones(2, dtype=t.float64))),
        caught(lambda: y.grad_fn.nothing),
        list(y.grad_fn.metadata),
        isinstance(y.grad_fn._sequence_nr(), int),
        y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr(),
    ]


@case
def anomaly_mode(t: Any) -> Any:
    x = leaf(t, -1.0, 4.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with t.autograd.detect_anomaly(check_nan=True):
            y = x.sqrt()
            frames = y.grad_fn.metadata["traceback_"]
            result = caught(lambda: (y * 0).sum().backward())
    last = frames[-1].strip().split("\n")[-1].strip()
    outside = x.sqrt().grad_fn.metadata
    return [
        result,
        last,
        [w.category.__name__ for w in seen if "traceback of forward" in str(w.message).lower()],
        dict(outside),
    ]


@case
def functions_with_contexts(t: Any) -> Any:
    class Scale(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, k: Any, extra: Any = 1) -> Any:
            ctx.k = k
            ctx.extra = extra
            return x * k * extra

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.k * ctx.extra, None, None

    x = leaf(t, 1, 2)
    y = Scale.apply(x, extra=2, k=3)
    y.sum().backward()
    node = y.grad_fn
    raw = node.apply(t.ones(2, dtype=t.float64))
    return [
        plain(y),
        plain(x.grad),
        type(node).__name__,
        node._forward_cls is Scale,
        plain(raw),
        list(node.needs_input_grad),
        node.k,
        node.name(),
        isinstance(node, t.autograd.graph.Node),
        callable(node.register_hook),
        caught(lambda: Scale.apply(x, nothing=2, k=1)),
        caught(lambda: Scale.apply(x, extra=1)),
        caught(lambda: Scale.apply(x, 1, k=1), words=False),
    ]


@case
def needs_input_grad_forms(t: Any) -> Any:
    log: list[Any] = []

    class Look(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
            log.append(list(ctx.needs_input_grad))
            return a * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            log.append(list(ctx.needs_input_grad))
            return g, None, None

    x = leaf(t, 1)
    Look.apply(x, x.detach(), "text").backward()
    with t.no_grad():
        Look.apply(x, 1, None)
    Look.apply(x.detach(), 1, None)
    return log


@case
def mark_dirty_forms(t: Any) -> Any:
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            a.mul_(2)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leaf(t, 1, 2)
    leaf_error = caught(lambda: Double.apply(leaf(t, 1, 2)))
    y = x * 1
    out = Double.apply(y)
    (out * y).sum().backward()
    plain_tensor = t.ones(2)
    result = Double.apply(plain_tensor)
    return [leaf_error, out is y, plain(x.grad), name(y), result is plain_tensor, plain(result), result.requires_grad]


@case
def outputs_of_functions(t: Any) -> Any:
    class Several(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a, a * 2, None, "text", a.detach(), a.view(-1)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            return gs[0] + gs[1] * 2 + gs[4] + gs[5]

    x = leaf(t, 1, 2)
    out = Several.apply(x)
    total = out[0].sum() + out[1].sum() + out[5].sum()
    total.backward()
    return [
        [type(entry).__name__ for entry in out],
        [None if isinstance(e, str) or e is None else e.requires_grad for e in out],
        plain(x.grad),
        out[0] is x,
        [e.output_nr for e in (out[0], out[1], out[5])],
    ]


@case
def non_tensor_gradients(t: Any) -> Any:
    def function(returns: Any) -> Any:
        class Gives(t.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                return a * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return returns(g)

        return Gives

    def run(returns: Any) -> Any:
        x = leaf(t, 1, 2)
        got = caught(lambda: function(returns).apply(x).sum().backward())
        return [got, plain(x.grad), None if x.grad is None else str(x.grad.dtype)]

    return [
        run(lambda g: 5),
        run(lambda g: [g]),
        run(lambda g: (g,)),
        run(lambda g: None),
        run(lambda g: g.float()),
        run(lambda g: g.sum()),
        run(lambda g: g.expand(3, 2)),
        run(lambda g: g[:1]),
        run(lambda g: (g, None)),
        run(lambda g: ()),
        run(lambda g: g.long()),
        run(lambda g: t.ones(3, dtype=t.float64)),
        run(lambda g: g.to(t.complex128))[0][0],
    ]


@case
def once_differentiable(t: Any) -> Any:
    decorate = __import__(t.__name__ + ".autograd.function", fromlist=["x"]).once_differentiable

    class Once(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        @decorate
        def backward(ctx: Any, g: Any) -> Any:
            (a,) = ctx.saved_tensors
            return g * 2 * a

    x = leaf(t, 3)
    (g,) = t.autograd.grad(Once.apply(x), x, create_graph=True)
    (h,) = t.autograd.grad(Once.apply(x), x)
    return [plain(g), plain(h), g.requires_grad, caught(lambda: t.autograd.grad(g, x))]


@case
def setup_context_and_vjp(t: Any) -> Any:
    class New(t.autograd.Function):
        @staticmethod
        def forward(x: Any, k: Any) -> Any:
            return x * k, x + k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            x, k = inputs
            ctx.save_for_backward(x, output[0])
            ctx.k = k
            ctx.set_materialize_grads(False)

        @staticmethod
        def vjp(ctx: Any, g: Any, h: Any) -> Any:
            _x, _y = ctx.saved_tensors
            total = None if g is None else g * ctx.k
            if h is not None:
                total = h if total is None else total + h
            return total, None

    x = leaf(t, 1, 2)
    a, b = New.apply(x, 3)
    b.sum().backward()
    first = plain(x.grad)
    a, b = New.apply(x, 3)
    (a + b).sum().backward()
    return [first, plain(x.grad), name(a), name(b)]


@case
def saved_outputs_and_second_order(t: Any) -> Any:
    class Exp(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * y

    x = leaf(t, 0.5, 1.0)
    y = Exp.apply(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = t.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = t.autograd.grad(h.sum(), x)
    return [plain(y), plain(g), plain(h), plain(k)]


@case
def grad_modes(t: Any) -> Any:
    x = leaf(t, 1)
    out = []
    with t.no_grad():
        out.append((x * 2).requires_grad)
        with t.enable_grad():
            out.append((x * 2).requires_grad)
        out.append(t.is_grad_enabled())
    with t.set_grad_enabled(False):
        out.append((x * 2).requires_grad)
    t.set_grad_enabled(False)
    out.append(t.is_grad_enabled())
    t.set_grad_enabled(True)

    @t.no_grad()
    def quiet(v: Any) -> Any:
        return (v * 2).requires_grad

    @t.enable_grad()
    def loud(v: Any) -> Any:
        return (v * 2).requires_grad

    with t.no_grad():
        out.append(loud(x))
    out += [quiet(x), t.is_grad_enabled()]
    with t.inference_mode():
        out.append((x * 2).requires_grad)
    return out


@case
def flags(t: Any) -> Any:
    x = t.ones(2)
    x.requires_grad = True
    y = x * 2
    d = y.detach()
    return [
        x.is_leaf,
        y.is_leaf,
        d.is_leaf,
        d.requires_grad,
        caught(lambda: setattr(y, "requires_grad", False)),
        caught(lambda: y.requires_grad_(True).is_leaf),
        caught(lambda: t.ones(2).long().requires_grad_(), words=False),
        caught(lambda: y.detach_().requires_grad),
        y.is_leaf,
        caught(lambda: len(t.tensor(1.0))),
        caught(lambda: list(t.tensor(1.0))),
        caught(lambda: bool(t.ones(2))),
        caught(lambda: int(t.tensor(2.7))),
        caught(lambda: float(t.tensor(2.5))),
        caught(lambda: [1, 2, 3][t.tensor(1)]),
        caught(lambda: x.numpy()),
        caught(lambda: np.asarray(t.ones(2)).tolist()),
        caught(lambda: x.nothing),
        caught(lambda: 2.0 in t.tensor([1.0, 2.0])),
        caught(lambda: bool(t.tensor([]))),
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
def memory_is_freed(t: Any) -> Any:
    x = leaf(t, 1, 2)
    gc.collect()
    gc.disable()
    try:
        y = (x * x).exp()
        z = y.sum()
        node = weakref.ref(y)
        z.backward()
        del y, z
        return node() is None
    finally:
        gc.enable()


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
def modules(t: Any) -> Any:
    nn = t.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(2, 3)
            self.b = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))
            self.tied = self.a
            self.register_buffer("count", t.zeros(1), persistent=False)
            self.items = nn.ModuleList([nn.Tanh(), nn.Linear(1, 1)])
            self.scale = nn.ParameterList([nn.Parameter(t.ones(1))])

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x)) * self.scale[0]

    net = Net().double()
    with t.no_grad():
        for parameter in net.parameters():
            parameter.fill_(0.5)
    state = {key: list(value.shape) for key, value in net.state_dict().items()}
    net.eval()
    out = net(t.ones(1, 2, dtype=t.float64))
    net.apply(lambda m: setattr(m, "seen", True))
    wrong = caught(lambda: net.load_state_dict({"nothing": t.ones(1)}), words=False)
    net.load_state_dict({key: value * 2 for key, value in net.state_dict().items()})
    net.requires_grad_(False)
    return [
        repr(net),
        state,
        plain(out),
        [n for n, _ in net.named_modules()],
        [n for n, _ in net.named_children()],
        net.training,
        net.b.training,
        wrong,
        [n for n, _ in net.named_parameters()],
        plain(net.a.weight),
        any(p.requires_grad for p in net.parameters()),
        caught(lambda: net.missing),
        caught(lambda: nn.Module()(1), words=False),
        net.items[1].in_features,
        len(net.b),
        repr(net.b[0:1]),
        caught(lambda: net.register_parameter("a", None), words=False),
        caught(lambda: setattr(net, "b", 3)),
    ]


@case
def optimisers(t: Any) -> Any:
    results = {}
    start = [0.5, -1.5, 2.0]
    makers = {
        "sgd": lambda p: t.optim.SGD(p, lr=0.1),
        "momentum": lambda p: t.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
        "nesterov": lambda p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        "maximize": lambda p: t.optim.SGD(p, lr=0.01, maximize=True),
        "adam": lambda p: t.optim.Adam(p, lr=0.1, weight_decay=0.1),
        "amsgrad": lambda p: t.optim.Adam(p, lr=0.1, amsgrad=True),
        "adamw": lambda p: t.optim.AdamW(p, lr=0.1),
        "rmsprop": lambda p: t.optim.RMSprop(p, lr=0.05, momentum=0.5, centered=True),
        "groups": lambda p: t.optim.SGD([{"params": p, "lr": 0.05}], lr=1.0),
        "lbfgs": lambda p: t.optim.LBFGS(p, lr=0.5, max_iter=4),
    }
    for label, make in makers.items():
        x = leaf(t, *start)
        optimiser = make([x])

        def closure(x: Any = x, optimiser: Any = optimiser) -> Any:
            optimiser.zero_grad()
            loss = (x**4).sum() + (x[0] * x[1]) ** 2
            loss.backward()
            return loss

        for _ in range(5):
            optimiser.step(closure)
        results[label] = plain(x)
    return [
        results,
        caught(lambda: t.optim.SGD([], lr=0.1)),
        caught(lambda: t.optim.SGD(leaf(t, 1), lr=0.1), words=False),
        caught(lambda: t.optim.SGD([leaf(t, 1) * 2], lr=0.1)),
        caught(lambda: t.optim.SGD([leaf(t, 1)], lr=-1)),
    ]


@case
def functional_derivatives(t: Any) -> Any:
    f = t.autograd.functional
    x = t.tensor([0.5, 1.5], dtype=t.float64)
    y = t.tensor([2.0], dtype=t.float64)
    v = t.tensor([1.0, -2.0], dtype=t.float64)

    def vector(a: Any) -> Any:
        return t.stack([a.prod(), a.sin().sum(), a[0]])

    def scalar(a: Any) -> Any:
        return (a**3).prod() + a[0].exp()

    return plain(
        [
            f.jacobian(vector, x),
            f.jacobian(lambda a, b: a * b, (x, y)),
            f.hessian(scalar, x),
            f.hessian(lambda a, b: (a * b).sum() ** 2, (x, y)),
            f.vjp(vector, x, t.ones(3, dtype=t.float64)),
            f.jvp(vector, x, v),
            f.hvp(scalar, x, v),
            f.vhp(scalar, x, v),
            f.jacobian(lambda a: (a.sum(), a * 2), x),
            f.vjp(scalar, x),
        ]
    )


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
def graph_chains(t: Any) -> Any:
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    w = t.ones(3, 3, dtype=t.float64, requires_grad=True)
    return [
        chain((x @ w).relu().sum().grad_fn),
        chain((x.t() @ x).mean().grad_fn),
        chain((1 / x).grad_fn),
        chain((2 - x).grad_fn),
        chain((x - 1).grad_fn),
        chain(x[0, 1:].grad_fn),
        chain(x[:, 0].exp().grad_fn),
        chain(t.stack([x, x]).sum(0).grad_fn),
        chain((x * x.detach()).grad_fn),
        chain(x.reshape(6).view(2, 3).unsqueeze(0).squeeze(0).grad_fn),
        chain(t.nn.functional.softmax(x, 1).log().grad_fn),
        chain((-x).abs().sqrt().grad_fn),
        chain(t.nn.functional.linear(x, w).grad_fn),
        chain(t.nn.functional.mse_loss(x, x.detach()).grad_fn),
        chain(x.max(1)[0].grad_fn),
        chain(x.flatten().dot(x.flatten()).grad_fn),
        chain(t.nn.functional.cross_entropy(x, t.tensor([0, 1])).grad_fn),
        chain(x.var().grad_fn),
        chain(x.norm().grad_fn),
        chain(x.clamp(0, 1).grad_fn),
        chain((x ** w[:1]).grad_fn),
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
def functions_that_run_autograd_inside(t: Any) -> Any:
    class Inner(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            with t.enable_grad():
                b = a.detach().requires_grad_()
                y = (b**2).sum()
            (g,) = t.autograd.grad(y, b)
            ctx.save_for_backward(a, g)
            return y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, saved = ctx.saved_tensors
            with t.enable_grad():
                b = a.detach().requires_grad_()
                (b**2).sum().backward()
            return g * (saved + b.grad) / 2

    class Same(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, g * 3

    class Raises(Same):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ValueError("boom")

    x, y = leaf(t, 3, 4), leaf(t, 1, 2)
    Inner.apply(x).backward()
    Same.apply(y, y).sum().backward()
    return [plain(x.grad), plain(y.grad), caught(lambda: Raises.apply(x, y).sum().backward())]


@case
def module_hooks_of_every_kind(t: Any) -> Any:
    log: list[Any] = []

    class Both(t.nn.Module):
        def forward(self, a: Any, b: Any, k: int = 2) -> Any:
            return a * b, a + k

    both = Both()
    both.register_full_backward_hook(lambda m, i, o: log.append([plain(i), plain(o)]))
    a = t.ones(2, requires_grad=True)
    p, _ = both(a, t.ones(2), k=3)
    p.sum().backward()
    linear = t.nn.Linear(2, 2)
    linear.register_full_backward_pre_hook(lambda m, g: (g[0] * 0,))
    linear.register_forward_pre_hook(lambda m, args, kwargs: log.append([len(args), list(kwargs)]), with_kwargs=True)
    b = t.ones(1, 2, requires_grad=True)
    linear(input=b).sum().backward()
    linear(b).sum().backward()
    legacy = t.nn.Linear(2, 1)
    handle = legacy.register_backward_hook(lambda m, i, o: log.append([len(i), len(o)]))
    legacy(t.ones(2, requires_grad=True)).backward()
    handle.remove()
    legacy(t.ones(2)).backward()
    return [log, plain(b.grad), caught(lambda: linear.register_backward_hook(lambda m, i, o: None) is not None)]


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
