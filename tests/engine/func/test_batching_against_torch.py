"""`vmap` takes and refuses what PyTorch's does: nested axes, chunks, random numbers."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from gradcli import engine
from tests.engine.func.test_transforms_against_torch import Call, agree


def rows(t: Any) -> Any:
    return t.arange(6.0, dtype=t.float64).reshape(2, 3)


def product(a: Any, b: Any) -> Any:
    return (a * b).sum()


def _mapped(*args: Any, **kwargs: Any) -> Call:
    """A program that maps a function of rows."""
    return lambda t: t.func.vmap(*args, **kwargs)(rows(t))


def _written(t: Any, function: Any) -> Any:
    shared = t.ones(3)
    result = t.func.vmap(function, (None, 0))(shared, rows(t))
    return result, shared


CASES: dict[str, Call] = {
    "axes in a dict": lambda t: t.func.vmap(lambda d: d["x"] * d["y"], in_dims=({"x": 0, "y": None},))(
        {"x": rows(t), "y": rows(t)[0]}
    ),
    "axes in a tuple": lambda t: t.func.vmap(lambda p, k: p[0] * p[1] + k, in_dims=((0, None), None))(
        (rows(t), rows(t)[0]), 2.0
    ),
    "a list of axes": _mapped(lambda a: a, in_dims=[0]),
    "no axis": _mapped(lambda a: a, in_dims=None),
    "no axis for any": _mapped(lambda a: a, in_dims=(None,)),
    "half an axis": _mapped(lambda a: a, in_dims=(0.5,)),
    "axis 7": _mapped(functools.partial(product, b=3.0), in_dims=7),
    "a constant written to what is shared": lambda t: _written(t, lambda a, c: a.add_(1) + c),
    "a part of what is shared": lambda t: _written(t, lambda a, c: a[0].mul_(3) + c.sum()),
    "no inputs": lambda t: t.func.vmap(lambda: 1)(),
    "two lengths": lambda t: t.func.vmap(product)(rows(t), rows(t)[:1]),
    "axes from the end": lambda t: t.func.vmap(product, in_dims=(-1, 1))(rows(t), rows(t)),
    "chunks": _mapped(lambda a: (a * 2).sum(), chunk_size=1),
    "chunks of none": _mapped(lambda a: a * 2, chunk_size=0),
    "an axis for each output": _mapped(lambda a: (a, a.sum()), out_dims=(1, 0)),
    "axes of outputs in a dict": _mapped(lambda a: {"k": a}, out_dims={"k": 1}),
    "a tuple for one output": _mapped(lambda a: a, out_dims=(1,)),
    "letters for an output": _mapped(lambda a: a, out_dims="a"),
    "the last axis": _mapped(lambda a: a, out_dims=-1),
    "an output that is shared": lambda t: t.func.vmap(lambda a: (a, t.ones(2)), out_dims=(0, None))(rows(t)),
    "an output that is not shared": _mapped(lambda a: a, out_dims=None),
    "a number that is shared": _mapped(lambda a: (a, 3), out_dims=(0, None)),
    "a number": _mapped(lambda a: 3.0),
    "a list of outputs": _mapped(lambda a: [a, a * 2]),
    "an empty axis": lambda t: t.func.vmap(lambda a: a * 2)(t.ones(0, 3)),
    "the second axis, empty": lambda t: t.func.vmap(lambda a: (a * 2).sum(), in_dims=1)(t.ones(2, 0)),
    "writing to the argument": _mapped(lambda a: a.mul_(2)),
    "its name": lambda t: t.func.vmap(product).__name__,
    "random numbers": lambda t: t.func.vmap(lambda a: a + t.rand(3))(rows(t)),
    "a random order": lambda t: t.func.vmap(lambda a: a[t.randperm(3)])(rows(t)),
    "dropout": lambda t: t.func.vmap(lambda a: t.nn.functional.dropout(a, 0.5))(rows(t)),
    "dropout in evaluation": lambda t: t.func.vmap(lambda a: t.nn.functional.dropout(a, 0.5, training=False))(rows(t)),
    "another word for randomness": _mapped(lambda a: a, randomness="x"),
    "equal random numbers": lambda t: _all_equal(t, "same"),
    "different random numbers": lambda t: _all_equal(t, "different"),
}
BEGINNINGS: dict[str, Call] = {
    "one axis for two": lambda t: t.func.vmap(product, in_dims=(0,))(rows(t), rows(t)),
    "another name": lambda t: t.func.vmap(lambda d: d["x"], in_dims=({"z": 0},))({"x": rows(t)}),
    "three axes for two": lambda t: t.func.vmap(lambda d: d[0], in_dims=((0, 0, 0),))((rows(t), rows(t))),
    "an axis for one of two outputs": _mapped(lambda a: (a, a), out_dims=(0,)),
    "two axes for one output": _mapped(lambda a: a, out_dims=(0, 1)),
}


def _all_equal(t: Any, randomness: str) -> bool:
    drawn = t.func.vmap(lambda a: a * 0 + t.rand(3, dtype=t.float64), randomness=randomness)(rows(t))
    return bool((drawn[0] == drawn[1]).all())


@pytest.mark.parametrize("name", CASES)
def test_mapping_gives_what_it_gives_in_torch(name: str) -> None:
    agree(CASES[name])


@pytest.mark.parametrize("name", BEGINNINGS)
def test_structures_that_differ_are_refused_as_in_torch(name: str) -> None:
    agree(BEGINNINGS[name], words=80)


WRITES: dict[str, Any] = {
    "add_": lambda a, c: a.add_(c),
    "copy_": lambda a, c: a.copy_(c),
    "fill_": lambda a, c: a.fill_(c[0]),
    "a mask": lambda a, c: a.masked_fill_(c > 2, 0.0),
    "an entry": lambda a, c: a.__setitem__(0, c[0]),
    "a view": lambda a, c: a[1:].mul_(c[1:]),
    "index_put_": lambda a, c: a.index_put_((engine.tensor([0]),), c[:1]),
}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_entries_cannot_write_to_what_they_share(write: str, tracked: bool) -> None:
    """Each entry would see what those before it wrote, and the caller's tensor would change."""
    shared, mapped = engine.ones(3, dtype=engine.float64), rows(engine).requires_grad_(tracked)
    outside = engine.vmap(lambda c: WRITES[write](shared, c))
    inside = engine.vmap(functools.partial(WRITES[write]), (None, 0))
    for call in (lambda: inside(shared, mapped), lambda: outside(mapped)):
        with pytest.raises(RuntimeError, match="vmap: inplace arithmetic"):
            call()
        assert shared.tolist() == [1, 1, 1]
        assert shared.grad_fn is None
    own = engine.vmap(lambda a, c: WRITES[write](a.clone(), c) if write != "an entry" else c, (None, 0))
    assert own(shared, mapped).shape[0] == 2


def test_entries_may_write_to_their_own_part() -> None:
    mapped = rows(engine)
    engine.vmap(lambda c: mapped.sum() * 0 + c.add_(1))(mapped)
    assert mapped.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_random_numbers_are_drawn_again_after_a_refusal() -> None:
    with pytest.raises(RuntimeError, match="randomness error mode"):
        engine.func.vmap(lambda a: a + engine.rand(3))(engine.ones(2, 3))
    assert engine.rand(2).shape == (2,)
