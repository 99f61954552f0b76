"""Properties of spaces, maps, probes and extrapolation weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradcli.numerics.differences.stencil import even_weights, odd_weights
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.sampling.directions import entry_scales, focuses, random_direction, snap
from gradcli.numerics.sampling.line import power_of_two_above
from tests.numerics.cases import FormulaMap, space

shapes = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), max_size=4)


@given(shapes, st.sampled_from(["float64", "complex128"]))
@settings(max_examples=60, deadline=None)
def test_flattening_and_unflattening_are_inverse(shape_list, dtype) -> None:
    domain = Space(tuple(Block(f"b{i}", shape, dtype) for i, shape in enumerate(shape_list)))
    vector = np.arange(domain.size, dtype=float)
    arrays = domain.unflatten(vector)
    assert [a.shape for a in arrays] == [tuple(s) for s in shape_list]
    assert np.array_equal(domain.flatten(arrays), vector)


def test_a_single_array_is_joined_without_a_copy() -> None:
    one, two = space((3,)), space((3,), (2,))
    array = np.arange(3.0)
    assert np.shares_memory(one.joined([array]), array)
    for domain, arrays in (
        (one, [np.arange(3.0, dtype=np.float32)]),
        (one, [np.arange(6.0)[::2]]),
        (two, [array, [7, 8]]),
    ):
        joined = domain.joined(arrays)
        assert np.array_equal(joined, domain.flatten(arrays))
        assert joined.dtype == np.float64
        assert not any(np.shares_memory(joined, np.asarray(each)) for each in arrays)
    complex_one = Space((Block("z", (1,), "complex128"),))
    assert complex_one.joined([np.array([3 + 4j])]).tolist() == [3, 4]
    with pytest.raises(ValueError, match="expected shape"):
        one.joined([np.zeros(2)])


def test_complex_numbers_are_interleaved_pairs() -> None:
    domain = Space((Block("r", (2,), "float64"), Block("z", (2,), "complex128")))
    assert domain.flatten([[1, 2], [3 + 4j, 5 + 6j]]).tolist() == [1, 2, 3, 4, 5, 6]
    place = domain.locate(5)
    assert (place.block, place.index, place.part) == (1, (1,), "imag")
    assert domain.locate(1).part is None


def test_scalars_have_one_coordinate_and_an_empty_index() -> None:
    domain = space((), (0,), (2,))
    assert domain.size == 3
    assert domain.locate(0).index == ()
    assert domain.locate(1).block == 2


def test_wrong_shapes_are_refused() -> None:
    domain = space((2,), (3,))
    with pytest.raises(ValueError, match=r"expected shape \(3,\), got shape=\(2,\)"):
        domain.flatten([np.zeros(2), np.zeros(2)])
    with pytest.raises(ValueError, match="expected 2 arrays"):
        domain.flatten([np.zeros(2)])
    with pytest.raises(ValueError, match="real numbers"):
        domain.flatten([np.zeros(2) * 1j, np.zeros(3)])
    with pytest.raises(ValueError, match="length 5"):
        domain.unflatten(np.zeros(4))
    with pytest.raises(IndexError, match="i=5"):
        domain.locate(5)


@given(st.floats(1e-300, 1e300))
@settings(max_examples=100, deadline=None)
def test_the_scale_is_the_least_power_of_two_above(number) -> None:
    scale = float(power_of_two_above(np.array([number]))[0])
    assert scale / 2 < number <= scale
    assert np.frexp(scale)[0] == 0.5


def test_zeros_take_the_scale_of_their_neighbours() -> None:
    x = np.array([0.0, 3.0, 3.0, 0.0])
    assert entry_scales(space((3,), (1,)), x).tolist() == [4, 4, 4, 1]


@given(st.integers(0, 2**32), st.floats(-8, 8))
@settings(max_examples=60, deadline=None)
def test_displacements_on_the_grid_are_exact(seed, exponent) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(5) * 10.0**exponent
    scales = entry_scales(space((5,)), x)
    x, v = snap(x, scales), random_direction(rng, scales)
    t = round(rng.uniform(1e-9, 0.1) * 2**44) / 2**44
    assert np.array_equal((x + t * v) - x, t * v)


def test_small_entries_are_moved_alone() -> None:
    scales = np.array([1.0, 2.0**-30, 1.0, 2.0**-14])
    found = focuses(scales, slice(0, 4))
    assert [np.flatnonzero(focus.drawn).tolist() for focus in found] == [[0, 1, 2, 3], [3], [1]]
    assert found[2].judged.max() == 2.0**-30


def test_weights_extrapolate_their_polynomials_exactly() -> None:
    steps = (0.8, 0.43, 0.2, 0.11)
    weights = odd_weights(steps)
    assert sum(weights) == pytest.approx(1)
    for power in (2, 4, 6):
        assert sum(w * t**power for w, t in zip(weights, steps, strict=True)) == pytest.approx(0, abs=1e-12)
    for power in (1, 3, 5):
        assert sum(w * t**power for w, t in zip(even_weights(steps), steps, strict=True)) == pytest.approx(0, abs=1e-9)


def test_counting_counts_every_row() -> None:
    counted = CountedMap(FormulaMap(np.sin, lambda x: np.diag(np.cos(x)), space((2,)), space((2,))))
    counted.value(np.ones(2))
    counted.vjp(np.ones(2), np.ones(2))
    counted.vjp_many(np.ones(2), np.eye(2))
    assert (counted.values, counted.vjps) == (1, 3)
