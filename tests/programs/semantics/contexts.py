"""Programs on custom Functions and everything that their ctx can do."""

from __future__ import annotations

from typing import Any

from tests.programs.semantics.table import case, caught, leaf, name, plain


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
