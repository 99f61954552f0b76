"""Progress on standard error, for people at a terminal."""

import sys
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from gradcli.cli.output.streams import progress_wanted
from gradcli.reporters.escaping import one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn

_FEWEST = 3
"""With fewer cases done nothing is said of the time left: there is no telling how much cases differ."""
_WIDTH = 40
"""Columns for the id of a case."""


class Progress:
    """A line with a count, the running case and the time left; gone at the end.

    Args:
        case_ids: the cases to run, in the order in which their results come.
        wanted: without it, or where standard error is no terminal, nothing is shown.
        slow: says what has run for long, if anything has, in place of the id of the running case.
    """

    def __init__(
        self, case_ids: Sequence[str], *, wanted: bool = True, slow: Callable[[], str | None] = lambda: None
    ) -> None:
        self._ids = tuple(case_ids)
        self._slow = slow
        self._took: list[float] = []
        self._last = monotonic()
        self._bar = _bar(self) if wanted and self._ids and progress_wanted() else None

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._last = monotonic()
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Take the line away, so that something else can be written."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, case_id: str) -> None:
        """Count `case_id`, unless its result was known before the run, and show the line again."""
        if len(self._took) < len(self._ids) and case_id == self._ids[len(self._took)]:
            now = monotonic()
            self._took.append(now - self._last)
            self._last = now
        if self._bar is not None and len(self._took) < len(self._ids):
            self._bar.update(self._bar.task_ids[0], completed=len(self._took))
            self._bar.start()

    @property
    def total(self) -> int:
        """How many cases are to be run."""
        return len(self._ids)

    def running(self) -> str:
        """What has run for long, else the id of the first case whose result has not come; others may run beside it."""
        slow = self._slow()
        if slow is not None:
            return slow
        name = one_line(self._ids[min(len(self._took), len(self._ids) - 1)])
        return name if len(name) <= _WIDTH else f"…{name[-_WIDTH + 1 :]}"

    def left(self) -> str:
        """The time left in words, or nothing where it cannot be said."""
        return time_left(self._took, len(self._ids) - len(self._took), monotonic() - self._last)


def time_left(took: Sequence[float], cases: int, waited: float) -> str:
    """How long `cases` more may take, as a range where they differ much.

    The sum of m more cases, predicted from n that took `took` seconds each, is m times their mean, with a standard
    error of s sqrt(m + m²/n); the range is two of them to either side. It never ends before the running case would, had
    it begun when the last one ended, `waited` seconds ago.
    """
    if len(took) < _FEWEST or cases < 1:
        return ""
    from statistics import fmean, stdev

    mean = fmean(took)
    spread = 2.0 * stdev(took) * (cases + cases**2 / len(took)) ** 0.5
    others = (cases - 1) * mean
    middle = others + max(mean - waited, 0.0)
    low, high = max(middle - spread, 0.0), middle + spread
    if high <= 1.5 * low or high < 1.0:
        return f"about {_duration(middle)} left"
    return f"{_duration(low)} to {_duration(high)} left" if low >= 1.0 else f"up to {_duration(high)} left"


def _duration(seconds: float) -> str:
    """Seconds in as many digits as an estimate has."""
    if seconds < 99.5:
        return f"{seconds:.1g} s" if seconds < 9.5 else f"{round(seconds, -1):.0f} s"
    if seconds < 5940:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _bar(progress: Progress) -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        _words(progress.running),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        _words(progress.left),
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task("checking", total=progress.total)
    return bar


def _words(said: Callable[[], str]) -> "ProgressColumn":
    """A column that shows what `said` returns at the time; nothing in it is markup."""
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Words(ProgressColumn):
        def render(self, task: Task) -> Text:  # noqa: ARG002 - rich's signature
            return Text(said(), no_wrap=True)

    return Words()
