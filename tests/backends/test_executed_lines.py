"""The lines of user code that a call runs: whether they may repeat; loops are stopped, and told from branches."""

from collections.abc import Callable

import pytest

from gradcli.backends.executed_lines import LineCounts, at_most, lines_run


def straight(x: float) -> float:
    return abs(x) if x < 0 else 2 * x


def loop_left_at_once(x: float) -> float:
    while x > 1:
        x /= 2
    return x


def comprehension(x: float) -> float:
    return sum([part * part for part in (x,)])


def recursion(x: float) -> float:
    return x if x < 1 else recursion(x / 2)


def called_twice(x: float) -> float:
    return straight(x) + straight(-x)


def namesake(x: float) -> float:
    return Other.namesake(x)


class Other:
    @staticmethod
    def namesake(x: float) -> float:
        return -x


@pytest.mark.parametrize(
    ("function", "may_repeat"),
    [
        (straight, False),
        (namesake, False),
        (loop_left_at_once, True),
        (comprehension, True),
        (recursion, True),
        (called_twice, True),
    ],
    ids=lambda part: getattr(part, "__name__", str(part)),
)
def test_only_loops_recursion_and_lines_run_twice_may_repeat(
    function: Callable[[float], float], may_repeat: bool
) -> None:
    effort = lines_run(lambda: function(0.5))
    assert effort.may_repeat is may_repeat
    assert effort.lines


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
        y += len({step: -step for step in range(20)}) + len([0, *range(20), 0])
        return y + sum([1 for _ in range(20)])

    def lines(x: float, steps: int) -> LineCounts:
        with at_most(1000, branches) as seen:
            branches(x, steps)
        return seen

    assert lines(1.0, 5).loops_alike(lines(-1.0, 5))
    assert not lines(1.0, 5).loops_alike(lines(1.0, 6))
    with at_most(1000, None) as unseen:
        branches(1.0, 5)
    assert not unseen.runs


def seen_in(function, *arguments):
    with at_most(10_000, function) as seen:
        function(*arguments)
    return seen


def halving(x, tolerance):
    for _ in range(20):
        x = x / 2
        if x < tolerance:
            break
    return x


def searching(x, knots):
    for place in range(20):
        x = x + 0
        if x < knots[place]:
            break
    return x


@pytest.mark.parametrize(
    ("function", "here", "there", "runs_out"),
    [
        (halving, (1.0, 1e-30), (1.0, 1e-3), True),
        (halving, (1.0, 1e-4), (1.0, 1e-3), False),  # left before its end in both
        (halving, (1.0, 1e-30), (1.0, 1e-31), False),  # comes to its end in both
        (searching, (50.0, range(20)), (5.0, range(20)), False),  # beyond the last knot: the number is what it seeks
    ],
)
def test_a_loop_that_only_counts_runs_out(function, here, there, runs_out):
    assert seen_in(function, *here).runs_out(seen_in(function, *there), 4) is runs_out


def test_a_loop_of_few_steps_runs_out_of_none():
    def twice(x, tolerance):
        for _ in range(2):
            x = x / 2
            if x < tolerance:
                break
        return x

    assert not seen_in(twice, 1.0, 1e-30).runs_out(seen_in(twice, 1.0, 0.9), 4)
