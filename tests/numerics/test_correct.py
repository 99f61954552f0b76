"""A correct gradient is never called wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.localise.evidence import make_table
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.verify import Doubt, Outcome, verify
from tests.numerics.cases import AWKWARD, ORDINARY, Case, FormulaMap, elementwise, space
from tests.numerics.expressions import random_case


def bell_slope(x: np.ndarray) -> np.ndarray:
    return ((1 - np.tanh(x) ** 2) - 2 * x * np.tanh(x)) * np.exp(-x * x)


def run(case: Case, seed: int, **options):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verify(case.map(), case.x, seed=seed, **options)


@pytest.mark.parametrize("case", ORDINARY, ids=lambda case: case.name)
def test_ordinary_maps_agree_after_six_evaluations_a_direction(case) -> None:
    result = run(case, 0)
    assert {block.outcome for block in result.blocks} == {Outcome.AGREES}
    assert all(block.resolution < 1e-8 for block in result.blocks)
    assert result.evaluations <= 7 + 12 * len(case.inputs)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("case", AWKWARD, ids=lambda case: case.name)
def test_awkward_maps_never_differ(case) -> None:
    for seed in range(4):
        for block in run(case, seed).blocks:
            assert block.outcome is not Outcome.DIFFERS, (seed, block)
            if case.sure:
                assert block.outcome is Outcome.AGREES, (seed, block)


def test_random_expressions_never_differ() -> None:
    undecided = 0
    for seed in range(20_000, 20_200):
        expression, x = random_case(seed)
        map_ = FormulaMap(lambda p, e=expression: np.array([e(p)]), expression.gradient, space(x.shape), space(()))
        with np.errstate(all="ignore"):
            block = verify(map_, x, seed=seed).blocks[0]
        assert block.outcome is not Outcome.DIFFERS, seed
        undecided += block.outcome is Outcome.UNDECIDED
    assert undecided <= 6


def test_complex_maps_are_pairs_of_reals() -> None:
    domain = space((2,), dtype="complex128")

    def square(x: np.ndarray) -> np.ndarray:
        return (x.view(complex) ** 2).view(float)

    def jacobian(x: np.ndarray) -> np.ndarray:
        rows = np.zeros((4, 4))
        for k, z in enumerate(2 * x.view(complex)):
            rows[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[z.real, -z.imag], [z.imag, z.real]]
        return rows

    x = np.array([0.3, -1.2, 2.0, 0.7])
    assert verify(FormulaMap(square, jacobian, domain, domain), x, seed=0).blocks[0].outcome is Outcome.AGREES
    wrong = verify(FormulaMap(square, jacobian, domain, domain, lambda j: j.T), x, seed=0).blocks[0]
    assert wrong.outcome is Outcome.DIFFERS


def test_many_outputs_agree() -> None:
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((150, 120)) / 11
    map_ = FormulaMap(
        lambda x: np.tanh(weights @ x),
        lambda x: weights / np.cosh(weights @ x)[:, None] ** 2,
        space((120,)),
        space((100,), (50,)),
    )
    result = verify(map_, rng.standard_normal(120), seed=0)
    assert [block.outcome for block in result.blocks] == [Outcome.AGREES] * 2
    assert result.vjps <= 6


def test_a_rectifier_at_zero_is_judged_close_by_and_its_kink_is_named() -> None:
    case = next(case for case in AWKWARD if case.name == "rectifier at zero")
    result = run(case, 0)
    assert result.moved
    assert result.blocks[0].outcome is Outcome.AGREES
    (kink,) = result.kinks
    assert (kink.coordinate, kink.claimed) == (1, 0.0)
    assert kink.left == pytest.approx(0, abs=1e-9)
    assert kink.right == pytest.approx(1, abs=1e-9)


def test_a_kink_everywhere_accepts_a_claim_between_the_slopes() -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.abs(x - x) + np.abs(x - np.round(x, 13))  # kinks on a grid finer than any move

    block = verify(FormulaMap(function, lambda x: 0 * np.diag(x), space((1,)), space((1,))), np.array([0.7]), seed=0)
    assert block.blocks[0].outcome is not Outcome.DIFFERS


def test_a_derivative_that_is_zero_everywhere_is_said_to_be() -> None:
    for name in ("sign", "constant", "zero"):
        case = next(case for case in AWKWARD if case.name == name)
        block = run(case, 0).blocks[0]
        assert block.zero_everywhere
        assert block.resolution is None


def test_a_derivative_that_is_zero_but_for_rounding_is_zero_everywhere() -> None:
    map_ = FormulaMap(lambda x: (x + 3) - (x + 2) + 1e-17 * x, lambda x: 1e-17 * np.eye(3), space((3,)), space((3,)))
    block = verify(map_, np.array([0.3, -1.0, 2.0]), seed=0).blocks[0]
    assert block.outcome is not Outcome.DIFFERS


def test_empty_blocks_have_no_signal() -> None:
    map_ = FormulaMap(lambda x: x[:0], lambda x: np.zeros((0, 2)), space((0,), (2,)), space((0,)))
    result = verify(map_, np.ones(2), seed=0)
    assert [block.doubt for block in result.blocks] == [Doubt.NO_SIGNAL] * 2
    assert result.evaluations == 0


def test_a_forward_that_is_not_finite_has_no_domain() -> None:
    map_ = FormulaMap(lambda x: x * np.nan, lambda x: np.diag(x), space((2,)), space((2,)))
    assert verify(map_, np.ones(2), seed=0).blocks[0].doubt is Doubt.DOMAIN


def test_points_beyond_the_domain_are_no_kinks() -> None:
    slope = np.errstate(all="ignore")(lambda x: np.diag(-1 / np.sqrt(1 - x * x)))
    map_ = FormulaMap(np.errstate(all="ignore")(np.arccos), slope, space((3,)), space((3,)))
    (block,) = verify(map_, np.array([0.5, 2.0, -0.25]), seed=0).blocks
    assert (block.outcome, block.doubt) == (Outcome.UNDECIDED, Doubt.DOMAIN)
    assert "1 of 3 entries" in str(block.note)


def test_the_budget_is_kept_to() -> None:
    case = ORDINARY[0]
    result = run(case, 0, budget=1)
    assert result.blocks[0].doubt is Doubt.BUDGET
    assert result.notes


@pytest.mark.parametrize("budget", range(1, 150, 7))
def test_a_budget_that_ends_while_other_points_are_tried_leaves_the_block_undecided(budget: int) -> None:
    map_ = FormulaMap(np.floor, lambda x: np.zeros((3, 3)), space((3,)), space((3,)))
    (block,) = verify(map_, np.array([0.3, 0.6, 2.4]), seed=0, budget=budget).blocks
    assert block.doubt is Doubt.BUDGET or block.outcome is Outcome.AGREES


def test_error_bound_and_resolution_of_a_pass_are_of_one_direction() -> None:
    case = elementwise("bell", lambda x: np.tanh(x) * np.exp(-x * x), bell_slope, np.zeros(12))
    for seed in range(60):
        x = np.random.default_rng(seed).standard_normal(12)
        (block,) = verify(case.map(), x, seed=seed).blocks
        assert block.outcome is Outcome.AGREES
        assert block.max_rel_error < block.resolution, seed
        assert block.max_abs_error < block.bound, seed
    (wrong,) = verify(case.map(lambda j: j * (1 + 1e-6)), x, seed=seed).blocks
    assert wrong.outcome is Outcome.DIFFERS


def test_the_same_seed_gives_the_same_verification() -> None:
    one, two = run(ORDINARY[0], 3), run(ORDINARY[0], 3)
    assert one.blocks == two.blocks


def test_the_table_of_a_block_that_agrees_is_within_its_bounds() -> None:
    site = Site.at(CountedMap(ORDINARY[0].map()), ORDINARY[0].x, np.random.default_rng(0))
    table = make_table(site, 0, 0)
    assert table is not None
    assert table.complete
    assert (np.abs(table.claimed - table.numeric) <= table.bound + 1e-14).all()


def test_only_the_chosen_inputs_are_checked() -> None:
    case = next(case for case in ORDINARY if case.name == "product of two inputs")
    assert [block.input for block in run(case, 0, inputs=[1]).blocks] == [1]


def test_a_point_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="length 6"):
        verify(ORDINARY[0].map(), np.ones(5), seed=0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rate", [24.9, 28.0])
def test_what_oscillates_faster_than_steps_can_follow_is_never_wrong(rate, seed) -> None:
    def function(x: np.ndarray) -> np.ndarray:
        return np.sin(np.exp(x)) * np.exp(x) / x

    def slope(x: np.ndarray) -> np.ndarray:
        size = np.exp(x)
        return np.diag((np.cos(size) * size * size + np.sin(size) * size * (1 - 1 / x)) / x)

    map_ = FormulaMap(function, slope, space((1,)), space((1,)))
    assert verify(map_, np.array([rate + 0.01 * seed]), seed=seed).blocks[0].outcome is not Outcome.DIFFERS


@pytest.mark.parametrize("seed", range(4))
def test_nor_is_a_small_term_that_does_so_beside_a_smooth_one(seed) -> None:
    map_ = FormulaMap(
        lambda x: np.arctan(x) + 1e-8 * np.sin(1e40 * x),
        lambda x: np.diag(1 / (1 + x * x) + 1e32 * np.cos(1e40 * x)),
        space((1,)),
        space((1,)),
    )
    assert verify(map_, np.array([0.3 + 0.1 * seed]), seed=seed).blocks[0].outcome is not Outcome.DIFFERS


@pytest.mark.parametrize("seed", range(8))
def test_nor_is_a_term_that_does_so_beside_values_that_are_hundreds_of_times_as_large(seed) -> None:
    def slope(x: np.ndarray) -> np.ndarray:
        fast = np.exp(x - 1.5)
        return np.diag(2 * x - np.exp(np.cos(fast)) * np.sin(fast) * fast)

    map_ = FormulaMap(lambda x: x * x + np.exp(np.cos(np.exp(x - 1.5))), slope, space((1,)), space((1,)))
    assert verify(map_, np.array([27.69 + 0.01 * seed]), seed=seed).blocks[0].outcome is not Outcome.DIFFERS


@pytest.mark.parametrize("size", [1e3, 1e8, 1e14])
def test_a_gross_error_beside_noise_is_one_all_the_same(size) -> None:
    map_ = FormulaMap(
        lambda x: np.arctan(x).astype(np.float32).astype(np.float64),
        lambda x: size * np.diag(1 / (1 + x * x)),
        space((3,)),
        space((3,)),
    )
    assert verify(map_, np.array([0.3, 0.4, -1.2]), seed=0).blocks[0].outcome is Outcome.DIFFERS
