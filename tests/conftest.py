"""What holds for every test."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _what_stays_set_aside() -> None:
    """Keep what was imported and collected so far out of collections of garbage.

    That are 11,000 tests and two frameworks, and the checker collects garbage in many a call: tests of leaks took
    five times as long.
    """
    gc.collect()
    gc.freeze()
