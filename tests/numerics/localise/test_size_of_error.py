"""How wrong a gradient is said to be: as its entries show, or as one direction does where entries are not measured."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gradcli.numerics.localise import evidence
from gradcli.numerics.localise.evidence import EvidenceBudget, with_table
from gradcli.numerics.outcome import BlockOutcome, Outcome, Table

ALONG = BlockOutcome(input=0, output=0, outcome=Outcome.DIFFERS, max_abs_error=2.0, max_rel_error=0.7, bound=1e-5)


def table(errors, measured):
    claimed = np.ones((1, len(errors)))
    return Table(
        claimed=claimed,
        numeric=claimed - np.array(errors),
        bound=np.where(measured, 1e-9, np.inf)[None],
        rows=np.arange(1),
        columns=np.arange(len(errors)),
        complete=True,
        point=np.zeros(len(errors)),
    )


def said(monkeypatch, found, left):
    monkeypatch.setattr(evidence, "with_evidence", lambda _, outcome, *__: with_table(outcome, found, None))
    blocks = [SimpleNamespace(size=found.columns.size)]
    site = SimpleNamespace(map=SimpleNamespace(domain=SimpleNamespace(blocks=blocks), values=0))
    return EvidenceBudget(left=left).added(site, replace(ALONG), None, 1e-7)


@pytest.mark.parametrize("left", [None, 10_000])
@pytest.mark.parametrize(
    ("errors", "measured", "size"),
    [
        ([0.2, 0.5, 0.3], [True, True, True], 0.5),
        ([7e-6, 0.5, 0.3], [True, False, False], 0.7),
        ([1e-3, 0.5, 0.3], [True, True, False], 0.7),
        ([0.9, 0.5, 0.3], [True, True, False], 0.9),
        ([7e-6, 7e-6, 7e-6], [True, True, True], 0.7),
        ([0.0, 0.0, 0.0], [False, False, False], 0.7),
    ],
)
def test_the_size_is_that_of_measured_entries_only_where_they_show_the_error(monkeypatch, errors, measured, size, left):
    assert said(monkeypatch, table(errors, measured), left).max_rel_error == pytest.approx(size)
