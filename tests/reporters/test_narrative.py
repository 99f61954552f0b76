"""What a screen says of the entries of a wrong gradient."""

import math

from gradcli.findings import FindingKind
from gradcli.reporters.narrative import entry_rows
from gradcli.results import Entry, Finding


def test_an_entry_without_a_bound_is_not_shown_as_measured():
    entries = (
        Entry(index=(0, 1), analytic=1.7, numeric=0.0, bound=math.inf),
        Entry(index=(1, 0), analytic=2.0, numeric=1.0, bound=1e-11),
    )
    finding = Finding(kind=FindingKind.WRONG_GRADIENT, message="wrong", order=1, input="x", entries=entries)
    heading, unmeasured, measured = entry_rows(finding)
    assert heading == ("x[i, j]", "returned", "numeric")
    assert unmeasured[2] == "not measured"
    assert measured[2] == "1 ± 1e-11"
