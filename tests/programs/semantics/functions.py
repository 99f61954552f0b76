"""Programs as users of custom Functions write them, beside those in `contexts.py`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.programs.semantics.table import case, caught, leaf, name, plain


@case
def numpy_where_recording_is_off(t: Any) -> Any:
    class Exp(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.result = np.exp(x.numpy()) * np.asarray(x) ** 0
            return t.from_numpy(ctx.result)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return t.from_numpy(g.numpy() * ctx.result)

    x = leaf(t, 0.5, -1.0)
    with t.no_grad():
        outside = x.numpy().tolist()
    gradient = plain(t.autograd.grad(Exp.apply(x).sum(), x))
    return [outside, gradient, caught(x.numpy), caught(lambda: np.asarray(x).tolist())]


@case
def multi_grad_hooks_of_partial_passes(t: Any) -> Any:
    a, b, c = leaf(t, 1.0), leaf(t, 2.0), leaf(t, 3.0)
    log: list[Any] = []
    watch = t.autograd.graph.register_multi_grad_hook
    watch((a, b, c), lambda gradients: log.append(plain(gradients)))
    (a * b).sum().backward()
    (a * b * c).sum().backward(inputs=[a])
    (a * b * c).sum().backward()
    y = a * b
    z = y + c
    watch((y, z, a), lambda gradients: log.append(["y, z, a", plain(gradients)]))
    watch((y, z, a), lambda gradient: log.append(["any", plain(gradient)]), mode="any")
    z.sum().backward(retain_graph=True)
    y.sum().backward()
    return log


def _identity(t: Any, forward: Any) -> Any:
    class Given(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return gradients[0].reshape(2, 2) * 2

    Given.forward = staticmethod(forward)
    return Given.apply


def _written(apply: Any, x: Any, part: Any) -> Any:
    def write() -> Any:
        return part(apply(x)).add_(1)

    return caught(write)


@case
def writing_to_views_that_functions_return(t: Any) -> Any:
    forwards = [
        (lambda ctx, x: x.view(-1), lambda y: y),
        (lambda ctx, x: x, lambda y: y),
        (lambda ctx, x: (x, x * 2), lambda y: y[0]),
        (lambda ctx, x: (x, x * 2), lambda y: y[1]),
        (lambda ctx, x: x.clone(), lambda y: y.view(-1)),
    ]
    found = []
    for forward, part in forwards:
        x = t.ones(2, 2, dtype=t.float64, requires_grad=True)
        apply = _identity(t, forward)
        found.append([_written(apply, x, part), _written(apply, x * 1, part), plain(x)])
    x = t.ones(2, 2, dtype=t.float64, requires_grad=True)
    y = _identity(t, forwards[1][0])(x)
    with t.no_grad():
        y.add_(1)
    return [found, plain(y), plain(x)]


@case
def writing_to_one_of_several_views(t: Any) -> Any:
    def outcome(views: Any) -> Any:
        return caught(lambda: views(t.ones(2, 2, dtype=t.float64, requires_grad=True) * 1).add_(1), words=False)

    return [
        outcome(lambda z: z.chunk(2)[0]),
        outcome(lambda z: z.split(1)[1]),
        outcome(lambda z: z.split([1, 1])[1]),
        outcome(lambda z: z.unbind()[0]),
        outcome(lambda z: next(iter(z))),
        outcome(lambda z: z.chunk(2)[0][0]),
        outcome(lambda z: z.chunk(2)[0].clone()),
        outcome(lambda z: t.tensor_split(z, 2)[0]),
        outcome(lambda z: z[0]),
        outcome(lambda z: z.detach().chunk(2)[0]),
        caught(lambda: t.ones(2).split(-1)),
        caught(lambda: t.ones(2).split(0)),
        caught(lambda: t.ones(2).chunk(0)),
    ]


@case
def a_list_returned_by_forward_is_no_result(t: Any) -> Any:
    class Pair(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return [x * 1, x * 2]

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g + 2 * h

    first, second = Pair.apply(leaf(t, 1.0, 2.0))
    return [first.requires_grad, second.requires_grad, plain(second), caught(lambda: second.sum().backward())]


@case
def generators_in_a_mode(t: Any) -> Any:
    @t.no_grad()  # type: ignore[untyped-decorator]  # the framework is a parameter
    def steps() -> Any:
        try:
            got = yield t.is_grad_enabled()
            yield [got, t.is_grad_enabled()]
        except ValueError:
            yield ["thrown", t.is_grad_enabled()]
        return "end"

    first = steps()
    found = [next(first), t.is_grad_enabled(), first.send(3), t.is_grad_enabled()]
    second = steps()
    found += [next(second), second.throw(ValueError()), t.is_grad_enabled(), list(second)]
    third = steps()
    next(third)
    third.close()

    def delegated() -> Any:
        found.append((yield from steps()))

    return [found, list(delegated()), t.is_grad_enabled()]


@case
def gradients_by_edges(t: Any) -> Any:
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    edge = t.autograd.graph.get_gradient_edge
    by_edge = t.autograd.grad(z, edge(y), retain_graph=True)
    both = t.autograd.grad(z, [edge(x), y], retain_graph=True)
    return [plain(list(by_edge)), plain(list(both)), edge(x).output_nr, name_of(edge(y).node)]


def name_of(node: Any) -> str:
    """Return the class of a node."""
    return type(node).__name__


@case
def gradients_at_ties_and_at_zero(t: Any) -> Any:
    ties, zero = leaf(t, 1.0, 2.0, 2.0, 3.0), leaf(t, 0.0, 0.0)
    nan = leaf(t, 1.0, float("nan"))
    found = [
        t.autograd.grad(ties.median(), ties)[0],
        t.autograd.grad(nan.median(), nan)[0],
        t.stack([nan, nan.flip(0), ties[:2]]).median(1)[1],
        t.autograd.grad(ties.reshape(2, 2).median(0)[0].sum(), ties)[0],
        t.autograd.grad(t.atan2(zero, zero).sum(), zero)[0],
        t.autograd.grad(t.atan2(zero, zero.detach() + 1).sum(), zero)[0],
        ties.flip(dims=[0]),
    ]
    return [plain(found), name(ties.median()), name(ties.median(0)[0])]
