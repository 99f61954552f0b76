"""Functions written after the search for patches, three or more for each kind of mistake, with a right twin each."""

from benchmarks.fix.other_hand import families_in
from benchmarks.fix.other_hand.record import Case, Family


def families() -> list[Family]:
    """Every family, by the names of its files."""
    return families_in(__name__, __path__)


def cases() -> list[Case]:
    """Every case."""
    return [case for family in families() for case in family.cases]
