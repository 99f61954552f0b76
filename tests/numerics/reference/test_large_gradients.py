"""Small errors in few entries of a large gradient, beside a witness: seen, located and confirmed in few calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.outcome import AUTODIFF
from gradcli.numerics.verify import Doubt, Outcome, verify
from tests.numerics.cases import space

N = 120_000
ENTRY = 77_777
Array = np.ndarray
Spoil = Callable[[Array, Array], Array]


class Tanh(VectorMap):
    """tanh of every entry, with a claimed slope that `spoil` makes from the point and the right one."""

    def __init__(self, spoil: Spoil | None = None, size: int = N) -> None:
        self.spoil, self.domain, self.codomain = spoil, space((size,)), space((size,))

    def value(self, x: Array) -> Array:
        return np.tanh(x)

    def vjp(self, x: Array, cotangent: Array) -> Array:
        slope = 1 - np.tanh(x) ** 2
        return cotangent * (slope if self.spoil is None else self.spoil(x, slope))


def one_entry(error: float, entry: int = ENTRY) -> Spoil:
    def spoil(_: Array, slope: Array) -> Array:
        slope = slope.copy()
        slope[entry] *= 1 + error
        return slope

    return spoil


def noisy(entry: int, size: float) -> Spoil:
    """One entry is off by numbers that change with every bit of its input."""

    def spoil(x: Array, slope: Array) -> Array:
        slope = slope.copy()
        digits = float(np.frexp(x[entry])[0] * 2.0**51) % 1.0
        slope[entry] *= 1 + size * (digits - 0.5)
        return slope

    return spoil


def point(size: int = N, seed: int = 4) -> Array:
    x = 0.5 * np.random.default_rng(seed).standard_normal(size)
    x[[ENTRY % size, 5]] = 0.2
    return x


@pytest.mark.parametrize("error", [1e-6, 1e-4, -1e-5])
def test_one_wrong_entry_is_confirmed_and_its_output_shown_in_few_calls(error) -> None:
    claim, witness = CountedMap(Tanh(one_entry(error))), CountedMap(Tanh())
    result = verify(claim, point(), seed=1, witness=witness)
    (block,) = result.blocks
    assert (block.outcome, block.reference) == (Outcome.DIFFERS, AUTODIFF)
    assert block.wrong_columns.tolist() == [ENTRY]
    assert block.table.rows.tolist() == [ENTRY], "the output through which the entry is wrong"
    assert ENTRY in block.table.columns
    assert result.evaluations <= 60
    assert claim.vjps <= 40
    assert witness.vjps <= 40


def test_an_entry_that_is_wrong_by_its_own_noise_is_not_held_against_the_claim() -> None:
    (block,) = verify(Tanh(noisy(ENTRY, 8e-6)), point(), seed=1, witness=Tanh()).blocks
    assert block.outcome is not Outcome.DIFFERS
    assert block.outcome is Outcome.AGREES or block.doubt is Doubt.NOISE


def test_noise_in_one_entry_excuses_no_other() -> None:
    def spoil(x: Array, slope: Array) -> Array:
        return one_entry(1e-5)(x, noisy(5, 8e-6)(x, slope))

    (block,) = verify(Tanh(spoil), point(), seed=1, witness=Tanh()).blocks
    assert block.outcome is not Outcome.AGREES


def test_a_wrong_witness_of_a_large_map_is_overruled() -> None:
    (block,) = verify(Tanh(), point(), seed=1, witness=Tanh(one_entry(1e-5))).blocks
    assert block.outcome is Outcome.AGREES
