"""What a screen says of a failed case: the entries of a wrong gradient, and inferred inputs."""

import math
from dataclasses import replace

import pytest

from gradcli.cases import InputSpec
from gradcli.findings import FindingKind
from gradcli.reporters.narrative import entry_rows, story
from gradcli.reporters.plain import plain_case
from gradcli.results import Entry, Finding
from tests.reporters.results import FAILED


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


@pytest.mark.parametrize(("source", "shown"), [("inferred", True), ("flags", False), ("given", False)])
def test_a_failure_says_which_inputs_were_inferred(source, shown):
    result = replace(FAILED, inputs_from=source, inputs=(InputSpec(name="x", shape=(3, 4)),))
    lines = [line.text for line in story(result)]
    assert ("  inputs inferred: -i x=3x4" in lines) is shown
    assert ("inputs inferred: -i x=3x4" in plain_case(result)) is shown
