"""Of a gradient that carries no graph one pair is measured, and of one that is cut from its inputs every pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import numpy as np
import pytest

from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.outcome import Outcome, Verification
from gradcli.numerics.verify import verify

SIZE = 8
X = Space((Block("x", (SIZE,), "float64"),))
BOTH = Space((Block("x", (SIZE,), "float64"), Block("grad_output", (SIZE,), "float64")))
Gradient = Callable[[Vector, Vector], Vector]


@final
class Lower(VectorMap):
    """A function of x, of which only the space matters."""

    domain = codomain = X

    def value(self, x: Vector) -> Vector:
        return x

    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        return cotangent


@final
class Cut(VectorMap):
    """A gradient whose derivative comes out as zero, because it carries no graph or for another reason."""

    domain, codomain = BOTH, X

    def __init__(self, gradient: Gradient, *, has_graph: bool) -> None:
        self.below, self._gradient, self._has_graph = Lower(), gradient, has_graph

    def value(self, x: Vector) -> Vector:
        return self._gradient(x[:SIZE], x[SIZE:])

    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        return np.zeros(x.size)

    def depends(self, x: Vector) -> np.ndarray:
        return np.full((1, 2), self._has_graph)


def verified(gradient: Gradient, *, has_graph: bool) -> Verification:
    """The verification at a random point."""
    point = np.random.default_rng(0).standard_normal(2 * SIZE)
    return verify(Cut(gradient, has_graph=has_graph), point, seed=0)


def single(values: Vector) -> Vector:
    """The values rounded to float32."""
    return values.astype(np.float32).astype(np.float64)


@pytest.mark.parametrize(
    "gradient", [lambda x, u: np.cos(x) * u, lambda x, u: single(np.cos(single(x)) * single(u))], ids=["64", "32"]
)
def test_one_pair_refutes_a_gradient_without_a_graph(gradient: Gradient) -> None:
    found, whole = (verified(gradient, has_graph=has_graph) for has_graph in (False, True))
    ((block,),) = (found.blocks,)
    assert (block.input, block.output, block.outcome) == (1, 0, Outcome.DIFFERS)
    assert block.table is not None
    assert 3 * found.evaluations < whole.evaluations
    assert [each.outcome for each in whole.blocks] == [Outcome.DIFFERS] * 2


@pytest.mark.parametrize("constant", [lambda x, u: 0 * x, lambda x, u: np.ones(SIZE), lambda x, u: np.sign(u)])
@pytest.mark.parametrize("has_graph", [False, True])
def test_a_gradient_that_does_not_change_needs_no_graph(constant: Gradient, has_graph: bool) -> None:
    found = verified(constant, has_graph=has_graph)
    assert len(found.blocks) == 2
    assert all(block.outcome is not Outcome.DIFFERS for block in found.blocks)
