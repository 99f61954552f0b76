"""Sizes of errors in words."""

import math

import pytest

from gradcli.numerics.wording import accepted, of_largest


@pytest.mark.parametrize(
    ("error", "size"),
    [
        (0.3, "30 % of"),
        (2.0, "200 % of"),
        (0.999, "100 % of"),
        (0.0123, "1.2 % of"),
        (0.001, "0.1 % of"),
        (0.00099, "9.9e-04 of"),
        (7.6e-8, "7.6e-08 of"),
        (0.0, "0 % of"),
        (12.34, "12 times"),
        (math.inf, "inf times"),
    ],
)
def test_an_error_is_a_percentage_where_that_reads_well(error: float, size: str) -> None:
    assert of_largest(error) == f"{size} the gradient's largest entry"


def test_an_accepted_difference_says_so_and_why() -> None:
    assert accepted(2e-8, 1e-7) == (
        "differs by 2.0e-08 of the gradient's largest entry, which is not counted as an error (up to 1e-07 is allowed)"
    )
