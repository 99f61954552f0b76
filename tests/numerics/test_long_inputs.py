"""Long inputs without a reference: few evaluations for right gradients; wrong ones are found at every scale."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.sampling.directions import focuses, generator_of
from gradcli.numerics.screen.long_inputs import joint_reading
from gradcli.numerics.screen.pair_result import short_start
from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import space

ENTRIES = 30_000
"""So many that single outputs are not watched."""
SCALES = {"large": 1.0, "small": 2.0**-12, "tiny": 2.0**-23}


class Elementwise(VectorMap):
    """A function of each entry, with its derivative; one entry of the claim is multiplied by `factor`."""

    def __init__(self, function, derivative, place: int = 0, factor: float = 1.0) -> None:
        self.function, self.derivative, self.place, self.factor = function, derivative, place, factor
        self.domain = self.codomain = space((ENTRIES,))

    def value(self, x):
        return self.function(x)

    def vjp(self, x, cotangent):
        gradient = self.derivative(x) * cotangent
        gradient[self.place] *= self.factor
        return gradient


def inputs() -> np.ndarray:
    """Most entries near one, and some of two smaller scales."""
    rng = np.random.default_rng(11)
    x = rng.uniform(0.5, 1.0, ENTRIES) * rng.choice([-1.0, 1.0], ENTRIES)
    x[1::100] *= SCALES["small"]
    x[2::1000] *= SCALES["tiny"]
    return x


PLACES = {"large": 0, "small": 1, "tiny": 2}
FUNCTIONS = {
    "tanh": (np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "square": (lambda x: x * x, lambda x: 2 * x),
    "exp": (np.exp, np.exp),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_a_right_gradient_takes_few_evaluations(name, seed):
    found = verify(Elementwise(*FUNCTIONS[name]), inputs(), seed=seed)
    assert {block.outcome for block in found.blocks} == {Outcome.AGREES}
    assert found.evaluations <= 16


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", PLACES)
@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_entry_of_any_scale_is_found(group, seed):
    wrong = Elementwise(*FUNCTIONS["tanh"], place=PLACES[group], factor=1.5)
    found = verify(wrong, inputs(), seed=seed)
    assert {block.outcome for block in found.blocks} == {Outcome.DIFFERS}


def test_groups_of_small_scale_are_certified_together_and_never_with_a_wrong_entry():
    for factor, place in ((1.0, 0), (1.5, PLACES["small"]), (1.5, PLACES["tiny"])):
        map_ = CountedMap(Elementwise(*FUNCTIONS["tanh"], place=place, factor=factor))
        site = Site.at(map_, inputs(), generator_of(1))
        places = map_.domain.slices[0]
        groups = focuses(site.scales, places)[1:]
        assert len(groups) == 2
        assert (joint_reading(site, places, groups) is None) == (factor != 1.0)


def test_the_first_step_does_not_shrink_where_the_sum_is_small_by_accident():
    starts = []
    for seed in range(20):
        map_ = CountedMap(Elementwise(lambda x: 100 * np.tanh(x), lambda x: 100 / np.cosh(x) ** 2))
        starts.append(short_start(Site.at(map_, inputs(), generator_of(seed)), [(0, 0)]))
    assert max(starts) <= 4 * min(starts)
