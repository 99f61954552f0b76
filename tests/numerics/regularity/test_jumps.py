"""Jumps of a function are told from its kinks, also where many kinks lie side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.regularity.jumps import jump_nearby
from gradcli.numerics.sampling.directions import random_direction
from tests.numerics.cases import FormulaMap, space

Array = np.ndarray
COUNT, WIDTH = 24, 10
SEEDS = (*range(20), 104, 359)


def found(function: Callable[[Array], Array], seed: int) -> float:
    """Return the largest jump along a random direction, beside the values."""
    source = np.random.default_rng(seed)
    pools = FormulaMap(function, lambda x: np.zeros((COUNT, x.size)), space((COUNT * WIDTH,)), space((COUNT,)))
    x = source.uniform(-9, 9, COUNT * WIDTH)
    site = Site.at(CountedMap(pools), x, np.random.default_rng([seed, 1]))
    site.evaluate()
    v = random_direction(site.rng, site.scales)
    size = np.abs(site.claim.read(site.outputs))
    return float((jump_nearby(site, v, np.ones(size.size, bool)) / size).max())


def pooled(x: Array) -> Array:
    return x.reshape(COUNT, WIDTH).max(axis=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_kinks_are_not_jumps(seed: int) -> None:
    assert found(pooled, seed) == 0


@pytest.mark.parametrize("height", [1e-4, 1e-7, 1e-10])
def test_a_step_among_smooth_values_is_a_jump(height: float) -> None:
    for seed in range(5):
        stepped = found(lambda x: np.sin(x[:COUNT]) + 3 + height * np.floor(x[:COUNT] / 0.9), seed)
        assert stepped > 0.3 * height / 4
