"""Loops are stopped after a number of executed lines, and told from branches."""

import pytest

from gradcli.backends.executed_lines import LinesSeen, at_most


def test_a_loop_is_stopped_after_its_lines_and_the_tracer_put_back():
    import sys

    def endless() -> None:
        while True:
            pass

    before = sys.gettrace()
    with pytest.raises(Exception, match="stopped the call after 1,000 executed lines"), at_most(1000, endless):
        endless()
    assert sys.gettrace() is before


def test_loops_are_told_from_branches():
    def branches(x: float, steps: int) -> float:
        y = 0.0
        for step in range(steps):
            if x > 0.5 * step:
                y += 1
            else:
                y -= 1
        return y + sum([1 for _ in range(20)])

    def lines(x: float, steps: int) -> LinesSeen:
        with at_most(1000, branches) as seen:
            branches(x, steps)
        return seen

    assert lines(1.0, 5).loops_alike(lines(-1.0, 5))
    assert not lines(1.0, 5).loops_alike(lines(1.0, 6))
    with at_most(1000, None) as unseen:
        branches(1.0, 5)
    assert not unseen.runs
