"""Garbage collection is paused, or less often, and afterwards as it was, whatever happened."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress

import pytest

from gradcli.garbage import not_collecting, seldom_collecting


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    threshold, enabled = gc.get_threshold(), gc.isenabled()
    yield
    gc.set_threshold(*threshold)
    (gc.enable if enabled else gc.disable)()


class Cycle:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def _cycle_freed_within(context: AbstractContextManager[None], objects: int) -> bool:
    with context:
        cycle = weakref.ref(Cycle())
        kept = [[] for _ in range(objects)]
        del kept
        return cycle() is None


def test_a_cycle_is_freed_later_or_not_at_all() -> None:
    gc.set_threshold(700, 10, 10)
    gc.collect()
    assert _cycle_freed_within(nullcontext(), 2_000)
    assert not _cycle_freed_within(seldom_collecting(), 2_000)
    assert _cycle_freed_within(seldom_collecting(), 20_000)
    assert not _cycle_freed_within(not_collecting(), 20_000)


@pytest.mark.parametrize("before", [(700, 10, 10), (0, 10, 10), (60_000, 5, 5)])
def test_the_threshold_is_afterwards_what_it_was(before: tuple[int, int, int]) -> None:
    gc.set_threshold(*before)
    with suppress(ZeroDivisionError), seldom_collecting():
        assert gc.get_threshold()[0] == (10_000 if before[0] == 700 else before[0])
        raise ZeroDivisionError
    assert gc.get_threshold() == before


def test_a_threshold_that_the_program_sets_stays() -> None:
    with seldom_collecting():
        gc.set_threshold(500, 2, 2)
    assert gc.get_threshold() == (500, 2, 2)


@pytest.mark.parametrize("enabled", [True, False])
def test_collection_is_on_afterwards_only_if_it_was(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with suppress(ZeroDivisionError), not_collecting():
        assert not gc.isenabled()
        raise ZeroDivisionError
    assert gc.isenabled() == enabled
