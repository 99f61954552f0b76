"""A tensor that backward needs and that was changed in place is noticed, whatever the operation used it for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these programs is PyTorch")

Use = Callable[[Any, Any, Any], Any]


def _vector(t: Any) -> Any:
    return t.tensor([1, 0])


def _matrix(t: Any) -> Any:
    return t.tensor([[1, 0], [0, 0]])


def _mask(t: Any) -> Any:
    return t.tensor([[True, False], [True, True]])


def _targets(t: Any) -> Any:
    return t.tensor([[1.0, 0.0], [0.25, 1.0]], dtype=t.float64)


def _written(a: Any, key: Any, value: Any) -> Any:
    y = a * 1
    y[key] = value
    return y


# What is made, and used with a tensor `a` [2, 2] that is tracked.
USES: dict[str, tuple[Callable[[Any], Any], Use]] = {
    "a[i]": (_vector, lambda t, a, i: a[i]),
    "a[:, i]": (_vector, lambda t, a, i: a[:, i]),
    "a[mask]": (_mask, lambda t, a, i: a[i]),
    "y[i] = a": (_vector, lambda t, a, i: _written(a, i, a * 2)),
    "y[mask] = a": (_mask, lambda t, a, i: _written(a, i, a[0, 0])),
    "y[i] = 0": (_vector, lambda t, a, i: _written(a, i[:1], 0)),
    "take": (_vector, lambda t, a, i: a.take(i)),
    "index_select": (_vector, lambda t, a, i: a.index_select(0, i)),
    "gather": (_matrix, lambda t, a, i: a.gather(1, i)),
    "scatter": (_matrix, lambda t, a, i: t.zeros(2, 2, dtype=t.float64).scatter(0, i.t(), a)),
    "scatter a number": (_matrix, lambda t, a, i: a.scatter(1, i, 2.0)),
    "scatter_add": (_matrix, lambda t, a, i: t.zeros(2, 2, dtype=t.float64).scatter_add(1, i, a)),
    "scatter_reduce": (_matrix, lambda t, a, i: a.scatter_reduce(1, i, a * 2, "sum")),
    "index_add": (_vector, lambda t, a, i: t.zeros(2, 2, dtype=t.float64).index_add(0, i, a)),
    "index_copy": (_vector, lambda t, a, i: t.zeros(2, 2, dtype=t.float64).index_copy(0, i, a)),
    "index_fill": (_vector, lambda t, a, i: a.index_fill(0, i[:1], 2.0)),
    "index_put": (_vector, lambda t, a, i: a.index_put((i,), a * 3)),
    "masked_select": (_mask, lambda t, a, i: a.masked_select(i)),
    "masked_fill": (_mask, lambda t, a, i: a.masked_fill(i, 0)),
    "masked_scatter": (_mask, lambda t, a, i: a.masked_scatter(i, a * 3)),
    "where": (_mask, lambda t, a, i: t.where(i, a, a * 2)),
    "embedding": (_vector, lambda t, a, i: t.nn.functional.embedding(i, a)),
    "embedding with padding": (_vector, lambda t, a, i: t.nn.functional.embedding(i, a, padding_idx=0)),
    "cross_entropy": (_vector, lambda t, a, i: t.nn.functional.cross_entropy(a, i)),
    "nll_loss": (_vector, lambda t, a, i: t.nn.functional.nll_loss(a, i)),
    "nll_loss by element": (_vector, lambda t, a, i: t.nn.functional.nll_loss(a, i, reduction="none")),
    "weights of nll_loss": (_targets, lambda t, a, i: t.nn.functional.nll_loss(a, t.tensor([1, 0]), weight=i[1])),
    "binary_cross_entropy_with_logits": (
        _targets,
        lambda t, a, i: t.nn.functional.binary_cross_entropy_with_logits(a, i),
    ),
    "mse_loss": (_targets, lambda t, a, i: t.nn.functional.mse_loss(a, i)),
    "kl_div": (_targets, lambda t, a, i: t.nn.functional.kl_div(a, i, reduction="sum")),
    "ignored targets": (_vector, lambda t, a, i: t.nn.functional.cross_entropy(a, i, ignore_index=1)),
    "weights of positives": (
        _targets,
        lambda t, a, i: t.nn.functional.binary_cross_entropy_with_logits(a, i.detach() * 0.5, pos_weight=i[1]),
    ),
    "maximum": (_targets, lambda t, a, i: t.maximum(a, i)),
}  # fmt: skip
# What returns places with values: those are changed.
PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda t, a: a.max(1),
    "min with the axis": lambda t, a: a.min(1, keepdim=True),
    "median": lambda t, a: a.median(1),
    "mode": lambda t, a: a.mode(1),
    "kthvalue": lambda t, a: a.kthvalue(1, 1),
    "sort": lambda t, a: a.sort(1),
    "topk": lambda t, a: a.topk(1, 1),
    "cummax": lambda t, a: a.cummax(1),
    "cummin": lambda t, a: a.cummin(1),
    "max_pool1d": lambda t, a: t.nn.functional.max_pool1d(a[None], 2, return_indices=True),
    "max_pool1d without a batch": lambda t, a: t.nn.functional.max_pool1d(a, 2, return_indices=True),
}
# PyTorch computes with a copy.
COPIED: dict[str, tuple[Callable[[Any], Any], Use]] = {
    "take_along_dim": (_matrix, lambda t, a, i: t.take_along_dim(a, i, 1)),
    "repeat_interleave": (_vector, lambda t, a, i: a.repeat_interleave(i, 0)),
    "a[0-d]": (lambda t: t.tensor(1), lambda t, a, i: a[i]),
}


def _outcome(framework: Any, use: Callable[[Any], Any], change: bool) -> Any:
    """Return the gradient, or the first words of the error."""
    a = framework.tensor([[0.5, 2.0], [3.0, 4.0]], dtype=framework.float64, requires_grad=True)
    result, other = use(a)
    if change:
        with framework.no_grad():
            other.copy_(other + 1 if other.dtype != framework.bool else ~other)
    weights = framework.arange(1.0, 1.0 + result.numel(), dtype=framework.float64).reshape(result.shape)
    try:
        (result * weights).sum().backward()
    except RuntimeError as error:
        return str(error)[:70]
    return np.round(a.grad.numpy(), 12).tolist()


def _using(framework: Any, entry: tuple[Callable[[Any], Any], Use]) -> Callable[[Any], Any]:
    def use(a: Any) -> Any:
        other = entry[0](framework)
        return entry[1](framework, a, other), other

    return use


CHANGED = "one of the variables needed for gradient computation has been modified by an inplace operation"[:70]


@pytest.mark.parametrize("name", USES)
def test_an_argument_that_was_changed_in_place_is_noticed_as_in_torch(name: str) -> None:
    assert _outcome(torch, _using(torch, USES[name]), True) == CHANGED
    assert _outcome(engine, _using(engine, USES[name]), True) == CHANGED
    right = _outcome(torch, _using(torch, USES[name]), False)
    assert isinstance(right, list)
    assert _outcome(engine, _using(engine, USES[name]), False) == right


@pytest.mark.parametrize("name", PLACES)
def test_returned_places_that_were_changed_in_place_are_noticed_as_in_torch(name: str) -> None:
    def use(framework: Any) -> Callable[[Any], Any]:
        return lambda a: PLACES[name](framework, a)

    assert _outcome(torch, use(torch), True) == CHANGED
    assert _outcome(engine, use(engine), True) == CHANGED
    right = _outcome(torch, use(torch), False)
    assert isinstance(right, list)
    assert _outcome(engine, use(engine), False) == right


@pytest.mark.parametrize("name", COPIED)
def test_an_argument_that_torch_copies_may_change(name: str) -> None:
    for change in (True, False):
        right = _outcome(torch, _using(torch, COPIED[name]), change)
        assert isinstance(right, list)
        assert _outcome(engine, _using(engine, COPIED[name]), change) == right


RESHAPED: dict[str, Callable[[Any], Any]] = {
    "t_": lambda y: y.t_(),
    "transpose_": lambda y: y.transpose_(0, 1),
    "swapaxes_": lambda y: y.swapaxes_(-1, 0),
    "swapdims_": lambda y: y.swapdims_(0, 1),
    "unsqueeze_": lambda y: y.unsqueeze_(0),
    "squeeze_": lambda y: y.squeeze_(),
    "several": lambda y: y.t_().unsqueeze_(1).transpose_(0, 1).squeeze_(0).t_(),
}


def _reshaped(framework: Any, name: str, program: Callable[[Any, Callable[[Any], Any]], Any]) -> Any:
    """Return the gradient of the program's result, or the first words of the error."""
    a = framework.tensor([[0.5, 2.0, 1.0], [3.0, 4.0, 7.0]], dtype=framework.float64, requires_grad=True)
    result = program(a, RESHAPED[name])
    weights = framework.arange(1.0, 1.0 + result.numel(), dtype=framework.float64).reshape(result.shape)
    try:
        (result * weights).sum().backward()
    except RuntimeError as error:
        return str(error)[:70]
    return a.grad.tolist()


