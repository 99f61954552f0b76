"""backward gives the same gradient each time: repeated, and with another call in between."""

from collections.abc import Iterator, Sequence
from typing import final

from gradcli.backends.base import Gradients
from gradcli.checks.base import REPEAT_TOLERANCE, Check, Situation, relative_gap
from gradcli.checks.out_of_bounds import outside_memory
from gradcli.checks.shared_passes import passed_on
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_AGAIN = (
    FindingKind.NONDETERMINISTIC_BACKWARD,
    "two backward passes on the same input and grad_output give different gradients",
)
_DRAWN = (
    FindingKind.NONDETERMINISTIC_BACKWARD,
    "backward draws random numbers of its own: after the same forward, its gradient changes with the random seed; "
    "draw the numbers in forward and keep them on ctx",
)
_INTERLEAVED = (
    FindingKind.STATEFUL,
    "its gradient changes when forward is called on other inputs before backward runs: something is kept on the class "
    "or module instead of ctx",
)
_TIMES = 2
"""Repeats without anything in between: a backward that changes its result in every other call shows in one of two."""
_RAISES = (
    "backward raises when forward is called on other inputs before backward runs: something is kept on the class or "
    "module instead of ctx"
)
_FIRST = (
    FindingKind.STATEFUL,
    "its first gradient differs from later ones for the same input and grad_output: it depends on calls made in "
    "between, because something is kept on the class or module instead of ctx",
)
_OVERWRITTEN = (
    "the gradient that backward returned changes in the next backward pass: backward returns a tensor that it keeps "
    "and writes into again"
)
_COPY = (
    "return a new tensor (kept * grad_output, not kept *= grad_output); a clone of the one that is kept is enough only "
    "if every pass computes all of its entries anew"
)
_RETAINED = (
    FindingKind.SECOND_BACKWARD_FAILS,
    "a second backward through the retained graph gives a different gradient",
)


@final
class RepeatCheck(Check):
    """Two backward passes agree, with and without other calls of forward in between."""

    name = "repeat"
    sentence = (
        "backward gives the same gradient when it is repeated, and when another forward runs in between, and does not "
        "change a gradient that it returned before"
    )

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare gradients: a second pass through one graph, and passes with other calls of forward before them."""
        outside = tuple(outside_memory(self, situation))
        yield from outside
        if any(evidence.verdict is Verdict.FAILED for evidence in outside):
            return
        reference, same_graph = situation.passes()
        together = situation.together()
        overwritten = self._overwritten(situation)
        if overwritten or isinstance(same_graph, UserCodeError) or self._retained(situation, reference, same_graph):
            situation.subject.derivative_map(1).retains = False
        yield from overwritten
        if overwritten:
            return
        if together is not None and together.interleaved:
            yield from self._reseeded(situation) or [self.passed()]
            return
        apart, raised = self._interleaved(situation, reference)
        others = [g for g in (apart, same_graph) if g is not None and not isinstance(g, UserCodeError)]
        if apart is None or any(self._differing(situation, reference, other, *_AGAIN) for other in others):
            for _ in range(_TIMES):
                again = situation.subject.backward(situation.cotangents())
                if problems := self._differing(situation, reference, again, *_AGAIN):
                    yield from problems
                    return
        if raised is not None:
            yield self.failed(FindingKind.STATEFUL, f"{_worded(situation, _RAISES)}: {raised}", raised=raised)
        elif apart is not None:
            yield from self._differing(situation, reference, apart, *_INTERLEAVED)[:1] or [self.passed()]
        if isinstance(same_graph, UserCodeError):
            yield self.failed(
                FindingKind.SECOND_BACKWARD_FAILS,
                f"a second backward through the retained graph fails: {same_graph}",
                raised=same_graph,
            )
        else:
            yield from (
                self._retained(situation, reference, same_graph)
                or self._reseeded(situation)
                or self._first(situation, reference)
            )

    def _retained(self, situation: Situation, reference: Gradients, again: Gradients) -> list[Evidence]:
        """A finding where a second pass through one graph gives another gradient."""
        return self._differing(situation, reference, again, *_RETAINED)[:1]

    def _overwritten(self, situation: Situation) -> list[Evidence]:
        """A finding for each active input whose gradient, once returned, was changed by a further pass."""
        subject = situation.subject
        names = [situation.input_name(subject.active[place]) for place in sorted(subject.overwritten)]
        return [self.failed(FindingKind.STATEFUL, f"{name}: {_OVERWRITTEN}", input=name, hint=_COPY) for name in names]

    def _first(self, situation: Situation, reference: Gradients) -> list[Evidence]:
        """A finding for each active input whose first gradient, of the direct call of backward, was another one.

        If a further direct call gives that too, it is the framework that passes on other values: where forward returns
        one tensor twice, it adds up their gradients.
        """
        subject = situation.subject
        first = passed_on(subject, situation.raw_backward())
        found = [] if first is None else self._differing(situation, first, reference, *_FIRST)
        again = passed_on(subject, subject.raw_backward(situation.cotangents())) if found else None
        if first is None or again is None:
            return found
        return found if self._differing(situation, first, again, *_FIRST) else []

    def _reseeded(self, situation: Situation) -> list[Evidence]:
        """A finding for each gradient that changes with the random seed although the graph is the same."""
        passes = situation.subject.backward_reseeded(situation.cotangents())
        return [] if passes is None else self._differing(situation, *passes, *_DRAWN)

    def _differing(
        self, situation: Situation, reference: Gradients, other: Gradients, kind: FindingKind, sentence: str
    ) -> list[Evidence]:
        """A finding for each active input whose gradients are not the same."""
        sentence = _worded(situation, sentence)
        names = [
            situation.input_name(position)
            for position, one, two in zip(situation.subject.active, reference, other, strict=True)
            if relative_gap(one, two) > situation.tolerance(REPEAT_TOLERANCE)
        ]
        return [self.failed(kind, f"{name}: {sentence}", input=name) for name in names]

    def _interleaved(self, situation: Situation, reference: Gradients) -> tuple[Gradients | None, UserCodeError | None]:
        """Gradients with another call of forward in between, the first that differ from the reference if any do.

        None where forward accepts no other call; the error where backward raised after one.
        """
        subject, found = situation.subject, None
        sets = situation.disturbing()
        try:
            for part in sets:
                for gradients in subject.backward_interleaved(situation.cotangents(), [part]):
                    if gradients is None:
                        continue
                    found = gradients
                    if self._differing(situation, reference, gradients, *_INTERLEAVED):
                        return found, None
        except UserCodeError as error:
            return None, error
        return found, None


def concerns_later_passes(found: Sequence[Evidence]) -> bool:
    """Whether all failures are of later passes through the graph of one call, so that the first may be compared."""
    failed = [e.finding for e in found if e.verdict is Verdict.FAILED]
    return bool(failed) and all(
        f is not None and (f.kind is FindingKind.SECOND_BACKWARD_FAILS or f.hint == _COPY) for f in failed
    )


def _worded(situation: Situation, sentence: str) -> str:
    """The sentence without `ctx` for NumPy, where there is none."""
    return sentence.replace(" instead of ctx", "") if situation.subject.info.backend == "numpy" else sentence
