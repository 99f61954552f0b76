"""A planted error is always found, and at the right place."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gradcli.numerics.claims.site import Site
from gradcli.numerics.course.protocol import AS_COMPUTED
from gradcli.numerics.localise.entries import locate
from gradcli.numerics.maps.vector_map import CountedMap
from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import AWKWARD, ORDINARY, FormulaMap, space
from tests.numerics.expressions import random_case

SURE = [case for case in ORDINARY + AWKWARD if case.sure]
TIED = ("ties", "equal", "zeros only")


def outcome(map_, x, seed=3):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return verify(map_, x, seed=seed)


def differs(map_, x, seed=3) -> bool:
    return any(block.outcome is Outcome.DIFFERS for block in outcome(map_, x, seed).blocks)


def scaled_entry(jacobian: np.ndarray, factor: float):
    """Scale the entry that is largest at the point, wherever the Jacobian is asked for."""
    row, column = np.unravel_index(np.abs(jacobian).argmax(), jacobian.shape)

    def spoil(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[row, column] *= factor
        return j

    return spoil


@pytest.mark.sampled(14)
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("case", SURE, ids=lambda case: case.name)
def test_relative_errors_are_found(case, delta) -> None:
    with np.errstate(all="ignore"):
        jacobian = case.map().claimed(case.x)
    if not np.abs(jacobian).max() > 0:
        pytest.skip("a factor does not change a gradient of zeros")
    assert differs(case.map(lambda j: j * (1 + delta)), case.x)
    if not any(word in case.name for word in TIED):
        assert differs(case.map(scaled_entry(jacobian, 1 + delta)), case.x)


def test_derivatives_of_an_iteration_come_with_a_word_on_their_bounds() -> None:
    iterating = next(case for case in AWKWARD if case.name == "iteration to 1e-6")
    notes = [outcome(case.map(lambda j: 1.3 * j), case.x).blocks[0].note for case in (iterating, ORDINARY[0])]
    assert notes == [AS_COMPUTED, None]


def test_what_is_undecided_has_no_bound_or_resolution() -> None:
    coarse = next(case for case in AWKWARD if case.name == "iteration to 1e-4")
    (block,) = outcome(coarse.map(lambda j: 1.01 * j), coarse.x, seed=2).blocks
    assert block.outcome is Outcome.UNDECIDED
    assert (block.bound, block.resolution) == (None, None)
    assert block.max_rel_error == pytest.approx(1e-2, rel=0.1)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("case", SURE, ids=lambda case: case.name)
def test_added_negated_and_missing_gradients_are_found(case) -> None:
    with np.errstate(all="ignore"):
        jacobian = case.map().claimed(case.x)
    largest = np.abs(jacobian).max()
    assert differs(case.map(lambda j: j + 0.1 * (largest or 1.0)), case.x)
    if largest > 0:
        assert differs(case.map(lambda j: -j), case.x)
        assert differs(case.map(lambda j: 0 * j), case.x)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("first", [30_000, 30_010, 30_020])
def test_random_expressions_with_planted_errors_are_caught(first) -> None:
    caught = {1e-2: 0, 1e-4: 0, 1e-6: 0}
    for seed in range(first, first + 10):
        expression, x = random_case(seed)
        for delta in caught:
            map_ = FormulaMap(
                lambda p, e=expression: np.array([e(p)]),
                expression.gradient,
                space(x.shape),
                space(()),
                lambda j, d=delta: j * (1 + d),
            )
            with np.errstate(all="ignore"):
                block = verify(map_, x, seed=seed).blocks[0]
            caught[delta] += block.outcome is Outcome.DIFFERS
            assert block.outcome is not Outcome.AGREES or block.resolution > delta / 20, (seed, delta, block)
    assert min(caught.values()) >= 9


def test_swapped_gradients_are_found() -> None:
    case = next(case for case in ORDINARY if case.name == "product of two inputs")
    result = outcome(case.map(lambda j: np.hstack([j[:, 3:], j[:, :3]])), case.x)
    assert [block.outcome for block in result.blocks] == [Outcome.DIFFERS] * 2


def test_only_the_wrong_input_differs() -> None:
    case = next(case for case in ORDINARY if case.name == "product of two inputs")
    result = outcome(case.map(lambda j: np.hstack([j[:, :3], 1.001 * j[:, 3:]])), case.x)
    assert [block.outcome for block in result.blocks] == [Outcome.AGREES, Outcome.DIFFERS]


def test_a_transposed_gradient_is_found_even_at_a_symmetric_matrix() -> None:
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((4, 4))
    point = np.eye(4) + 0.5
    map_ = FormulaMap(lambda x: np.array([weights.ravel() @ np.sin(x)]), lambda x: (weights.T.ravel() * np.cos(x)),
                      space((4, 4)), space(()))  # fmt: skip
    assert differs(map_, point.ravel())


def test_the_table_shows_where() -> None:
    case = ORDINARY[0]

    def spoil(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[2, 2] *= 1.5
        return j

    (block,) = outcome(case.map(spoil), case.x).blocks
    table = block.table
    wrong = np.abs(table.claimed - table.numeric) > 3 * table.bound + 1e-12
    assert table.complete
    assert np.argwhere(wrong).tolist() == [[2, 2]]
    assert block.max_abs_error == pytest.approx(0.5 * abs(np.cos(case.x[2])), rel=1e-6)


def test_a_claim_of_nan_is_wrong_where_the_derivative_is_finite() -> None:
    def spoil(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[1, 1] = np.nan
        return j

    (block,) = outcome(ORDINARY[0].map(spoil), ORDINARY[0].x).blocks
    assert block.outcome is Outcome.DIFFERS
    assert "NaN" in block.note
    assert block.wrong_columns.tolist() == [1]


def test_a_claim_of_nan_at_a_cusp_is_noted_and_judged_close_by() -> None:
    map_ = FormulaMap(
        lambda x: np.sqrt(np.abs(x)),
        lambda x: np.diag(0.5 * np.sign(x) / np.sqrt(np.abs(x))),
        space((1,)),
        space((1,)),
    )
    result = outcome(map_, np.zeros(1))
    assert result.blocks[0].outcome is Outcome.AGREES
    assert result.moved
    assert "the gradient is NaN or infinite" in result.notes[0]


def test_a_dead_rectifier_does_not_hide_a_missing_gradient() -> None:
    map_ = FormulaMap(lambda x: np.maximum(x, 0), lambda x: 0 * np.diag(x), space((3,)), space((3,)))
    (block,) = outcome(map_, np.array([-1.0, -2.0, -0.5])).blocks
    assert block.outcome is Outcome.DIFFERS
    assert "the gradient is zero here; compared at" in block.note


@pytest.mark.parametrize("n", [1, 10, 1000, 10_000])
@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_errors_are_found_in_long_inputs_and_located(n, delta) -> None:
    rng = np.random.default_rng(n)
    a, x = rng.standard_normal(n) + 3, rng.standard_normal(n)
    right = FormulaMap(lambda p: np.array([a @ np.sin(p)]), lambda p: a * np.cos(p), space((n,)), space(()))
    assert outcome(right, x).blocks[0].outcome is Outcome.AGREES
    entry = int(np.abs(a * np.cos(x)).argmax())

    def spoil(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[0, entry] *= 1 + delta
        return j

    (block,) = outcome(FormulaMap(right.function, right.jacobian, space((n,)), space(()), spoil), x).blocks
    assert block.outcome is Outcome.DIFFERS
    if n > 400:
        assert block.wrong_columns.tolist() == [entry]
    assert entry in block.table.columns.tolist()


def test_several_wrong_entries_and_a_wrong_row_are_located() -> None:
    n = 2500
    rng = np.random.default_rng(0)
    a, x = rng.standard_normal(n) + 3, rng.standard_normal(n)
    picked = np.sort(rng.choice(n, 3, replace=False))

    def entries(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[0, picked] *= 1.01
        return j

    def row(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j.reshape(50, 50)[7] *= 1.01
        return j

    for spoil, expected in ((entries, picked), (row, np.arange(350, 400))):
        map_ = FormulaMap(
            lambda p: np.array([a @ np.sin(p)]), lambda p: a * np.cos(p), space((50, 50)), space(()), spoil
        )
        (block,) = outcome(map_, x).blocks
        assert block.outcome is Outcome.DIFFERS
        assert block.wrong_columns.tolist() == expected.tolist()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("by", [0.5, 0.01])
@pytest.mark.parametrize("wrong", ["1", "3", "10", "row", "column"])
def test_wrong_entries_are_located_in_few_directions(wrong: str, by: float, seed: int) -> None:
    side = 300
    rng = np.random.default_rng(seed)
    a, x = rng.standard_normal(side * side) + 3, rng.standard_normal(side * side)
    picked = np.zeros((side, side), bool)
    if wrong == "row":
        picked[rng.integers(side)] = True
    elif wrong == "column":
        picked[:, rng.integers(side)] = True
    else:
        picked.ravel()[rng.choice(picked.size, int(wrong), replace=False)] = True

    def claim(p: np.ndarray) -> np.ndarray:
        return a * np.cos(p) * (1 + by * picked.ravel())

    counted = CountedMap(FormulaMap(lambda p: np.array([a @ np.sin(p)]), claim, space((side, side)), space(())))
    site = Site.at(counted, x, np.random.default_rng(seed))
    site.evaluate()
    before = counted.values
    found = locate(site, 0, 0)
    assert found.entries.tolist() == np.flatnonzero(picked).tolist()
    assert counted.values - before <= {"1": 60, "3": 200, "10": 400, "row": 80, "column": 80}[wrong]


@pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-6])
def test_poles_close_by_are_no_excuse(delta: float) -> None:
    # Beside 1e-9 / sin(1 / (x - y)), whose poles are everywhere, values seem to jump as those of an iteration do.
    def function(p: np.ndarray) -> np.ndarray:
        return np.array([1e-9 / np.sin(1 / (p[2] - p[1]) + 4.2) - np.exp(p[0])])

    def gradient(p: np.ndarray) -> np.ndarray:
        angle = 1 / (p[2] - p[1]) + 4.2
        slope = 1e-9 * np.cos(angle) / np.sin(angle) ** 2 / (p[2] - p[1]) ** 2
        return (1 + delta) * np.array([-np.exp(p[0]), -slope, slope])

    x = np.array([-0.0303, -0.005, -0.0343])
    outcomes = [outcome(FormulaMap(function, gradient, space((3,)), space(())), x, seed) for seed in range(8)]
    assert all(found.blocks[0].outcome is Outcome.DIFFERS for found in outcomes)


def test_one_wrong_entry_among_many_outputs_is_found_with_its_row() -> None:
    rng = np.random.default_rng(4)
    weights = rng.standard_normal((160, 90)) + 2

    def spoil(j: np.ndarray) -> np.ndarray:
        j = j.copy()
        j[17, 33] *= 1.001
        return j

    map_ = FormulaMap(lambda x: np.sin(weights @ x), lambda x: weights * np.cos(weights @ x)[:, None], space((90,)),
                      space((160,)), spoil)  # fmt: skip
    (block,) = outcome(map_, rng.standard_normal(90) / 10).blocks
    assert block.outcome is Outcome.DIFFERS
    assert 17 in block.table.rows.tolist()
    row = block.table.rows.tolist().index(17)
    assert abs(block.table.claimed - block.table.numeric)[row].argmax() == 33


def test_an_error_below_significance_is_noted() -> None:
    (block,) = outcome(ORDINARY[0].map(lambda j: j * (1 + 1e-8)), ORDINARY[0].x).blocks
    assert block.outcome is Outcome.AGREES
    assert "not counted as an error" in block.note


def test_an_error_at_one_point_only_is_not_called_agreement() -> None:
    x = np.array([0.5, 1.25])

    def jacobian(p: np.ndarray) -> np.ndarray:
        return np.diag(np.cos(p)) * (3.0 if np.array_equal(p, x) else 1.0)

    (block,) = outcome(FormulaMap(np.sin, jacobian, space((2,)), space((2,))), x).blocks
    assert block.outcome is Outcome.UNDECIDED
    assert "at exactly this point" in block.note


def product_jacobian(x: np.ndarray, *, zeroed: bool) -> np.ndarray:
    others = np.array([np.prod(np.delete(x, i)) for i in range(x.size)])
    return np.where(x == 0, 0.0, others)[None] if zeroed else others[None]


@pytest.mark.parametrize("seed", range(2))
def test_a_zero_in_place_of_a_slope_at_an_exact_zero_is_wrong_there(seed: int) -> None:
    x = np.array([0.75, 0.0, -1.25, 0.5])
    for zeroed in (True, False):
        map_ = FormulaMap(
            lambda p: np.prod(p)[None], lambda p, z=zeroed: product_jacobian(p, zeroed=z), space((4,)), space((1,))
        )
        (block,) = verify(map_, x, seed=seed).blocks
        assert (block.special is not None) == zeroed
        assert (block.outcome is Outcome.AGREES) != zeroed
    special = (
        verify(
            FormulaMap(
                lambda p: np.prod(p)[None], lambda p: product_jacobian(p, zeroed=True), space((4,)), space((1,))
            ),
            x,
            seed=seed,
        )
        .blocks[0]
        .special
    )
    assert special.coordinate == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_choice_at_a_tie_of_a_median_is_not_wrong_there(seed: int) -> None:
    def jacobian(x: np.ndarray) -> np.ndarray:
        return np.eye(3)[np.argsort(x, kind="stable")[1]][None]

    map_ = FormulaMap(lambda x: np.median(x)[None], jacobian, space((3,)), space((1,)))
    (block,) = verify(map_, np.ones(3), seed=seed).blocks
    assert block.special is None
    assert block.outcome is not Outcome.DIFFERS


@pytest.mark.parametrize("seed", range(2))
def test_an_error_shows_where_another_input_holds_labels(seed):
    def hinged(x):
        score, label = x[:4], x[4:]
        return np.where(label == 1, score, np.where(label == -1, np.maximum(0, 3 - score), 0.0))

    def jacobian(x):
        score, label = x[:4], x[4:]
        slope = np.where(label == 1, 1.0, np.where((label == -1) & (score < 3), -1.0, 0.0))
        return np.hstack([np.diag(slope), np.zeros((4, 4))])

    def shrunk(found):
        return np.hstack([1e-4 * found[:, :4], found[:, 4:]])

    x = np.array([0.4, -1.2, 1.7, -0.3, 1.0, -1.0, 1.0, -1.0])
    shapes = space((4,), (4,)), space((4,))
    right = verify(FormulaMap(hinged, jacobian, *shapes), x, seed=seed)
    assert Outcome.DIFFERS not in {block.outcome for block in right.blocks}
    wrong = verify(FormulaMap(hinged, jacobian, *shapes, shrunk), x, seed=seed)
    assert [block.outcome for block in wrong.blocks if block.input == 0] == [Outcome.DIFFERS]


@pytest.mark.parametrize("seed", range(3))
def test_entries_that_are_zero_here_are_wrong_at_nearby_points_as_well(seed: int) -> None:
    """An input that is triangular, of which forward reads one triangle: a claim for the other one is wrong."""
    x, b = np.array([[1.5, 0, 0], [0.3, 1.2, 0], [-0.7, 0.9, 1.9]]), np.array([0.7, -1.0, 0.4])
    full = np.kron(np.eye(3), b)
    right = full * np.tril(np.ones((3, 3))).reshape(-1)
    for jacobian, expected in ((right, Outcome.AGREES), (full, Outcome.DIFFERS)):
        claim = FormulaMap(lambda x: np.tril(x.reshape(3, 3)) @ b, lambda _, j=jacobian: j, space((3, 3)), space((3,)))
        assert [block.outcome for block in verify(claim, x.reshape(-1), seed=seed).blocks] == [expected]
