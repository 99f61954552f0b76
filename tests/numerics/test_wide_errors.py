"""Values of few digits: what is clearly wrong differs, and what jumps, folds or floors of its own accord does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.confirm.wide_steps import agreement
from gradcli.numerics.differences.estimate import FAIL_FACTOR
from gradcli.numerics.differences.formats import BFLOAT16
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.regularity.quantisation import has_plateaus, is_rough
from gradcli.numerics.regularity.stored_format import floating_format
from gradcli.numerics.verify import Outcome
from tests.numerics.cases import Case, elementwise
from tests.numerics.test_wide_steps import CASES, POINT, Array, Spoil, brain, half, outcome

ROUNDED = [
    *CASES[:5],
    elementwise("float32 exponential", lambda x: np.exp(x.astype(np.float32)).astype(float), np.exp, POINT),
    elementwise("one bfloat16 entry", brain, np.ones_like, np.array([5.3])),
]
SPOILS: dict[str, Spoil] = {
    "sign": lambda j: -j,
    "doubled": lambda j: 2 * j,
    "next to nothing": lambda j: 1e-4 * j,
    "reversed": lambda j: j[::-1],
}


WRONG = [(case, name) for case in ROUNDED for name in SPOILS if name != "reversed" or case.x.size > 1]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("case", "name"), WRONG, ids=lambda part: getattr(part, "name", part))
def test_what_is_clearly_wrong_differs_and_its_table_shows_it(case: Case, name: str) -> None:
    block = outcome(case, 1, SPOILS[name])
    assert block.outcome is Outcome.DIFFERS, block
    assert block.table is not None
    wrong = np.abs(block.table.claimed - block.table.numeric) > FAIL_FACTOR * block.table.bound
    right = np.abs(case.jacobian(block.table.point) - block.table.numeric) <= FAIL_FACTOR * block.table.bound
    assert wrong.any()
    assert right.all()


@pytest.mark.parametrize("case", [CASES[0], *CASES[2:5]], ids=lambda case: case.name)
def test_ten_percent_differ_where_values_have_eleven_bits_or_three_digits(case: Case) -> None:
    def entry(j: Array) -> Array:
        wrong = j.copy()
        wrong[np.unravel_index(np.argmax(np.abs(wrong)), wrong.shape)] *= 1.1
        return wrong

    assert outcome(case, 2, lambda j: 1.1 * j).outcome is Outcome.DIFFERS
    assert outcome(case, 2, entry).outcome is Outcome.DIFFERS


def test_a_sign_of_an_iteration_that_stops_early_stays_open() -> None:
    """The steps of an iteration are not rounding plateaus."""
    assert outcome(CASES[5], 0, lambda j: -j).outcome is not Outcome.AGREES


def step_width(x: Array) -> Array:
    return x + np.tanh(300 * (x - 0.5))


JUMPING = [
    elementwise("fraction", lambda x: half(np.mod(half(x), 1.0)), np.ones_like, 3 * POINT),
    elementwise("fast remainder", lambda x: half(np.mod(half(x), 0.01) * 50), lambda x: np.full_like(x, 50.0), POINT),
    elementwise("floor and square", lambda x: half(np.floor(x) + x * x), lambda x: 2 * x, POINT),
    elementwise("x less its round", lambda x: half(x - np.round(x)), np.ones_like, 2 * POINT),
    elementwise("sign and square", lambda x: half(np.sign(x) * x * x), lambda x: 2 * np.abs(x), POINT),
    elementwise(
        "threshold", lambda x: half(np.where(x > 0.5, x * x, 3 * x)), lambda x: np.where(x > 0.5, 2 * x, 3.0), POINT
    ),
    elementwise("kink", lambda x: np.round(np.abs(x - 0.25), 3), lambda x: np.sign(x - 0.25), POINT),
    elementwise("jump", lambda x: np.round(x + (x > 0.3), 3), np.ones_like, POINT),
    elementwise("steep", lambda x: half(step_width(x)), lambda x: 1 + 300 / np.cosh(300 * (x - 0.5)) ** 2, POINT),
    elementwise("fast sine", lambda x: half(np.sin(1e4 * x)), lambda x: 1e4 * np.cos(1e4 * x), POINT),
    elementwise("a float64 part", lambda x: brain(np.sin(brain(x))) + x * x, lambda x: np.cos(x) + 2 * x, POINT),
    elementwise("grid and square", lambda x: np.floor(1e3 * x) / 1e3 + x * x, lambda x: 2 * x, POINT),
    elementwise("a grid, straight through", lambda x: np.round(1e3 * x) / 1e3, np.ones_like, POINT),
    elementwise("a grid, zero", lambda x: np.round(1e3 * x) / 1e3, np.zeros_like, POINT),
    elementwise("overflow", lambda x: half(np.exp(3 * x)), lambda x: 3 * np.exp(3 * x), 3 + POINT),
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", JUMPING, ids=lambda case: case.name)
@pytest.mark.parametrize("seed", range(2))
def test_jumps_and_folds_of_a_functions_own_are_never_held_against_a_right_claim(case: Case, seed: int) -> None:
    assert outcome(case, seed).outcome is not Outcome.DIFFERS


def test_entries_claimed_to_be_zero_on_a_grid_are_not_held_against_the_claim() -> None:
    """Some entries straight through and the others zero: who writes that means it."""
    case = elementwise(
        "grid", lambda x: np.round(1e3 * x) / 1e3, lambda x: (np.arange(x.size) % 2).astype(float), POINT
    )
    assert outcome(case, 0).outcome is not Outcome.DIFFERS


def site_of(case: Case) -> Site:
    with np.errstate(all="ignore"):
        return Site.at(CountedMap(case.map(None)), case.x, np.random.default_rng(3))


def test_plateaus_and_formats_are_told_from_slopes_and_grids() -> None:
    point = np.array([0.7, -1.3, 0.21, 1.7])
    plateaus = elementwise("bfloat16", lambda x: brain(np.sin(x)), np.cos, point)
    grid = elementwise("eighths of eighths", lambda x: np.round(64 * x) / 64, np.ones_like, point)
    rising = elementwise("rising", lambda x: brain(x) + x * x, lambda x: 1 + 2 * x, point)
    assert has_plateaus(site_of(plateaus), (0, 0))
    assert has_plateaus(site_of(grid), (0, 0))
    assert not has_plateaus(site_of(rising), (0, 0))
    assert floating_format(site_of(plateaus), 0) is BFLOAT16
    assert floating_format(site_of(grid), 0) is None


def test_outputs_that_do_not_change_are_not_rough() -> None:
    """Their noise, one rounding, is an infinite part of a change of zero."""
    smooth = elementwise("cube", lambda x: x**3, lambda x: 3 * x * x, POINT)
    stepped = elementwise("grid", lambda x: np.round(1e3 * x) / 1e3, np.ones_like, POINT)
    still = replace(
        smooth,
        function=lambda x: np.append(x**3, [2.0 / 3]),
        jacobian=lambda x: np.vstack([np.diag(3 * x * x), np.zeros(x.size)]),
        outputs=((POINT.size + 1,),),
    )
    assert not is_rough(site_of(still), (0, 0))
    assert is_rough(site_of(stepped), (0, 0))


def test_a_row_of_exact_zeros_beside_rounded_ones_does_not_keep_a_claim_from_agreeing() -> None:
    case = elementwise("float16 with a zero", half, np.ones_like, POINT)
    padded = replace(
        case,
        function=lambda x: np.where(np.arange(x.size) == 1, 0.0, half(x)),
        jacobian=lambda x: np.diag((np.arange(x.size) != 1).astype(float)),
    )
    found = agreement(site_of(padded), (0, 0), 0.0)
    assert found is not None
    assert 0 < found.resolution < 0.1
