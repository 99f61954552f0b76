"""Functions of functions give what PyTorch's give: values, structures, and what is refused with which words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from tests.engine.test_semantics_against_torch import differences
from tests.programs.semantics.table import caught, plain

Call = Callable[[Any], Any]


def agree(call: Call, words: int | None = None) -> None:
    """Assert that a program gives, or raises, the same on both; of messages only so many first characters."""
    torch = pytest.importorskip("torch", reason="the reference for these functions is PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = caught(lambda: call(torch)), caught(lambda: call(engine))
    if words is not None and theirs[0] != "returned":
        theirs, ours = [[kind, text[:words]] for kind, text in (theirs, ours)]
    assert not (found := differences(ours, theirs)), "\n".join(found)


def x(t: Any) -> Any:
    return t.tensor([0.3, 1.2, -0.4], dtype=t.float64)


def y(t: Any) -> Any:
    return t.tensor([1.0, 2.0, 0.5], dtype=t.float64)


def cubes(a: Any, b: Any = None) -> Any:
    """One number, of one vector or of two."""
    return ((a if b is None else a * b) ** 3).sum()


def nested(d: Any) -> Any:
    """Containers of containers."""
    return d["a"] * 2, [d["b"][0].exp(), d["a"].sum() * d["b"][0].sum()]


REVERSE = ("grad", "grad_and_value", "jacrev")
NUMBERS: list[Any] = [2, -2, -3, (0, 3), (0, 0), (0, -2), (), [0], 1.5, None, (0, 1.5), True, 0, (1, 0), (0,)]


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
@pytest.mark.parametrize("api", REVERSE)
def test_the_chosen_arguments_are_those_of_torch_or_refused(api: str, numbers: Any) -> None:
    for count in (1, 2):
        agree(lambda t, n=count: getattr(t.func, api)(cubes, numbers)(*(x(t), y(t))[:n]))


@pytest.mark.parametrize("numbers", [n for n in NUMBERS if n not in (-2, (0, -2))], ids=str)
@pytest.mark.parametrize("api", ["jacfwd", "hessian"])
def test_the_same_for_what_tangents_compute(api: str, numbers: Any) -> None:
    for count in (1, 2):
        agree(lambda t, n=count: getattr(t.func, api)(cubes, numbers)(*(x(t), y(t))[:n]))


@pytest.mark.parametrize("api", ["jacfwd", "hessian"])
def test_arguments_counted_from_the_end_have_the_derivatives_of_those_counted_from_the_start(api: str) -> None:
    # PyTorch 2.13 gives zeros here, without a word.
    a, b = x(engine), y(engine)
    for ahead, back in ((0, -2), (1, -1)):
        run = getattr(engine.func, api)
        assert plain(run(cubes, back)(a, b)) == plain(run(cubes, ahead)(a, b))
        assert any(
            entry != 0 for row in plain(run(cubes, back)(a, b)) for entry in (row if api == "hessian" else [row])
        )


def _tied(t: Any) -> Any:
    """A module with a weight under two names, and a buffer."""

    class Net(t.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = t.nn.Linear(2, 2), t.nn.Linear(2, 2)
            self.b.weight = self.a.weight
            self.register_buffer("s", t.tensor(2.0))

        def forward(self, v: Any, k: int = 1) -> Any:
            return self.b(self.a(v)) * self.s * k

    return Net()


def _called(t: Any, dicts: Callable[[dict[str, Any]], Any], **how: Any) -> Any:
    weight, zero = t.tensor([[1.0, 2.0], [0.0, 1.0]]), t.zeros(2)
    full = {"a.weight": weight, "a.bias": zero, "b.bias": zero, "s": t.tensor(3.0)}
    return t.func.functional_call(_tied(t), dicts(full), t.ones(2), **how)


def _stacked(t: Any, *models: Any) -> Any:
    parameters, buffers = t.func.stack_module_state(list(models))
    both = {**parameters, **buffers}
    return {name: [list(entry.shape), entry.requires_grad, entry.is_leaf] for name, entry in both.items()}


CASES: dict[str, Call] = {
    "jacrev of containers": lambda t: t.func.jacrev(nested)({"a": x(t), "b": [y(t)]}),
    "jacfwd of containers": lambda t: t.func.jacfwd(nested)({"a": x(t), "b": [y(t)]}),
    "jvp of containers": lambda t: t.func.jvp(
        nested, ({"a": x(t), "b": [y(t)]},), ({"a": y(t), "b": [x(t)]},)
    ),
    "vjp of containers": lambda t: t.func.vjp(nested, {"a": x(t), "b": [y(t)]})[1](
        (y(t), [x(t), t.tensor(2.0, dtype=t.float64)])
    ),
    "jacrev with aux": lambda t: t.func.jacrev(lambda a: (a**2, a.sum()), has_aux=True)(x(t)),
    "jacfwd with aux": lambda t: t.func.jacfwd(lambda a: (a**2, a.sum()), has_aux=True)(x(t)),
    "jvp with aux": lambda t: t.func.jvp(lambda a: (a**2, a * 3), (x(t),), (y(t),), has_aux=True),
    "no aux for grad": lambda t: t.func.grad(lambda a: a.sum(), has_aux=True)(x(t)),
    "no aux for vjp": lambda t: t.func.vjp(lambda a: a, x(t), has_aux=True),
    "no aux for jvp": lambda t: t.func.jvp(lambda a: a, (x(t),), (x(t),), has_aux=True),
    "two outputs by two inputs": lambda t: t.func.jacrev(lambda a, b: (a * b, b.sum()), (0, 1))(x(t), y(t)),
    "jacfwd by all": lambda t: t.func.jacfwd(lambda a, b: a * b, None)(x(t), y(t)),
    "of transposed matrices": lambda t: [
        run(lambda a: a.sin() * a.sum())(t.arange(6.0, dtype=t.float64).reshape(2, 3).t())
        for run in (t.func.jacrev, t.func.jacfwd)
    ],
    "by an empty input": lambda t: [run(lambda a: a.sin())(x(t)[:0]) for run in (t.func.jacrev, t.func.jacfwd)],
    "of an empty output": lambda t: [run(lambda a: a[:0])(x(t)) for run in (t.func.jacrev, t.func.jacfwd)],
    "chunks": lambda t: t.func.jacrev(lambda a: a.sin(), chunk_size=2)(x(t)),
    "no chunks": lambda t: t.func.jacrev(lambda a: a.sin(), chunk_size=0)(x(t)),
    "jacrev of complex": lambda t: t.func.jacrev(lambda a: a)(x(t) * 1j),
    "jacfwd to complex": lambda t: t.func.jacfwd(lambda a: a * 1j)(x(t)),
    "jacfwd of integers": lambda t: t.func.jacfwd(lambda a: a * 1.5)(t.arange(3)),
    "grad of a number": lambda t: t.func.grad(lambda a: a)(3.0),
    "grad to a number": lambda t: t.func.grad(lambda a: 3.0)(x(t)),
    "grad to a vector": lambda t: t.func.grad(lambda a: a)(x(t)),
    "vjp to a number": lambda t: t.func.vjp(lambda a: 3.0, x(t)),
    "vjp to nothing": lambda t: t.func.vjp(lambda a: None, x(t)),
    "vjp to booleans": lambda t: t.func.vjp(lambda a: a > 0, x(t)),
    "vjp of another structure": lambda t: t.func.vjp(lambda a: (a, a), x(t))[1](x(t)),
    "vjp twice, not retained": lambda t: (lambda p: [p(x(t), retain_graph=False), p(x(t))])(
        t.func.vjp(lambda a: a.sin(), x(t))[1]
    ),
    "jvp of a list": lambda t: t.func.jvp(cubes, [x(t)], [x(t)]),
    "jvp along a number": lambda t: t.func.jvp(cubes, (x(t),), (3.0,)),
    "jvp of nothing": lambda t: t.func.jvp(cubes, (), ()),
    "jvp of another shape": lambda t: t.func.jvp(cubes, (x(t),), (x(t)[:2],)),
    "strict jvp": lambda t: t.func.jvp(lambda a: t.ones(2), (x(t),), (x(t),), strict=True),
    "jvp of a constant": lambda t: t.func.jvp(lambda a: t.ones(2), (x(t),), (x(t),)),
    "linearize": lambda t: [
        t.func.linearize(lambda a, b: a.sin() * b.sum(), x(t), y(t))[0],
        t.func.linearize(lambda a, b: a.sin() * b.sum(), x(t), y(t))[1](y(t), x(t)),
    ],
    "linearize, another shape": lambda t: t.func.linearize(lambda a: a.sin(), x(t))[1](y(t)[:2]),
    "linearize, another type": lambda t: t.func.linearize(lambda a: a.sin(), x(t))[1](y(t).float()),
    "strict, all there": lambda t: _called(t, lambda full: full, strict=True),
    "strict, untied": lambda t: _called(t, lambda full: full, strict=True, tie_weights=False),
    "tied names disagree": lambda t: _called(t, lambda full: {**full, "b.weight": full["a.weight"] * 2}),
    "untied names differ": lambda t: _called(
        t, lambda full: {**full, "b.weight": full["a.weight"] * 2}, tie_weights=False
    ),
    "a name in two dicts": lambda t: _called(t, lambda full: (full, {"s": full["s"]})),
    "a list of dicts": lambda t: _called(t, lambda full: [{"s": full.pop("s")}, full], kwargs={"k": 2}),
    "no dict": lambda t: _called(t, lambda full: 3),
    "no dicts": lambda t: _called(t, lambda full: [3]),
    "a number for a tensor": lambda t: _called(t, lambda full: {**full, "s": 3}),
    "an unknown name": lambda t: _called(t, lambda full: {**full, "foo": full["s"]}),
    "stacked modules": lambda t: _stacked(t, *[t.nn.BatchNorm1d(2) for _ in range(3)]),
    "stacked, of no modules": lambda t: _stacked(t),
    "stacked, two classes": lambda t: _stacked(t, t.nn.Linear(2, 1), t.nn.Tanh()),
    "stacked, two modes": lambda t: _stacked(t, t.nn.Linear(2, 1), t.nn.Linear(2, 1).eval()),
    "stacked, one frozen": lambda t: _stacked(t, t.nn.Linear(2, 1), t.nn.Linear(2, 1).requires_grad_(False)),
}  # fmt: skip
"""Values and messages that are PyTorch's, word for word in the first line."""
BEGINNINGS: dict[str, Call] = {
    "jvp of two by one": lambda t: t.func.jvp(cubes, (x(t), y(t)), (x(t),)),
    "linearize, two by one": lambda t: t.func.linearize(lambda a: a.sin(), x(t))[1](y(t), y(t)),
    "strict, some missing": lambda t: _called(t, lambda full: {"s": full["s"], "q": full["s"]}, strict=True),
}
"""Messages that print structures in another way, or in another order."""


