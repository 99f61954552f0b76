"""Whether code may be gone over more often elsewhere, told from one call."""

from collections.abc import Callable

import pytest

from gradcli.backends.executed_lines import lines_run


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
