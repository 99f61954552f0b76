"""What the pytest plugin needs of gradcli: the cases of a spec, and their results from a worker process."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import final

from gradcli.reporters.plain import plain_case
from gradcli.runner.execute import execute
from gradcli.runner.planning.configuration import configuration, settings_from
from gradcli.runner.planning.plan import CheckCase, plan
from gradcli.runner.pool import InProcess, Pool
from gradcli.runner.process.interrupts import Interrupted, Interrupts
from gradcli.runner.store.saved import FOLDER
from gradcli.runner.workers.worker_pool import WorkerPool
from gradcli.spec.load import load_specs
from gradcli.verdict import Verdict


@final
class Session:
    """Checks in one run of pytest, configured by the `[tool.gradcli]` that holds in the folder `start`."""

    def __init__(self, *, start: Path) -> None:
        self._start = start
        self._settings = settings_from({}, configuration(start))
        self._interrupts = Interrupts()
        self._open = ExitStack()
        self._pool: Pool | None = None

    def cases(self, path: Path) -> tuple[CheckCase, ...]:
        """The cases of a spec. Raises SpecError where it is wrong, NothingToCheckError where it is empty."""
        return plan(load_specs(path), self._settings)

    def problem(self, case: CheckCase) -> tuple[str | None, bool]:
        """The text of a case that did not pass, None for one that did; and whether it was skipped."""
        if self._pool is None:
            self._pool = self._opened_pool()
        try:
            with self._interrupts:
                (result,) = execute((case,), self._pool, self._start, failures=FOLDER)
        except Interrupted:
            raise KeyboardInterrupt from None
        allowed = result.verdict is Verdict.INCONCLUSIVE and self._settings.allow_inconclusive
        passed = result.verdict is Verdict.PASSED or allowed
        return None if passed else plain_case(result), result.verdict is Verdict.SKIPPED

    def close(self) -> None:
        """End the worker process."""
        self._open.close()

    def _opened_pool(self) -> Pool:
        """A worker process, or this one where processes cannot be forked."""
        if not hasattr(os, "fork"):
            return InProcess(start=self._start, interrupts=self._interrupts)
        path = [os.path.abspath(entry) for entry in sys.path]
        pool = WorkerPool(
            size=1,
            timeout=self._settings.timeout,
            start=self._start,
            path=path,
            interrupts=self._interrupts,
            triton=self._settings.triton,
        )
        return self._open.enter_context(pool)
