"""An edge of the graph can stand for the tensor that it belongs to, in the place of outputs and of inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine
from tests.engine.test_semantics_against_torch import differences
from tests.programs.semantics.table import caught, leaf, plain

Call = Callable[[Any, Any], Any]


def edge(t: Any, tensor: Any) -> Any:
    return t.autograd.graph.get_gradient_edge(tensor)


CASES: dict[str, Call] = {
    "one number": lambda t, x: t.autograd.grad(edge(t, (x**3).sum()), x),
    "a vector alone": lambda t, x: t.autograd.grad(edge(t, x * 3), x),
    "a vector": lambda t, x: t.autograd.grad(edge(t, x * 3), x, t.ones(2, dtype=t.float64)),
    "another shape": lambda t, x: t.autograd.grad(edge(t, x * 3), x, t.ones(3, dtype=t.float64)),
    "another kind": lambda t, x: t.autograd.grad(edge(t, x * 3), x, t.ones(2, dtype=t.complex128)),
    "among tensors": lambda t, x: t.autograd.grad(
        [edge(t, x * 3), (x * x).sum()], [edge(t, x)], [t.ones(2, dtype=t.float64), None]
    ),
    "backward": lambda t, x: [t.autograd.backward(edge(t, (x * 3).sum())), x.grad],
    "made by hand": lambda t, x: t.autograd.grad(t.autograd.graph.GradientEdge((x * x).sum().grad_fn, 0), x),
    "batched": lambda t, x: t.autograd.grad(
        edge(t, (x * x).sum()), x, t.ones(3, dtype=t.float64), is_grads_batched=True
    ),
    "unused": lambda t, x: t.autograd.grad((x * x).sum(), edge(t, leaf(t, 1.0)), allow_unused=True),
    "unused, as zeros": lambda t, x: t.autograd.grad((x * x).sum(), edge(t, leaf(t, 1.0)), materialize_grads=True),
    "second order": lambda t, x: t.autograd.grad(
        t.autograd.grad(edge(t, (x**3).sum()), x, create_graph=True)[0].sum(), x
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_edge_gives_what_it_gives_in_torch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="the reference for edges is PyTorch")
    ours, theirs = (caught(lambda t=t: plain(CASES[name](t, leaf(t, 0.5, 2.0)))) for t in (engine, torch))
    assert not (found := differences(ours, theirs)), "\n".join(found)
