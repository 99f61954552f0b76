"""Views that are leaves, windows, copies into integers, and tensors saved after a write: as in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from tests.engine.test_semantics_against_torch import differences
from tests.programs.semantics.table import caught, plain

Call = Callable[[Any], Any]


def view(t: Any) -> Any:
    """A leaf that is a view of a tensor without a gradient."""
    return t.arange(6.0, dtype=t.float64).reshape(2, 3).requires_grad_()


def result(t: Any) -> Any:
    return t.arange(6.0, dtype=t.float64, requires_grad=True) * 1


def _written(call: Callable[[Any], Any]) -> Call:
    """Write to windows of a result, and return it, the windows and the gradient of a sum of squares."""

    def run(t: Any) -> Any:
        x = t.arange(6.0, dtype=t.float64, requires_grad=True)
        y = x * 1
        windows = call(y)
        (y.sum() + (windows * windows).sum()).backward()
        return [plain(y), plain(windows), plain(x.grad)]

    return run


def _before(t: Any) -> Any:
    """Take windows of a tensor, and write to it afterwards."""
    x = t.arange(6.0, dtype=t.float64, requires_grad=True)
    y = x * 1
    windows = y.unfold(0, 2, 2)
    y.mul_(3)
    (windows**2).sum().backward()
    return [plain(windows), plain(x.grad)]


def _no_grad(t: Any) -> Any:
    leaf = view(t)
    with t.no_grad():
        leaf.add_(1)
        leaf[0].mul_(2)
    (leaf**2).sum().backward()
    return [plain(leaf), plain(leaf.grad)]


def _root(t: Any) -> Any:
    root = t.arange(6.0, dtype=t.float64)
    leaf = root[1:].requires_grad_()
    (leaf[1:] ** 2).sum().backward()
    return [leaf.is_leaf, root.requires_grad, plain(leaf.grad), root.grad]


def _jvp_after_a_write(t: Any) -> Any:
    class Cube(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(a: Any) -> Any:
            return a**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * tangent

    x = t.ones(2, dtype=t.float64)
    x.mul_(2)
    return plain(t.func.jvp(Cube.apply, (x,), (t.ones(2, dtype=t.float64),)))


def _of_duals(t: Any) -> Any:
    forward, x = t.autograd.forward_ad, t.tensor([0.5, 2.0], dtype=t.float64)
    tracked = x.clone().requires_grad_()
    with forward.dual_level():
        plain_dual = forward.unpack_dual(forward.make_dual(x, x * 2).sin())
        of_leaf = forward.unpack_dual(forward.make_dual(tracked, x * 2).sin())
        flags = [entry.requires_grad for entry in (*plain_dual, *of_leaf)]
        grads = [t.autograd.grad(entry.sum(), tracked, retain_graph=True)[0] for entry in of_leaf]
        return [flags, plain(list(plain_dual)), plain(list(of_leaf)), plain(grads)]


def _old_function(t: Any) -> Any:
    class Old(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return Old


CASES: dict[str, Call] = {
    "leaf": lambda t: view(t).add_(1),
    "leaf, filled": lambda t: view(t).zero_(),
    "leaf, an entry": lambda t: view(t).__setitem__(0, 1.0),
    "view of the leaf": lambda t: view(t).view(-1).mul_(2),
    "view of the view": lambda t: view(t).t()[1].copy_(t.ones(2)),
    "leaf, not recorded": _no_grad,
    "root of the leaf": _root,
    "windows": _written(lambda y: y.unfold(0, 2, 2).mul_(3)),
    "windows with gaps": _written(lambda y: y.unfold(0, 2, 3).add_(3)),
    "windows of one": _written(lambda y: y.unfold(0, 1, 1).fill_(3)),
    "part of the windows": _written(lambda y: [w := y.unfold(0, 2, 2), w[1:].mul_(5)][0]),
    "windows before a write": _before,
    "overlapping windows": lambda t: plain(result(t).unfold(0, 3, 1)),
    "windows of a matrix": lambda t: [plain(view(t).unfold(1, 2, 1)), plain(view(t).t().unfold(0, 2, 1))],
    "copy into integers": lambda t: t.zeros(6).long().copy_(result(t)).requires_grad,
    "copy into float32": lambda t: t.zeros(6).copy_(result(t)).requires_grad,
    "jvp after a write": _jvp_after_a_write,
    "tangents": _of_duals,
    "unpacked to another shape": lambda t: _unpacked(t),
    "grad of an old Function": lambda t: t.func.grad(lambda a: _old_function(t).apply(a).sum())(t.ones(2)),
    "vmap of an old Function": lambda t: t.func.vmap(_old_function(t).apply)(t.ones(2)),
    "jvp of an old Function": lambda t: t.func.jvp(_old_function(t).apply, (t.ones(2),), (t.ones(2),)),
    "an old Function afterwards": lambda t: plain(_old_function(t).apply(t.ones(2))),
}


def _unpacked(t: Any) -> Any:
    x = t.ones(2, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda entry: entry, lambda _: t.ones(5)):
        y = x * x
    try:
        y.sum().backward()
    except RuntimeError:
        return "refused"
    return "accepted"


@pytest.mark.parametrize("name", CASES)
def test_a_program_does_what_it_does_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these programs is PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = (caught(lambda t=t: CASES[name](t)) for t in (engine, torch))
    assert not (found := differences(ours, theirs)), "\n".join(found)
