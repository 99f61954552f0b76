"""Programs on functions of functions: `func`, checkpoints, parametrizations."""

from __future__ import annotations

import importlib
from typing import Any

from tests.programs.semantics.table import case, caught, plain


def _vector(t: Any) -> Any:
    return t.tensor([0.5, -1.0, 2.0], dtype=t.float64)


@case
def gradients_of_functions(t: Any) -> Any:
    func, x = t.func, _vector(t)
    one = t.tensor(0.7, dtype=t.float64)
    third = func.grad(func.grad(func.grad(lambda y: y.sin())))
    pair = func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, x * 2)
    value = func.grad_and_value(lambda y: (y.exp().sum(), y * 2), has_aux=True)(x)
    nested = func.grad(lambda d: (d["a"] ** 2).sum() + d["b"][0].sum())({"a": x, "b": [x, 3]} | {"b": [x]})
    tracked = x.clone().requires_grad_()
    through = func.grad(lambda y: (y**3).sum())(tracked)
    weight = t.ones(3, dtype=t.float64, requires_grad=True)
    closed_over = func.grad(lambda y: (y * weight).sin().sum())(x)
    return [
        plain([third(one), func.grad(lambda y: y.exp().sum())(x)]),
        plain(pair),
        plain(value),
        plain(nested),
        [func.grad(lambda y: y.sum())(x).requires_grad, through.requires_grad, closed_over.requires_grad],
        plain(list(t.autograd.grad(through.sum(), tracked))),
        plain(list(t.autograd.grad(closed_over.sum(), weight))),
        caught(lambda: func.grad(lambda y: y * 2)(x)),
    ]


@case
def jacobians_of_functions(t: Any) -> Any:
    func, x = t.func, _vector(t)

    def f(y: Any) -> Any:
        return t.stack([y[0] * y[1], y.exp().sum()])

    value, pull = func.vjp(f, x)
    ahead = func.jvp(f, (x,), (x * 2,))
    return [
        plain(value),
        plain(pull(t.ones(2, dtype=t.float64))),
        plain(ahead),
        plain(func.jacrev(f)(x)),
        plain(func.jacfwd(f)(x)),
        plain(func.hessian(lambda y: y.prod())(x)),
        plain(func.jacrev(lambda a, b: a * b.sum(), argnums=1)(x, x)),
        plain(func.jacfwd(func.jacrev(lambda y: (y**3).sum()))(x)),
        func.jacrev(f)(x).requires_grad,
        *_crossed(t),
    ]


def _crossed(t: Any) -> Any:
    """Return a derivative by one argument and then by another, and whether it is still tracked."""
    x, y = _vector(t), t.tensor([1.5, 0.5, -2.0], dtype=t.float64)
    crossed = t.func.jacrev(t.func.jacrev(lambda a, b: (a.sin() * b**2).sum(), argnums=1), argnums=0)(x, y)
    gradient = t.func.grad(lambda a: t.func.grad(lambda b: (a * b**3).sum())(y).sum())(x)
    return [plain(crossed), crossed.requires_grad, plain(gradient), gradient.requires_grad]


@case
def mapped_functions(t: Any) -> Any:
    func = t.func
    x = t.arange(6, dtype=t.float64).reshape(2, 3)
    return [
        plain(func.vmap(t.dot)(x, x)),
        plain(func.vmap(lambda row, k: row * k, in_dims=(1, None), out_dims=1)(x, 3)),
        plain(func.vmap(func.grad(lambda w, row: (w * row).sin().sum()), in_dims=(None, 0))(x[0], x)),
        plain(func.vmap(lambda row: (row.sum(), {"twice": row * 2}))(x)),
        plain(func.vmap(func.vmap(lambda number: number * 2))(x)),
        caught(lambda: func.vmap(t.add)(x, x[:1].t()), words=False),
        plain(t.vmap(t.sum)(x)),
    ]


@case
def a_module_with_other_parameters(t: Any) -> Any:
    net = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Tanh()).double()
    weight = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    x = _vector(t)
    with t.no_grad():
        for parameter in net.parameters():
            parameter.fill_(0.25)
    called = t.func.functional_call(net, {"0.weight": weight}, (x,))
    (gradient,) = t.autograd.grad(called.sum(), weight)
    inner = dict(net.named_parameters())
    gradients = t.func.grad(lambda p: t.func.functional_call(net, p, x).pow(2).sum())(inner)
    return [plain(called), plain(gradient), plain(net[0].weight), plain(gradients)]


@case
def checkpointed(t: Any) -> Any:
    checkpoint = importlib.import_module(f"{t.utils.__name__}.checkpoint").checkpoint
    x = _vector(t).requires_grad_()
    weight = t.ones(3, dtype=t.float64, requires_grad=True)
    runs: list[int] = []

    def f(y: Any, scale: float = 1.0) -> Any:
        runs.append(1)
        return (y * weight).sin() * y * scale

    y = checkpoint(f, x, use_reentrant=False, scale=2.0)
    before = len(runs)
    y.sum().backward()
    return [plain(y), before, len(runs), plain(x.grad), plain(weight.grad)]


@case
def parameters_that_are_functions(t: Any) -> Any:
    parametrize = t.nn.utils.parametrize

    class Symmetric(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    class Doubled(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def forward(self, x: Any) -> Any:
            return 2 * x

    layer = t.nn.Linear(2, 2).double()
    with t.no_grad():
        layer.weight.copy_(t.tensor([[1.0, 2.0], [2.0, 3.0]]))
        layer.bias.zero_()
    parametrize.register_parametrization(layer, "weight", Symmetric())
    layer.weight = t.tensor([[5.0, 6.0], [6.0, 7.0]], dtype=t.float64)
    started = plain(layer.weight)
    parametrize.register_parametrization(layer, "bias", Doubled())
    layer(t.ones(1, 2, dtype=t.float64)).sum().backward()
    with parametrize.cached():
        cached = layer.weight is layer.weight
    found = [
        started,
        plain(layer.weight),
        repr(layer),
        sorted(name for name, _ in layer.named_parameters()),
        plain(layer.parametrizations.weight.original.grad),
        cached,
        parametrize.is_parametrized(layer),
        parametrize.is_parametrized(layer, "nothing"),
        caught(lambda: parametrize.register_parametrization(layer, "nothing", Doubled()), words=False),
        isinstance(layer, t.nn.Linear),
    ]
    parametrize.remove_parametrizations(layer, "weight")
    parametrize.remove_parametrizations(layer, "bias", leave_parametrized=True)
    return [*found, plain(layer.weight), type(layer).__name__, repr(layer)]


@case
def parameters_as_a_vector(t: Any) -> Any:
    layer = t.nn.Linear(2, 2).double()
    utils = t.nn.utils
    utils.vector_to_parameters(t.arange(6.0, dtype=t.float64), layer.parameters())
    vector = utils.parameters_to_vector(layer.parameters())
    layer(t.ones(3, 2, dtype=t.float64)).pow(2).sum().backward()
    before = utils.clip_grad_norm_(layer.parameters(), 1.5)
    clipped = plain(layer.weight.grad)
    utils.clip_grad_value_(layer.parameters(), 0.4)
    largest = utils.clip_grad_norm_(layer.parameters(), 1.0, norm_type=float("inf"))
    return [plain(vector), vector.requires_grad, plain(before), clipped, plain(layer.bias.grad), plain(largest)]
