"""The graph of a call must be freed with its result."""

from collections.abc import Iterator
from typing import final

from gradcli.checks.base import Check, Situation
from gradcli.findings import FindingKind
from gradcli.results import Evidence
from gradcli.verdict import Verdict


@final
class MemoryCheck(Check):
    """The graph of a call is freed once its result is released."""

    name = "memory"
    sentence = "the graph of a call is freed as soon as its result is released"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Call forward, delete its result, and look whether the graph node of backward still exists.

        Where the graph of another call was freed, made between forward and backward, that call is enough.
        """
        subject = situation.subject
        if not subject.has_graph:
            note = f"does not apply: {subject.info.backend} keeps no graph that could stay in memory after a call"
            yield Evidence(check=self.name, verdict=Verdict.SKIPPED, note=note)
            return
        situation.together()  # other calls may show it already
        left = subject.leaked_graph()
        if left is None:
            yield self.passed()
        elif left.attribute is not None:
            until = "until the garbage collector runs" if left.collected else "even after a garbage collection"
            yield self.failed(
                FindingKind.LEAKS_MEMORY,
                f"ctx.{left.attribute} holds an output of forward, whose graph holds ctx: because of this cycle, "
                f"the graph and its saved tensors stay in memory after the result is released, {until}",
                hint="save the output with ctx.save_for_backward instead",
            )
        else:
            yield self.failed(
                FindingKind.LEAKS_MEMORY,
                "the graph of a call stays in memory after its result is released and garbage is collected: the class, "
                "the module or another object that outlives the call keeps an output of forward, or ctx",
                hint="keep output.detach() instead of output, and do not keep ctx",
            )