def _saved_then(a: Any, reshape: Callable[[Any], Any]) -> Any:
    y = a * 1
    z = y * y
    reshape(y)
    return z


def _constant_then(a: Any, reshape: Callable[[Any], Any]) -> Any:
    w = a.detach().clone()
    z = a * w
    reshape(w)
    return z


def _first_then(a: Any, reshape: Callable[[Any], Any]) -> Any:
    y = a * 1
    return reshape(y) * y


def _view_then(a: Any, reshape: Callable[[Any], Any]) -> Any:
    y = a * 3
    part = y[0]
    reshape(y)
    return part * 2


def _view_written(a: Any, reshape: Callable[[Any], Any]) -> Any:
    y = a * 3
    part, other = y[0], y[:, 1]
    reshape(y)
    part.mul_(5)
    y[..., -1] *= 7
    return (y.reshape(-1)[:, None] * (part.sum() + other.sum())).cos()


@pytest.mark.parametrize("name", RESHAPED)
def test_a_saved_tensor_whose_shape_was_changed_in_place_is_noticed_as_in_torch(name: str) -> None:
    for program in (_saved_then, _constant_then):
        assert _reshaped(torch, name, program) == CHANGED
        assert _reshaped(engine, name, program) == CHANGED


@pytest.mark.parametrize("name", RESHAPED)
def test_tensors_and_their_views_live_on_when_the_shape_was_changed_in_place(name: str) -> None:
    for program in (_first_then, _view_then, _view_written):
        right = _reshaped(torch, name, program)
        assert isinstance(right, list)
        np.testing.assert_allclose(_reshaped(engine, name, program), right, rtol=1e-12)


