"""Saturated functions: where claim and derivative drown in rounding, the verdict comes from another point."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.numerics.verify import Outcome, Verification, verify
from tests.numerics.cases import FormulaMap, elementwise, space

Array = np.ndarray
FAR = np.array([6.0, -5.5, 6.5])
"""exp(-10 x²) is 1e-140 to 1e-180 here: nothing beside 1, and yet known to every digit."""


def bells(x: Array) -> Array:
    """Three outputs near one, and three tails that are tiny by themselves."""
    return np.concatenate([1 - np.exp(-10 * x * x), np.exp(-12 * x * x)])


def slopes(x: Array) -> Array:
    return np.vstack([np.diag(20 * x * np.exp(-10 * x * x)), np.diag(-24 * x * np.exp(-12 * x * x))])


class Counting(FormulaMap):
    """A map that counts the gradients it is asked for."""

    asked = 0

    def vjp_many(self, x: Array, cotangents: Array) -> Array:
        self.asked += len(cotangents)
        return super().vjp_many(x, cotangents)


def judged(spoil: Callable[[Array], Array] | None = None, **options: Any) -> tuple[Verification, Counting]:
    saturated = Counting(bells, slopes, space((3,)), space((6,)), spoil)
    return verify(saturated, FAR, seed=3, **options), saturated


def test_tails_that_are_nothing_beside_rounding_do_not_keep_a_block_undecided() -> None:
    found = judged()[0].blocks[0]
    assert found.outcome is Outcome.AGREES, found
    assert "the gradient is below rounding errors here" in (found.note or "")


@pytest.mark.parametrize("factor", [1.001, 0.5, -1.0])
def test_a_wrong_claim_fails_elsewhere(factor: float) -> None:
    found = judged(lambda j: factor * j)[0].blocks[0]
    assert found.outcome is Outcome.DIFFERS, found


def test_what_was_decided_elsewhere_is_not_looked_into_at_the_saturated_point() -> None:
    """Values that are rough over wide steps, as saturated ones are, ask for hundreds of gradients there."""
    found, saturated = judged(lambda j: 1.5 * j)
    assert found.blocks[0].outcome is Outcome.DIFFERS, found
    assert saturated.asked < 300


def test_of_many_rows_one_is_asked_first_whether_a_wrong_claim_may_hold_over_wide_steps() -> None:
    rates = np.linspace(40, 90, 30)
    rippled = Counting(
        lambda x: np.sin(rates * x.sum()),
        lambda x: (rates * np.cos(rates * x.sum()))[:, None] * np.ones(3),
        space((3,)),
        space((30,)),
        lambda j: 1.5 * j,
    )
    found = verify(rippled, np.array([0.3, 0.7, -0.2]), seed=1).blocks[0]
    assert found.outcome is Outcome.DIFFERS, found
    assert rippled.asked < 600


@pytest.mark.parametrize("place", [-0.69741998, -1.1, 1.9])
def test_of_other_points_that_agree_coarsely_the_finest_counts(place) -> None:
    def spoil(j):
        return j * (1 + 1e-6)

    steep = elementwise(
        "steep", lambda x: np.tanh(20 * (x - 0.3)), lambda x: 20 / np.cosh(20 * (x - 0.3)) ** 2, [place]
    )
    for seed in range(3):
        with np.errstate(all="ignore"):
            (right,) = verify(steep.map(), steep.x, seed=seed).blocks
            (wrong,) = verify(steep.map(spoil), steep.x, seed=seed).blocks
        assert right.outcome is Outcome.AGREES
        assert right.resolution < 1e-6
        assert wrong.outcome is Outcome.DIFFERS


def gelu_slope(x: np.ndarray) -> np.ndarray:
    """The first derivative of x Phi(x) with Phi taken from 1 + erf, whose tail is lost below -8."""
    density = np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return 0.5 * (1 + np.array([math.erf(float(v) / math.sqrt(2)) for v in x])) + x * density


@pytest.mark.parametrize("at", [-8.3, -9.0, -11.37, -20.0, -30.0])
def test_a_tail_that_a_right_formula_loses_is_no_mistake(at: float) -> None:
    def gelu(x: np.ndarray) -> np.ndarray:
        return x * 0.5 * (1 + np.array([math.erf(float(v) / math.sqrt(2)) for v in x]))

    def curvature(x: np.ndarray) -> np.ndarray:
        return np.diag((2 - x * x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))

    first = FormulaMap(gelu, lambda x: np.diag(gelu_slope(x)), space((1,)), space((1,)))
    second = FormulaMap(gelu_slope, curvature, space((1,)), space((1,)))
    for map_ in (first, second):
        for seed in range(4):
            outcome = verify(map_, np.array([at]), seed=seed).blocks[0].outcome
            assert outcome is Outcome.AGREES or (at > -9 and outcome is Outcome.UNDECIDED)


@pytest.mark.parametrize("at", [-9.0, -11.37, -20.0])
def test_a_mistake_shows_nearer_to_zero_where_the_tail_hides_it(at: float) -> None:
    def curvature(x: np.ndarray) -> np.ndarray:
        return np.diag((2.1 - x * x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))

    map_ = FormulaMap(gelu_slope, curvature, space((1,)), space((1,)))
    assert verify(map_, np.array([at]), seed=0).blocks[0].outcome is Outcome.DIFFERS


@pytest.mark.parametrize(("wrong", "outcome"), [(0.0, Outcome.AGREES), (1e-3, Outcome.DIFFERS)])
def test_a_zero_claim_in_a_tail_is_not_said_to_be_hidden_by_rounding_of_the_values(wrong: float, outcome: Any) -> None:
    def claimed(x: Array) -> Array:
        return np.diag(np.where(x > 100, wrong, 1 / np.expm1(np.minimum(x, 100))))

    beside_1e8 = np.array([1e-8, 2.0, 300.0])
    map_ = FormulaMap(lambda x: np.log1p(-np.exp(-x)), claimed, space((3,)), space((3,)))
    (found,) = verify(map_, beside_1e8, seed=0).blocks
    assert found.outcome is outcome
    if not wrong:
        assert "may compute zero" in str(found.note)
        assert "rounding of forward's values" not in str(found.note)
