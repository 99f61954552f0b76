"""The search for a patch as a job, done where the user's code may be imported."""

import time
from collections.abc import Callable
from dataclasses import replace

from gradcli.fix.outcome import fixed
from gradcli.fix.search import SECONDS
from gradcli.frozen import dataclass
from gradcli.patches import FixResult
from gradcli.runner.arguments.prepare import prepared
from gradcli.runner.jobs import Job
from gradcli.runner.planning.plan import CheckCase
from gradcli.spec.resolve import resolve


@dataclass(frozen=True, slots=True, kw_only=True)
class FixJob(Job):
    """Find a patch for the target of one case in some `seconds` of processor time that is not `refused`."""

    case: CheckCase
    seconds: float = SECONDS
    refused: frozenset[str] = frozenset()

    def run(self, begun: Callable[[], None]) -> FixResult:
        """The verdict, what is wrong, and the patch with what was proven of it.

        Raises:
            UsageError: the target or an input of it is not as the case says.
            UserCodeError: forward raised.
            InputsNotFoundError: no inputs were given and none could be inferred.
        """
        target = resolve(self.case.spec.target).object
        begun()
        ends = time.process_time() + self.seconds
        spec = self.case.spec
        found = fixed(prepared(target, self.case), target, spec.case_id, ends=ends, refused=self.refused)
        return replace(found, asked=spec.asked)
