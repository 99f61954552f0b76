"""Gradients must not depend on how tensors lie in memory."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Layout, Subject
from gradcli.backends.tensor.framework import same_values
from gradcli.checks.base import Check, Situation, differs
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.numerics.verify import Outcome, verify
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_TOLERANCE = 128 * 2.0**-24
"""Relative; another memory order may reorder sums, in float32 where the user's code computes in it."""
_LAYOUTS = (Layout.STRIDED, Layout.TRANSPOSED)


@final
class LayoutCheck(Check):
    """Strided and transposed inputs and cotangents of equal values give equal gradients."""

    name = "layout"
    sentence = "the gradients are the same for inputs and grad_output that are not contiguous in memory"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare layouts in combination, and if one shows a difference each alone, grad_output first.

        An input layout that forward refuses is a note.
        """
        subject = situation.subject
        passed = situation.together()
        seen = passed is not None and passed.laid_out
        others = [layouts for layouts in combined(subject) if not (seen and layouts[0] is Layout.CONTIGUOUS)]
        together = [self._together(situation, *layouts) for layouts in others]
        if not any(together):
            yield self.passed()
            return
        found = [*self._outputs(situation), *self._inputs(situation, situation.cotangents(), situation.reference())]
        failure = next((e for e in found if e.verdict is Verdict.FAILED), None)
        yield failure or next((e for e in found if e.note), None) or next(filter(None, together))

    def _together(self, situation: Situation, inputs: Layout, outputs: Layout) -> Evidence | None:
        """What is wrong with these layouts of inputs and grad_output at once; mostly nothing: none is tried alone."""
        expanded = outputs is Layout.EXPANDED
        if expanded and situation.raw_backward().changed_cotangents:
            return None  # an expanded tensor cannot be written into; the mutation check reports the write
        cotangents = situation.constant_cotangents() if expanded else situation.cotangents()
        lying = {"the inputs are": inputs, "grad_output is": outputs}
        when = " and ".join(f"{what} {how.value}" for what, how in lying.items() if how is not Layout.CONTIGUOUS)
        try:
            got = situation.subject.backward_laid_out(cotangents, inputs=inputs, outputs=outputs)
        except UserCodeError as error:
            return self.failed(FindingKind.NON_CONTIGUOUS, f"backward fails when {when}: {error}", raised=error)
        reference = situation.of_constant() if expanded else situation.reference()
        return self._compare(situation, reference, got, when, cotangents)

    def _outputs(self, situation: Situation) -> Iterator[Evidence]:
        for layout in (*_LAYOUTS, Layout.EXPANDED):
            problem = self._together(situation, Layout.CONTIGUOUS, layout)
            if problem is not None:
                yield problem
                return

    def _inputs(
        self, situation: Situation, cotangents: list[NDArray[Any]], reference: tuple[NDArray[Any] | None, ...]
    ) -> Iterator[Evidence]:
        notes = []
        for layout in _LAYOUTS:
            try:
                got = situation.subject.backward_laid_out(cotangents, inputs=layout, outputs=Layout.CONTIGUOUS)
            except UserCodeError as error:
                if error.phase == "forward":
                    yield self.passed(
                        f"gradients of {layout.value} inputs were not checked, because forward raises for such "
                        f"inputs: {error}"
                    )
                    return
                yield self.failed(
                    FindingKind.NON_CONTIGUOUS,
                    f"backward fails for inputs that are {layout.value}: {error}",
                    raised=error,
                )
                return
            problem = self._compare(situation, reference, got, f"the inputs are {layout.value}")
            if problem is not None and not self._fits_its_own_forward(situation, layout):
                yield problem
                return
            if problem is not None:
                notes.append(
                    f"gradients of {layout.value} inputs were not compared, because forward itself gives other "
                    f"values when its inputs are {layout.value} in memory"
                )
        yield self.passed("; ".join(notes) or None)

    def _fits_its_own_forward(self, situation: Situation, layout: Layout) -> bool:
        """Whether forward gives other values for this layout, and backward is not shown to be wrong for those.

        A forward may draw random numbers in the order of memory, or depend on strides on purpose.
        """
        other = situation.subject.laid_out(layout)
        if other is None:
            return False
        here, there = situation.subject.first_call.outputs, other.first_call.outputs
        if all(same_values(here[n], there[n]) for n in situation.subject.output_numbers):
            return False
        found = verify(
            situation.map_of(other, 1),
            other.point,
            seed=situation.seed + 3,
            significance=situation.significance,
            entries=0,
        )
        return all(block.outcome is not Outcome.DIFFERS for block in found.blocks)

    def _compare(
        self,
        situation: Situation,
        reference: tuple[NDArray[Any] | None, ...],
        got: tuple[NDArray[Any] | None, ...],
        when: str,
        cotangents: list[NDArray[Any]] | None = None,
    ) -> Evidence | None:
        for place, position in enumerate(situation.subject.active):
            if differs(situation, place, reference[place], got[place], _TOLERANCE, cotangents):
                name = situation.input_name(position)
                return self.failed(
                    FindingKind.NON_CONTIGUOUS,
                    f"{name}: its gradient changes when {when} in memory, although the values are the same",
                    input=name,
                )
        return None


def combined(subject: Subject) -> Iterator[tuple[Layout, Layout]]:
    """Layouts of inputs and of grad_output that show most in few passes: each occurs alone once, if possible."""
    axes_in = max((np.ndim(a.value) for a in subject.arguments if a.is_tensor), default=0)
    axes_out = max((len(block.shape) for block in subject.codomain.blocks), default=0)
    if axes_out:
        yield Layout.CONTIGUOUS, Layout.STRIDED
        yield Layout.TRANSPOSED if axes_in > 1 else Layout.CONTIGUOUS, Layout.EXPANDED
    elif axes_in > 1:
        yield Layout.TRANSPOSED, Layout.CONTIGUOUS
    if axes_in:
        yield Layout.STRIDED, Layout.TRANSPOSED if axes_out > 1 else Layout.CONTIGUOUS
