"""The gradient: backward against differences of forward with error bounds; at higher orders, of backward."""

from collections.abc import Iterator, Sequence
from typing import final

import numpy as np

from gradcli.backends.attribution import users_frames
from gradcli.backends.base import Subject
from gradcli.checks.base import FIRST_ORDER_ERRORS, Check, Situation
from gradcli.checks.given_precision import holds_as_given
from gradcli.errors import OverrunError, UserCodeError, message_of
from gradcli.findings import FindingKind
from gradcli.numerics.maps.space import Space
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.outcome import DIFFERENCES
from gradcli.numerics.verify import BlockOutcome, Doubt, KinkNote, Outcome, Table, Verification, verify
from gradcli.results import Evidence, Finding, Mismatch
from gradcli.verdict import Reason, Verdict
from gradcli.watchdog.case import entries_allowed

_REASONS = {
    Doubt.KINK: Reason.KINK,
    Doubt.NOISE: Reason.NOISE,
    Doubt.DOMAIN: Reason.DOMAIN,
    Doubt.NO_SIGNAL: Reason.NO_SIGNAL,
    Doubt.BUDGET: Reason.BUDGET,
}
_VERDICTS = {
    Outcome.AGREES: Verdict.PASSED,
    Outcome.DIFFERS: Verdict.FAILED,
    Outcome.UNDECIDED: Verdict.INCONCLUSIVE,
}
UNDECIDED = "undecided-of-order-1"
"""The places of the active inputs whose gradients differences could not decide."""


@final
class GradientCheck(Check):
    """backward is the transpose of forward's derivative."""

    name = "gradient"
    sentence = (
        "the gradient that backward returns agrees with finite differences of forward: to nine digits, to within their "
        "error bound, or up to a difference too small to count as an error"
    )

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify order 1."""
        subject = situation.subject
        if not comparable(situation):
            return
        map_ = situation.map_of(subject, 1)
        found = verify(
            map_,
            subject.point,
            seed=situation.seed,
            significance=situation.significance,
            entries=entries_allowed(),
            witness=subject.body_map(1),
        )
        situation.once(FIRST_ORDER_ERRORS, lambda: _errors(found))
        situation.once(UNDECIDED, lambda: {b.input for b in found.blocks if b.outcome is Outcome.UNDECIDED})
        if any(block.doubt is Doubt.DOMAIN for block in found.blocks):
            map_.value(subject.point)  # to raise at the given point itself is an error, not the edge of a domain
        yield from evidence_of(self.name, 1, map_, found, subject.output_numbers)


@final
class HigherOrderCheck(Check):
    """The derivative of backward is right, up to the requested order."""

    name = "higher-order"
    sentence = "each higher derivative agrees with finite differences of the one below it"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify orders 2 to the highest asked for, stopping at the first that is not right."""
        if not comparable(situation):
            return
        for order in range(2, situation.settings.order + 1):
            evidence = list(self._order(situation, order))
            yield from evidence
            if any(e.verdict is not Verdict.PASSED for e in evidence):
                return

    def _order(self, situation: Situation, order: int) -> Iterator[Evidence]:
        subject = situation.subject
        if (reason := _phases(subject) or subject.first_order_only) is not None:
            yield Evidence(
                check=self.name,
                order=order,
                verdict=Verdict.SKIPPED,
                note=f"{reason}, so higher derivatives are not checked",
            )
            return
        map_ = situation.map_of(subject, order)
        point = subject.base_point(order, situation.seed)
        try:
            found = verify(
                map_,
                point,
                seed=situation.seed + order,
                significance=situation.significance,
                entries=entries_allowed(),
                witness=subject.body_map(order),
                witness_values=True,
            )
        except OverrunError:
            raise
        except UserCodeError as error:
            yield self._refused(situation, error, order)
            return
        evidence = list(evidence_of(self.name, order, map_, found, range(len(map_.codomain.blocks))))
        failed = any(e.verdict is Verdict.FAILED for e in evidence)
        held = holds_as_given(situation, order) if failed else None
        yield from evidence if held is None else [held]

    def _refused(self, situation: Situation, error: UserCodeError, order: int) -> Evidence:
        """Differentiating backward raised: no number is wrong, so this fails only if the order was requested."""
        cause = error.__cause__ or error
        text = message_of(cause).strip().splitlines() or ["no message"]
        where = users_frames(cause.__traceback__)
        place = f" at {where[-1].filename}:{where[-1].lineno}" if where else ""
        if not situation.settings.order_asked:
            lower = "only order 1 was checked" if order == 2 else f"only orders up to {order - 1} were checked"
            return Evidence(
                check=self.name,
                order=order,
                verdict=Verdict.SKIPPED,
                note=(
                    f"{lower}: backward raises when it is differentiated{place} ({type(cause).__name__}: {text[0]}); "
                    f"this is reported only as a note; with --order {order} it would be a failure"
                ),
            )
        return self.failed(
            FindingKind.NOT_TWICE_DIFFERENTIABLE,
            f"backward raises when it is differentiated{place}: {type(cause).__name__}: {text[0]}",
            order=order,
            hint="mark backward with once_differentiable if higher orders are not meant to work",
            raised=error,
        )


def _errors(found: Verification) -> dict[int, float]:
    """The largest measured relative error of each active input's gradient, by its place; 0 if none was measured."""
    errors: dict[int, float] = {}
    for block in found.blocks:
        errors[block.input] = max(errors.get(block.input, 0.0), block.max_rel_error)
    return errors


