"""Long inputs without a reference: few evaluations for right gradients; wrong ones are found at every scale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.sampling.directions import Focus, focuses, generator_of, random_direction
from gradcli.numerics.screen.long_inputs import joint_reading, missed, noise_of
from gradcli.numerics.screen.pair_result import SHORTEST_START, short_start
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
    assert found.evaluations <= 11


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
        v = random_direction(site.rng, site.scales)
        first = site.quick_reading(v, Focus(drawn=site.scales, judged=site.scales), SHORTEST_START)
        assert (joint_reading(site, places, groups, first) is None) == (factor != 1.0)


class Summed(Elementwise):
    """The sum of it, whose terms nearly cancel: its values have the noise of the terms, not that of their own size."""

    def __init__(self, *given, **named) -> None:
        super().__init__(*given, **named)
        self.codomain = space((1,))

    def value(self, x):
        terms = self.function(x)
        return np.array([terms.cumsum()[-1]])  # added up one by one

    def vjp(self, x, cotangent):
        return super().vjp(x, np.full(ENTRIES, cotangent[0]))


def test_the_noise_of_a_sum_that_cancels_is_mostly_not_measured_again_along_its_groups():
    found = [verify(Summed(*FUNCTIONS["tanh"]), inputs(), seed=seed) for seed in range(10)]
    assert {block.outcome for each in found for block in each.blocks} == {Outcome.AGREES}
    assert sum(each.evaluations <= 9 for each in found) >= 7


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("group", "factor"), [("large", 1 + 1e-6), ("small", 1 + 1e-5), ("tiny", 1.01)])
@pytest.mark.parametrize("seed", range(6))
def test_a_wrong_entry_of_any_scale_is_found_in_spite_of_the_noise_of_a_sum(group, factor, seed):
    found = verify(Summed(*FUNCTIONS["tanh"], place=PLACES[group], factor=factor), inputs(), seed=seed)
    assert {block.outcome for block in found.blocks} == {Outcome.DIFFERS}


def test_an_error_along_all_entries_is_not_taken_for_noise_of_the_values():
    map_ = CountedMap(Summed(*FUNCTIONS["tanh"]))
    site = Site.at(map_, inputs(), generator_of(1))
    focus = Focus(drawn=site.scales, judged=site.scales)
    first = site.quick_reading(random_direction(site.rng, focus.drawn), focus, 0.02)
    short = site.quick_reading(random_direction(site.rng, focus.drawn), focus, 0.2).short
    error = noise_of(replace(first, reading=replace(first.reading, numeric=first.reading.claimed + 1e-9)))
    assert (missed(short, error, first.short.gain) - missed(short, 0 * error, first.short.gain) <= 2.6e-10).all()


def test_the_first_step_does_not_shrink_where_the_sum_is_small_by_accident():
    starts = []
    for seed in range(20):
        map_ = CountedMap(Elementwise(lambda x: 100 * np.tanh(x), lambda x: 100 / np.cosh(x) ** 2))
        starts.append(short_start(Site.at(map_, inputs(), generator_of(seed)), [(0, 0)]))
    assert max(starts) <= 4 * min(starts)
