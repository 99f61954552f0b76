"""Coefficients of fitted forms as fractions: those with the smallest denominators."""

from fractions import Fraction

import pytest

from gradcli.diagnosis.slips.library import _simple


def closest(size, near):
    """The fraction that Python's own search finds, one denominator after the other."""
    for most in range(1, 25):
        found = Fraction(size).limit_denominator(most)
        if found and abs(size - found) <= near * size:
            return found if found.numerator <= 1000 else None
    return None


@pytest.mark.parametrize("part", [1, 0.5, 2 / 3, 7 / 24, 23 / 11, 1000, 999.5, 1001, 1e-3, 0.123456, 3e8, 2e-9])
@pytest.mark.parametrize("off", [-0.9e-7, 0.0, 0.9e-7, 1.2e-7])
def test_a_coefficient_is_the_fraction_with_the_smallest_denominator(part, off):
    size = part * (1 + off)
    assert _simple(size, 1e-7) == closest(size, 1e-7)


def test_a_coarse_coefficient_has_a_small_denominator():
    assert _simple(0.334, 3e-3) is None  # one denominator alone: above that, some fraction is near any number
    assert _simple(2.001, 1e-3) == 2
