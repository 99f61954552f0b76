"""Searches numbered things by halving groups of them, for those that a test of a whole group finds."""

from __future__ import annotations

from collections.abc import Callable


def halved(size: int, test: Callable[[int, int], bool], *, most: int, tries: int) -> list[int]:
    """Find numbers below `size`: a group that passes the test is divided into halves, down to single numbers.

    Args:
        size: how many there are.
        test: whether the group from its first argument up to, but without, the second has one to be found.
        most: no more than this many are found.
        tries: no more than this many groups are tested.

    Returns:
        The numbers found, the lowest first.
    """
    found: list[int] = []
    open_, tried = [(0, size)], 0
    while open_ and tried < tries and len(found) < most:
        start, stop = open_.pop()
        tried += 1
        if not test(start, stop):
            continue
        if stop - start == 1:
            found.append(start)
        else:
            middle = (start + stop) // 2
            open_ += [(middle, stop), (start, middle)]
    return found
