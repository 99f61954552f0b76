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


def test_too_large_a_table_is_refused() -> None:
    map_ = FormulaMap(lambda x: x, np.diag, space((400,)), space((400,)))
    with pytest.raises(ValueError, match="rows=400 x columns=400"):
        jacobian_table(map_, np.ones(400), rng=np.random.default_rng(0))
