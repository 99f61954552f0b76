"""What runs the jobs of a run: a pool of worker processes, or this process itself."""

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Protocol, final

from gradcli.frozen import dataclass
from gradcli.runner.jobs import Attempt, Done, Job, Outcome
from gradcli.runner.process.activity import RunningJob
from gradcli.runner.process.interrupts import Interrupts


class Pool(Protocol):
    """Runs jobs."""

    def outcomes(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """The outcomes of `jobs` in their order, each as soon as it is known."""

    def activities(self) -> tuple[RunningJob, ...]:
        """The jobs that run, as far as is known; may be asked from another thread."""

    def finished(self) -> tuple[tuple[int, Outcome], ...]:
        """Outcomes known after an interrupt that were not handed out, each with the position of its job."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InProcess:
    """Runs jobs in this process, one after the other, each from the working directory `start`: for debuggers."""

    start: Path
    interrupts: Interrupts

    def outcomes(self, jobs: Sequence[Job]) -> Generator[Outcome, None, None]:
        """The outcomes of `jobs` in their order.

        Raises:
            Interrupted: a signal came.
        """
        from gradcli.runner.process.interference import end_refused

        for job in jobs:
            self._return()
            with end_refused(), self.interrupts.raising(), Attempt() as attempt:
                attempt.outcome = Done(value=job.run(self._return))
            yield attempt.outcome
        self._return()

    def activities(self) -> tuple[RunningJob, ...]:
        """None: in a debugger, nothing else is to be printed."""
        return ()

    def finished(self) -> tuple[tuple[int, Outcome], ...]:
        """None: each is handed out at once."""
        return ()

    def _return(self) -> None:
        os.chdir(self.start)