@pytest.mark.parametrize("name", CASES)
def test_a_call_gives_what_it_gives_in_torch(name: str) -> None:
    agree(CASES[name])


@pytest.mark.parametrize("name", BEGINNINGS)
def test_a_call_is_refused_with_the_beginning_of_the_message_of_torch(name: str) -> None:
    agree(BEGINNINGS[name], words=20)


def _levels(t: Any) -> list[Any]:
    """Derivatives of derivatives in all orders of the two modes, and whether they are tracked."""
    f, a, b = t.func, x(t), y(t)

    def g(v: Any) -> Any:
        return v.sin() * v.sum()

    tracked = x(t).requires_grad_()
    found = [
        f.jvp(lambda v: f.jvp(g, (v,), (b,))[1], (a,), (b,)),
        f.grad(lambda v: f.jvp(g, (v,), (b,))[1].sum())(a),
        f.jvp(f.grad(cubes), (a,), (b,)),
        f.jvp(lambda w: f.jvp(lambda v: f.jvp(g, (v,), (w,))[1], (a,), (w,))[1], (b,), (a,)),
        f.jvp(lambda v: f.jvp(lambda w: v * w, (b,), (b,))[1], (a,), (b,)),
        f.jacfwd(f.jacfwd(g))(a),
        f.jacrev(f.jacfwd(cubes))(a),
        f.vmap(f.jacfwd(g))(t.stack([a, b])),
        f.jacfwd(f.vmap(cubes))(t.stack([a, b])),
    ]
    results = [f.grad(cubes)(tracked), f.jvp(g, (tracked,), (b,))[1], f.jvp(g, (a,), (tracked,))[1]]
    results += [f.jacrev(g)(tracked), f.jacfwd(g)(tracked), f.hessian(cubes)(tracked)]
    through = [t.autograd.grad(entry.sum(), tracked)[0] for entry in results]
    with t.no_grad():
        flags = [f.grad(cubes)(tracked).requires_grad, f.jacfwd(g)(tracked).requires_grad]
        flags += [f.vjp(g, tracked)[1](b)[0].requires_grad, f.jacrev(g)(tracked).requires_grad]
    return [plain(found), plain(through), flags, [entry.requires_grad for entry in (*found[1:2], *found[5:])]]


def test_levels_nest_and_their_results_are_tracked_as_in_torch() -> None:
    agree(_levels)


def _with_rules(t: Any, factor: float) -> list[Any]:
    class Cube(t.autograd.Function):  # type: ignore[misc]  # the framework is a parameter
        generate_vmap_rule = True

        @staticmethod
        def forward(a: Any) -> Any:
            return a**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 3 * ctx.saved_tensors[0] ** 2 * g

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return factor * ctx.saved_tensors[0] ** 2 * tangent

    a = x(t)
    return [
        plain(t.func.jvp(Cube.apply, (a,), (y(t),))),
        plain(t.func.jacfwd(Cube.apply)(a)),
        plain(t.func.jacrev(Cube.apply)(a)),
        plain(t.func.hessian(lambda v: Cube.apply(v).prod())(a)),
    ]


@pytest.mark.parametrize("factor", [3.0, 3.03])
def test_the_jvp_of_a_function_is_what_forward_mode_runs_right_or_wrong(factor: float) -> None:
    agree(lambda t: _with_rules(t, factor))
