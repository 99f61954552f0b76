"""Kind 18: gradcheck and gradgradcheck of the engine and of PyTorch."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.kinds.member import Case, leaf, member


def asked(ns: Any, function: Any, inputs: Any, name: str = "gradcheck", **options: Any) -> Any:
    """A case that says how gradcheck answers: passed, or failed with the class of what is raised."""

    def ask() -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                passed = getattr(ns.autograd, name)(function, inputs, **options)
            except Exception as error:
                return "failed", (type(error).__name__,), (str(error),)
        return "passed" if passed else "failed", (), ()

    return Case(target=None, options={"ask": ask})


def function(ns: Any, forward: Callable[..., Any], backward: Callable[..., Any], **more: Any) -> Any:
    class Made(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *x: Any) -> Any:
            ctx.save_for_backward(*x)
            return forward(ctx, *x)

        @staticmethod
        def backward(ctx: Any, *g: Any) -> Any:
            return backward(ctx, *g)

    return Made.apply


def both(build: Callable[[Any, bool, dict[str, Any]], Any]) -> None:
    """Take in a member for the slow and the fast mode."""
    for fast in (False, True):

        def mode(ns: Any, spoilt: bool, fast: bool = fast) -> Any:
            return build(ns, spoilt, {"fast_mode": fast})

        mode.__name__ = build.__name__ + (", fast" if fast else ", slow")
        member("18", wrong="failed GradcheckError")(mode)


@both
def a_noisy_backward(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * g * x + (random.random() if spoilt else 0)

    return asked(ns, function(ns, lambda ctx, x: x * x, backward), (leaf(ns, [0.5, 1.5]),), **mode)


@both
def a_backward_with_a_counter(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    calls = [0]

    def backward(ctx: Any, g: Any) -> Any:
        calls[0] += spoilt
        (x,) = ctx.saved_tensors
        return 2 * g * x * (1 + 0.01 * calls[0])

    return asked(ns, function(ns, lambda ctx, x: x * x, backward), (leaf(ns, [0.5, 1.5]),), **mode)


@both
def an_output_that_is_not_differentiable(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y, z = x * x, x * 3
        ctx.mark_non_differentiable(z)
        return y, z

    return asked(
        ns,
        function(ns, forward, lambda ctx, g, _: (3 if spoilt else 2) * g * ctx.saved_tensors[0]),
        (leaf(ns, [0.5, 1.5]),),
        **mode,
    )


@both
def a_backward_for_one_of_two(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * b, None if spoilt else g * a

    return asked(
        ns, function(ns, lambda ctx, a, b: a * b, backward), (leaf(ns, [0.5, 2.0]), leaf(ns, [1.5, 1.0])), **mode
    )


@both
def a_wrong_second_order(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * g * (x.detach() if spoilt else x) ** 2

    return asked(ns, function(ns, lambda ctx, x: x**3, backward), (leaf(ns, [0.5, 1.5]),), "gradgradcheck", **mode)


@both
def a_once_differentiable_one(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    """Right at order 1; order 2 is refused."""
    once = ns.autograd.function.once_differentiable
    backward = lambda ctx, g: 3 * g * ctx.saved_tensors[0] ** 2  # noqa: E731
    made = function(ns, lambda ctx, x: x**3, once(backward))
    return asked(ns, made, (leaf(ns, [0.5, 1.5]),), "gradgradcheck" if spoilt else "gradcheck", **mode)


@both
def a_forward_with_state(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    calls = [0]

    def forward(ctx: Any, x: Any) -> Any:
        calls[0] += spoilt
        return x * x * (1 + 0.1 * calls[0])

    return asked(
        ns, function(ns, forward, lambda ctx, g: 2 * g * ctx.saved_tensors[0]), (leaf(ns, [0.5, 1.5]),), **mode
    )


@both
def a_complex_product(ns: Any, spoilt: bool, mode: dict[str, Any]) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * (b if spoilt else b.conj()), g * a.conj()

    given = tuple(
        ns.tensor(v, dtype=ns.complex128, requires_grad=True) for v in ([1 + 2j, 0.5 - 1j], [0.3 + 1j, 2 - 0.5j])
    )
    return asked(ns, function(ns, lambda ctx, a, b: a * b, backward), given, **mode)
