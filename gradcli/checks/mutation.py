"""backward must not write into grad_output, saved tensors or inputs."""

from collections.abc import Iterator
from typing import final

from gradcli.checks.base import Check, Situation
from gradcli.checks.primal import requires_gradient
from gradcli.findings import FindingKind
from gradcli.results import Evidence


@final
class MutationCheck(Check):
    """backward leaves grad_output, inputs and saved tensors as they are."""

    name = "mutation"
    sentence = "backward changes neither grad_output nor the inputs nor what was saved"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare the bytes before and after a direct call of backward."""
        raw = situation.raw_backward()
        if not raw.available or raw.error is not None:
            return
        problems, notes = [], []
        for number in raw.changed_cotangents:
            problems.append(
                self.failed(
                    FindingKind.MUTATES_GRAD_OUTPUT,
                    "backward changes grad_output in place, which changes the caller's gradient"
                    + (f" (that of output {number})" if len(situation.subject.output_numbers) > 1 else ""),
                    output=number,
                )
            )
        for position in raw.changed_inputs:
            name = situation.input_name(position)
            if not requires_gradient(situation, position):
                notes.append(
                    f"{name} is changed in place by backward; this is reported only as a note, not as a failure, "
                    f"because {name} requires no gradient"
                )
                continue
            problems.append(
                self.failed(FindingKind.MUTATES_INPUT, f"backward changes the input {name} in place", input=name)
            )
        if not raw.changed_inputs:
            for number in raw.changed_saved:
                problems.append(
                    self.failed(FindingKind.MUTATES_SAVED, f"backward changes saved tensor {number} in place")
                )
        yield from problems
        if notes or not problems:
            yield self.passed("; ".join(notes) or None)
