"""Passes to chosen inputs, views that one call returned, and views of no history: as in PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from tests.engine.test_semantics_against_torch import differences
from tests.programs.semantics.table import caught, leaf, name, plain

Case = Callable[[Any], Any]


def _product(t: Any) -> tuple[Any, Any, Any, list[Any]]:
    """Return two leaves, the logarithm of their product, and what a hook on the product's node sees."""
    x, w, seen = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), []
    product = x * w
    product.grad_fn.register_hook(lambda results, cotangents: seen.append(plain([results, cotangents])))
    return x, w, product.log().sum(), seen


def _of_one(t: Any) -> Any:
    x, _, y, seen = _product(t)
    return [plain(t.autograd.grad(y, x)), seen]


def _of_the_other(t: Any) -> Any:
    _, w, y, seen = _product(t)
    y.backward(inputs=[w])
    return [plain(w.grad), seen]


def _of_both(t: Any) -> Any:
    x, w, y, seen = _product(t)
    return [plain(t.autograd.grad(y, [w, x])), seen]


class _Doubled:
    """The Function 2 x of a framework, which notes its calls of backward."""

    def __init__(self, t: Any) -> None:
        calls = self.calls = []  # type: ignore[var-annotated]

        class Doubled(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                return a * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                calls.append(plain(g))
                return g * 2

        self.apply = Doubled.apply


def _accumulated_into_a_result(t: Any) -> Any:
    x, function = leaf(t, 1.0, 2.0), _Doubled(t)
    y = function.apply(x)
    (y * 3).sum().backward(inputs=[y])
    return [plain(y.grad), plain(x.grad), function.calls]


def _asked_for_a_result(t: Any) -> Any:
    x, function = leaf(t, 1.0, 2.0), _Doubled(t)
    y = function.apply(x)
    return [plain(t.autograd.grad((y * 3).sum(), y)), plain(x.grad), function.calls]


def _accumulated_into_both(t: Any) -> Any:
    x, function = leaf(t, 1.0, 2.0), _Doubled(t)
    y = function.apply(x)
    (y * 3).sum().backward(inputs=[y, x])
    return [plain(y.grad), plain(x.grad), function.calls]


def _reply(kind: str, reply: Callable[[Any], Any]) -> Case:
    """Let a hook of a kind reply, and return the gradient, or the error."""

    def run(t: Any) -> Any:
        x = leaf(t, 1.0, 2.0)
        y = x * 1
        if kind == "pre-hook":
            y.grad_fn.register_prehook(reply)
        elif kind == "leaf":
            x.register_post_accumulate_grad_hook(reply)
        else:
            module = t.nn.ReLU()
            module.register_full_backward_pre_hook(lambda _, cotangents: reply(cotangents))
            y = module(y)
        return [caught(lambda: y.sum().backward()), plain(x.grad)]

    return run


def _parts(split: Callable[[Any], Any]) -> Case:
    """Return the nodes of views that one call returned, and derivatives through some of them."""

    def run(t: Any) -> Any:
        x = t.arange(12.0, dtype=t.float64).reshape(4, 3).requires_grad_()
        parts = split(x * 1)
        first, last = parts[0], parts[-1]
        (g,) = t.autograd.grad((first**3).sum() + 2 * last.sum(), x, create_graph=True)
        (h,) = t.autograd.grad(g.sum(), x)
        same = all(part.grad_fn is first.grad_fn for part in parts)
        numbers = [part.output_nr for part in parts]
        written = caught(lambda: first.add_(1))
        return [len(parts), same, numbers, name(first), plain(parts), plain(g), plain(h), written]

    return run


def _view_without_history(act: Callable[[Any, Any, Any], Any], root: Callable[[Any], Any]) -> Case:
    def run(t: Any) -> Any:
        base = root(t)
        with t.no_grad():
            part = base[0]
        flags = [part.requires_grad, part.is_leaf]
        return [flags, caught(lambda: act(t, base, part)), plain(base), plain(part), repr(part)]

    return run


def _leaf_view(t: Any) -> Any:
    return t.arange(4.0, dtype=t.float64).reshape(2, 2).requires_grad_()


def _leaf(t: Any) -> Any:
    return t.ones(2, 2, dtype=t.float64, requires_grad=True)


def _result(t: Any) -> Any:
    return _leaf(t) * 1


def _unrecorded(t: Any, base: Any, part: Any) -> Any:
    with t.no_grad():
        part.mul_(3)
    return [part.requires_grad, caught(lambda: part * 2), caught(lambda: part.grad_fn)]


def _powers(exponent: float) -> Case:
    """Differentiate x^n until nothing is left to differentiate."""

    def run(t: Any) -> Any:
        x = t.tensor(3.0, dtype=t.float64, requires_grad=True)
        y, found = x**exponent, []
        while y.requires_grad and len(found) < 5:
            (y,) = t.autograd.grad(y, x, create_graph=True)
            found.append(y.item())
        return found

    return run


CASES: dict[str, Case] = {
    "hook of a node, one input asked for": _of_one,
    "hook of a node, the other accumulated into": _of_the_other,
    "hook of a node, both asked for": _of_both,
    "backward of the result accumulated into": _accumulated_into_a_result,
    "backward of the result asked for": _asked_for_a_result,
    "backward of both accumulated into": _accumulated_into_both,
    "no inputs": lambda t: caught(lambda: t.autograd.grad(leaf(t, 1.0).sum(), [])),
    "pre-hook replies a tuple": _reply("pre-hook", lambda g: (g[0] * 2,)),
    "pre-hook replies a tensor": _reply("pre-hook", lambda g: g[0] * 2),
    "leaf's hook replies its leaf": _reply("leaf", lambda x: x),
    "leaf's hook replies another tensor": _reply("leaf", lambda x: x.detach()),
    "module's pre-hook replies a tuple": _reply("module", lambda g: (g[0] * 2,)),
    "module's pre-hook replies a tensor": _reply("module", lambda g: g[0] * 2),
    "pre-hook of a call replies arguments": lambda t: _called_with(t, lambda args: (args, {"scale": 3.0})),
    "pre-hook of a call replies too little": lambda t: _called_with(t, lambda args: args),
    "split": _parts(lambda y: y.split(3)),
    "split of an axis": _parts(lambda y: y.split(2, 1)),
    "split into lengths": _parts(lambda y: y.split([1, 0, 3])),
    "chunks": _parts(lambda y: y.chunk(3)),
    "unbound": _parts(lambda y: y.unbind()),
    "unbound axis": _parts(lambda y: y.unbind(-1)),
    "iterated over": _parts(list),
    "view of a leaf that is a view, written": _view_without_history(lambda t, base, part: part.add_(1), _leaf_view),
    "view of a leaf, written": _view_without_history(lambda t, base, part: part.add_(1), _leaf),
    "view of a result, written": _view_without_history(lambda t, base, part: part.add_(1), _result),
    "view of a result that is written": _view_without_history(
        lambda t, base, part: [base.add_(1), part.grad_fn], _result
    ),
    "view of a leaf, written unrecorded": _view_without_history(_unrecorded, _leaf),
    "view of a result, written unrecorded": _view_without_history(_unrecorded, _result),
    "views are not detached in place": lambda t: caught(lambda: _result(t)[0].detach_()),
    "hooks on what was freed": lambda t: caught(lambda: _freed(t)),
    "shape and type of an output": lambda t: [
        [list(entry.shape), str(entry.dtype)] for entry in _result(t).grad_fn._input_metadata
    ],
    **{f"derivatives of x^{exponent}": _powers(exponent) for exponent in (0, 1, 2, 3)},
}


def _called_with(t: Any, reply: Callable[[Any], Any]) -> Any:
    class Scaled(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def forward(self, x: Any, *, scale: float = 1.0) -> Any:
            return x * scale

    module = Scaled()
    module.register_forward_pre_hook(lambda _, args, kwargs: reply(args), with_kwargs=True)
    return caught(lambda: module(t.ones(2)))


def _freed(t: Any) -> Any:
    x = leaf(t, 1.0)
    y = x * x
    y.sum().backward()
    y.grad_fn._raw_saved_self.register_hooks(lambda a: a, lambda a: a)


@pytest.mark.parametrize("case", CASES)
def test_parts_of_the_graph_agree_with_torch(case: str) -> None:
    torch = pytest.importorskip("torch", reason="the reference for these programs is PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = CASES[case](torch), CASES[case](engine)
    assert not (found := differences(ours, theirs)), "\n".join(found)