def _functions(t: Any) -> dict[str, Any]:
    class Same(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g

    class Viewed(Same):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g.reshape(2, 2)

    class Split(Same):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[0], x[1] * 1

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return t.stack([-g, h])

    class Copied(Same):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    return {"same": Same, "viewed": Viewed, "split": Split, "copied": Copied}


BASES: dict[str, Callable[[Any, Any, Any], None]] = {
    "the base": lambda t, base, y: base.mul_(3),
    "the base without recording": lambda t, base, y: t.no_grad()(base.mul_)(3),
    "the output without recording": lambda t, base, y: t.no_grad()(y.mul_)(3),
    "another view": lambda t, base, y: base[0].zero_(),
    "nothing": lambda t, base, y: None,
}


@pytest.mark.parametrize("function", ["same", "viewed", "split", "copied"])
@pytest.mark.parametrize("written", BASES)
def test_an_output_whose_base_was_changed_in_place_is_refused_as_in_torch(function: str, written: str) -> None:
    outcomes = []
    for framework in (engine, torch):
        found: list[Any] = []
        outcomes.append(found)
        x = framework.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=framework.float64, requires_grad=True)
        base = x * 1
        output = _functions(framework)[function].apply(base)
        y = output[0] if isinstance(output, tuple) else output
        BASES[written](framework, base, y)
        for _ in range(2):
            try:
                found.append(((y * 2).sum() + base.sum()).item())
            except RuntimeError as error:
                found.append(str(error).replace("SplitBackward", "Split"))
        try:
            (y.sum() + base.sum()).backward()
        except RuntimeError as error:
            found.append(str(error))
        found.append(None if x.grad is None else x.grad.tolist())
    assert outcomes[0] == outcomes[1]
    assert (outcomes[0][-1] is None) == (written != "nothing" and function != "copied")


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "eq_": lambda y, z: y.eq_(z),
    "lt_": lambda y, z: y.lt_(z),
    "greater_equal_": lambda y, z: y.greater_equal_(z),
}


