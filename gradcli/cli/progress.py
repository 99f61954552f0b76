"""Progress on standard error, for people at a terminal."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from gradcli.cli.streams import progress_wanted

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """A line that counts cases; shown only if `wanted` and standard error is a terminal, and gone at the end."""

    def __init__(self, total: int, *, wanted: bool = True) -> None:
        self._bar = _bar(total) if wanted and total > 1 and progress_wanted() else None

    def __enter__(self) -> "Progress":
        if self._bar is not None:
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

    def advance(self) -> None:
        """Count one case more, and show the line again."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])
            self._bar.start()


def _bar(total: int) -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(file=sys.stderr),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task("checking", total=total)
    return bar
