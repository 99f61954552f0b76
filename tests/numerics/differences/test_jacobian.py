"""Properties of the tabulated numerical Jacobian."""

from __future__ import annotations

import numpy as np
import pytest

from gradcli.numerics.localise.jacobian import jacobian_table
from tests.numerics.cases import ORDINARY, FormulaMap, space


@pytest.mark.parametrize("case", ORDINARY, ids=lambda case: case.name)
def test_every_entry_lies_within_its_bound(case) -> None:
    table = jacobian_table(case.map(), case.x, rng=np.random.default_rng(0))
    truth = case.map().claimed(case.x)
    assert (np.abs(table.numeric - truth) <= table.bound + 1e-13 * np.abs(truth)).all()
    assert (table.bound <= 1e-7 * (np.abs(truth).max() + 1)).all()


def test_chosen_rows_and_columns_are_those_of_the_whole() -> None:
    case = next(case for case in ORDINARY if case.name == "linear")
    table = jacobian_table(case.map(), case.x, rng=np.random.default_rng(0), rows=[2, 0], columns=[5])
    assert table.numeric[:, 0] == pytest.approx(case.map().claimed(case.x)[[2, 0], 5])


def test_a_claim_that_is_met_saves_evaluations() -> None:
    case = ORDINARY[0]
    claimed = case.map().claimed(case.x)
    with_claim = jacobian_table(case.map(), case.x, rng=np.random.default_rng(0), claimed=claimed)
    without = jacobian_table(case.map(), case.x, rng=np.random.default_rng(0))
    assert with_claim.evaluations == 1 + 6 * case.x.size < without.evaluations


@pytest.mark.parametrize("case", ORDINARY, ids=lambda case: case.name)
def test_the_bounds_hold_whatever_is_claimed(case) -> None:
    truth = case.map().claimed(case.x)
    table = jacobian_table(case.map(), case.x, rng=np.random.default_rng(0), claimed=1.001 * truth)
    assert (np.abs(table.numeric - truth) <= table.bound + 1e-13 * np.abs(truth)).all()
    assert (table.bound <= 1e-7 * (np.abs(truth).max() + 1)).all()


def test_a_wrong_claim_takes_three_pairs_of_values_where_they_are_accurate() -> None:
    case = ORDINARY[0]
    wrong = 1.001 * case.map().claimed(case.x)
    assert jacobian_table(case.map(), case.x, rng=np.random.default_rng(0), claimed=wrong).evaluations == 37
    assert jacobian_table(case.map(), case.x, rng=np.random.default_rng(0), claimed=wrong, enough=0.0).evaluations > 60


def test_a_plateau_beside_a_smooth_output_gets_no_bound() -> None:
    """Three pairs of values see no change at all on a plateau, which is not a slope of zero."""
    map_ = FormulaMap(
        lambda x: np.array([np.sin(x[0]), np.round(10 * x[0]) / 10]),
        lambda x: np.ones((2, 1)),
        space((1,)),
        space((2,)),
    )
    x = np.array([0.7002])
    table = jacobian_table(map_, x, rng=np.random.default_rng(0), claimed=np.ones((2, 1)))
    assert table.smooth[0, 0]
    assert abs(table.numeric[0, 0] - np.cos(0.7002)) <= table.bound[0, 0] < 1e-7
    assert not table.smooth[1, 0] or abs(table.numeric[1, 0] - 1) <= table.bound[1, 0]


def test_too_large_a_table_is_refused() -> None:
    map_ = FormulaMap(lambda x: x, np.diag, space((400,)), space((400,)))
    with pytest.raises(ValueError, match="rows=400 x columns=400"):
        jacobian_table(map_, np.ones(400), rng=np.random.default_rng(0))
