"""Kinds 7 and 8: what raises is a note, what is silently wrong fails; a jvp that returns nothing."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, member, normal


def _empty_batch(ns: Any, spoilt: bool, reduce: Any) -> Any:
    """Backward reads the first row, which an empty batch lacks."""

    class PerRow(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            reduce(x)
            return (3 if spoilt else 2) * x * g

    return case(PerRow, normal(ns, 3, 2))


@member("7", right="passed: size 0")
def first_row_of_an_empty_batch(ns: Any, spoilt: bool) -> Any:
    return _empty_batch(ns, spoilt, lambda x: x[0])


@member("7", right="passed: size 0")
def largest_of_an_empty_batch(ns: Any, spoilt: bool) -> Any:
    return _empty_batch(ns, spoilt, lambda x: x.max())


@member("7", right="passed: size 0")
def stack_of_no_rows(ns: Any, spoilt: bool) -> Any:
    return _empty_batch(ns, spoilt, lambda x: ns.stack(list(x)))


def _second_order(ns: Any, body: Any, **options: Any) -> Any:
    class Cubed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return body(x, g)

    return case(Cubed, normal(ns, 3), **options)


def raising_twice(ns: Any) -> Any:
    """A gradient whose own backward raises."""

    class Slope(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, g: Any) -> Any:
            return 3 * x * x * g

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise NotImplementedError("derivative for cubed_backward is not implemented")

    return Slope


@member("7", right="passed: order", wrong="failed not-twice-differentiable wrong-second-order")
def second_derivative_not_implemented(ns: Any, spoilt: bool) -> Any:
    slope = raising_twice(ns)
    return _second_order(ns, lambda x, g: 3 * x.detach() ** 2 * g if spoilt else slope.apply(x, g))


@member("7", right=None, wrong="failed")
def second_derivative_not_implemented_asked_for(ns: Any, spoilt: bool) -> Any:
    slope = raising_twice(ns)
    return _second_order(ns, slope.apply, order=2)


@member("7", right="passed: order", wrong="failed not-twice-differentiable wrong-second-order")
def backward_in_place_on_its_graph(ns: Any, spoilt: bool) -> Any:
    """An in-place write to what the second backward needs, which the framework refuses loudly."""

    def body(x: Any, g: Any) -> Any:
        if spoilt:
            return g * (3 * x * x).detach()
        e = ns.exp(x)
        y = e * g
        e.mul_(0)
        return y + 3 * x * x * g - ns.exp(x) * g

    return _second_order(ns, body)


@member("7", right="passed: once_differentiable", wrong="failed")
def once_differentiable(ns: Any, spoilt: bool) -> Any:
    class Cubed(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @ns.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (2 if spoilt else 3) * g * x * x

    return case(Cubed, normal(ns, 3))


@member("7", right=None, wrong="failed not-twice-differentiable wrong-second-order")
def half_of_the_second_order_lost(ns: Any, spoilt: bool) -> Any:
    return _second_order(ns, lambda x, g: 1.5 * g * x * x + 1.5 * g * (x * x).detach())


@member("7", right=None, wrong="failed not-twice-differentiable wrong-second-order")
def numpy_in_backward(ns: Any, spoilt: bool) -> Any:
    return _second_order(ns, lambda x, g: g * ns.tensor(3 * x.detach().numpy() ** 2))


@member("7", right="failed", wrong=None)
def raises_for_strided_gradients(ns: Any, spoilt: bool) -> Any:
    """`view` of a gradient that came in another layout: an ordinary call that raises."""

    class Flat(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g.view(-1).reshape(ctx.shape)

    return case(Flat, normal(ns, 3, 2), order=1)


# kind 8 ----------------------------------------------------------------------------------------------------------


def with_jvp(ns: Any, jvp: Any, factor: float = 1.0) -> Any:
    class Exp(ns.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return ns.exp(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)
            ctx.y = output.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return factor * g * y

    Exp.jvp = staticmethod(jvp)
    return Exp


def nothing(ctx: Any, t: Any) -> Any:
    return None


def docstring(ctx: Any, t: Any) -> Any:
    """The forward derivative. To be written."""


def passes(ctx: Any, t: Any) -> Any:
    pass


def dots(ctx: Any, t: Any) -> Any: ...


def raises(ctx: Any, t: Any) -> Any:
    raise NotImplementedError


def forgets_to_return(ctx: Any, t: Any) -> None:
    y = ctx.y * t  # noqa: F841


def returns_nones(ctx: Any, *t: Any) -> Any:
    return (None,) * len(t)


for body in (nothing, docstring, passes, dots, raises, forgets_to_return, returns_nones):

    def build(ns: Any, spoilt: bool, body: Any = body) -> Any:
        return case(with_jvp(ns, body, 1.1 if spoilt else 1.0), normal(ns, 3))

    build.__name__ = f"jvp {body.__name__}"
    member("8", right="passed: jvp", wrong="failed wrong-factor wrong-gradient")(build)


@member("8", wrong="failed jvp-mismatch")
def a_jvp_that_is_there(ns: Any, spoilt: bool) -> Any:
    return case(with_jvp(ns, lambda ctx, t: (2 if spoilt else 1) * ctx.y * t), normal(ns, 3))


@member("8", right=None, wrong="failed jvp-mismatch")
def a_jvp_of_zeros(ns: Any, spoilt: bool) -> Any:
    return case(with_jvp(ns, lambda ctx, t: 0 * ctx.y * t), normal(ns, 3))