def comparable(situation: Situation) -> bool:
    """Whether there is anything to compare; the forward check says why not."""
    subject = situation.subject
    return bool(subject.active and subject.output_numbers and subject.domain.size and subject.codomain.size)


def evidence_of(
    check: str, order: int, map_: VectorMap, found: Verification, outputs: Sequence[int]
) -> Iterator[Evidence]:
    """The evidence for each pair of an input block and an output block, with kinks as notes.

    Pairs with an empty block are left out, unless every pair has one.
    """
    kinks = [describe_kink(map_.domain, note) for note in found.kinks] if order == 1 else []
    sized = [b for b in found.blocks if map_.domain.blocks[b.input].size and map_.codomain.blocks[b.output].size]
    for block in sized or found.blocks:
        if block.special is not None:
            yield _special_point(check, order, map_, block.special, outputs[block.output])
            if block.outcome is Outcome.UNDECIDED:
                continue
        name = map_.domain.blocks[block.input].name
        is_noted = block.note is not None and not (order > 1 and block.zero_everywhere)
        notes = [*kinks, str(block.note)] if is_noted else kinks
        yield Evidence(
            check=check,
            order=order,
            verdict=_VERDICTS[block.outcome],
            input=name,
            output=outputs[block.output],
            reference=block.reference,
            max_abs_error=block.max_abs_error,
            max_rel_error=block.max_rel_error,
            bound=block.bound,
            resolution=block.resolution,
            reason=None if block.doubt is None else _REASONS[block.doubt],
            note="; ".join(notes) or None,
            mismatch=_mismatch(order, map_, block) if block.outcome is Outcome.DIFFERS else None,
            zero_everywhere=block.zero_everywhere,
        )


def _special_point(check: str, order: int, map_: VectorMap, note: KinkNote, output: int) -> Evidence:
    """A gradient that is proven wrong at exactly this point, and may be right nearby."""
    name, index = _block_and_index(map_.domain, note.coordinate)
    slopes = f"forward's slope is {_slope(note.left)} on the left and {_slope(note.right)} on the right"
    if note.left == note.right:
        slopes = f"forward's slope is {_slope(note.left)}"
    message = (
        f"{name}{index}: the gradient is wrong at exactly this value: {slopes}, but backward gives {note.claimed:.6g}"
    )
    finding = Finding(kind=FindingKind.SPECIAL_POINT, message=message, order=order, input=name, output=output)
    return Evidence(
        check=check,
        order=order,
        verdict=Verdict.FAILED,
        input=name,
        output=output,
        reference=DIFFERENCES,
        finding=finding,
    )


def _block_and_index(space: Space, coordinate: int) -> tuple[str, str]:
    """The name of a coordinate's block, and its index there as text."""
    place = space.locate(coordinate)
    return space.blocks[place.block].name, f"[{', '.join(map(str, place.index))}]" if place.index else ""


def describe_kink(space: Space, note: KinkNote) -> str:
    """A sentence for a point of a kink: where, the slopes on both sides, and what backward returns there."""
    name, index = _block_and_index(space, note.coordinate)
    if note.jump:
        return (
            f"{name}{index} lies on a jump of forward, where there is no derivative to compare with; backward gives "
            f"{note.claimed:.6g}, which is not checked"
        )
    side = ""
    low, high = sorted((note.left, note.right))
    slack = 1e-6 * max(abs(low), abs(high))
    if not low - slack <= note.claimed <= high + slack:
        side = ", which does not lie between these slopes"
    elif np.isclose(note.claimed, note.right, rtol=1e-6, atol=1e-9):
        side = ", the right-hand slope, which is accepted"
    elif np.isclose(note.claimed, note.left, rtol=1e-6, atol=1e-9):
        side = ", the left-hand slope, which is accepted"
    return (
        f"{name}{index} lies on a kink of forward: the slope is {_slope(note.left)} on the left and "
        f"{_slope(note.right)} on the right, and backward gives {note.claimed:.6g}{side}"
    )


def _slope(value: float) -> str:
    """A slope for display: 0 if only rounding is left."""
    return f"{0.0 if abs(value) < 1e-12 else value:.6g}"


def _mismatch(order: int, map_: VectorMap, block: BlockOutcome) -> Mismatch | None:
    table: Table | None = block.table
    if table is None:
        return None
    inputs = map_.domain.unflatten(table.point)
    outputs = map_.codomain.unflatten(np.asarray(map_.value(table.point)))
    return Mismatch(
        input=block.input,
        output=block.output,
        order=order,
        claimed=table.claimed,
        numeric=table.numeric,
        bound=table.bound,
        rows=table.rows,
        columns=table.columns,
        complete=table.complete,
        point=table.point,
        input_value=inputs[block.input],
        output_value=outputs[block.output],
        wrong_columns=None if table.complete else block.wrong_columns,
        wide=table.wide,
        small_rows=table.small_rows,
        smooth=table.smooth,
    )


def _phases(subject: Subject) -> str | None:
    """Why the gradient has no derivative, where the phases of outputs were fixed for it."""
    if not any(block.complex for block in subject.codomain.blocks):
        return None
    from gradcli.checks.phases import REASON, FixedPhases, without_phases

    return REASON if isinstance(without_phases(subject, 1), FixedPhases) else None