@pytest.mark.parametrize("name", COMPARED)
def test_a_comparison_written_over_its_argument_has_the_gradient_0_as_in_torch(name: str) -> None:
    for framework in (engine, torch):
        x = framework.tensor([1.0, 2.0, 3.0], requires_grad=True)
        COMPARED[name](x * 1, framework.tensor([2.0, 2.0, 2.0])).sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
        y = x * 1
        with framework.no_grad():
            assert not COMPARED[name](y.detach(), framework.tensor([2.0, 2.0, 2.0])).requires_grad


def test_a_pack_hook_sees_the_tensor_itself_and_may_leave_parameters_alone() -> None:
    for framework in (engine, torch):
        parameter = framework.nn.Parameter(framework.ones(2))
        x = framework.ones(2, requires_grad=True)
        h = x * 2
        seen: list[Any] = []

        def pack(tensor: Any, known: tuple[Any, ...] = (parameter, x, h), seen: list[Any] = seen) -> Any:
            seen.append([tensor is entry for entry in known].index(True))
            return tensor if tensor is known[0] else tensor * 1

        with framework.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed):
            result = h * parameter + x * parameter
        result.sum().backward()
        assert seen == [0, 2, 0, 1]
        assert parameter.grad.tolist() == [3.0, 3.0]
        assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("use", [lambda x: (x * 1).exp(), lambda x: (x * 2) * x.detach(), lambda x: x * x.detach()])
def test_a_pack_hook_that_changes_what_it_is_given_is_refused_as_in_torch(use: Callable[[Any], Any]) -> None:
    for framework in (engine, torch):
        hooks = framework.autograd.graph.saved_tensors_hooks
        with (
            hooks(lambda tensor: tensor.zero_(), lambda packed: packed),
            pytest.raises(RuntimeError, match=r"^A saved tensor pack hook is modifying its input in place\."),
        ):
            use(framework.ones(2, requires_grad=True))
        x = framework.ones(2, requires_grad=True)
        with hooks(lambda tensor: tensor.clone().zero_(), lambda packed: packed):
            use(x).sum().backward()
        assert x.grad.tolist() == [0.0, 0.0]


def test_a_hook_after_accumulation_returns_nothing() -> None:
    def outcome(framework: Any, hook: Callable[[Any], Any]) -> Any:
        x = framework.ones(2, requires_grad=True)
        x.register_post_accumulate_grad_hook(hook)
        try:
            (x * 2).sum().backward()
        except (RuntimeError, TypeError) as error:
            return type(error), str(error)
        return x.grad.tolist()

    for hook in (lambda leaf: leaf.grad.mul_(0.5), lambda leaf: 1):
        assert outcome(engine, hook) == outcome(torch, hook)
        assert isinstance(outcome(torch, hook), tuple)
    assert outcome(engine, lambda leaf: None) == outcome(torch, lambda leaf: None) == [2.0, 2.0]


def test_the_node_of_a_written_tensor_is_printed_as_in_torch() -> None:
    texts = []
    for framework in (engine, torch):
        x = framework.ones(2, requires_grad=True)
        y = x * 1
        y[0] = 3
        texts.append([str(y), str(x * 1), str(x // 2)])
    assert texts[0] == texts[1]
    assert texts[0][0] == "tensor([3., 1.], grad_fn=<CopySlices>)"
