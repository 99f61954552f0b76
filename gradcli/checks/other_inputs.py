"""Inputs other than those given, which may take another branch of forward, where backward is wrong."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import final

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.cases import with_defaults
from gradcli.checks.base import Check, Situation
from gradcli.checks.batch.fixed import hints_of
from gradcli.checks.gradient import comparable
from gradcli.checks.iteration import iterates, stays_wrong
from gradcli.checks.other_points.bounds import Bounds, all_bounds_of, is_drawn, with_closed_ends
from gradcli.checks.other_points.comparison import Comparison, close, pulled
from gradcli.checks.other_points.failing import failures
from gradcli.checks.other_points.points import (
    TOGETHER,
    Arguments,
    combined_point,
    documented_points,
    other_points,
    zero_points,
)
from gradcli.checks.other_points.proof import note_of, overflow_note, simplest, wrong_at
from gradcli.checks.other_points.structure import equal_eigenvalues, label_of_equal_eigenvalues
from gradcli.checks.other_points.thresholds import around_places, between_thresholds
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.sampling.directions import entry_scales
from gradcli.results import Evidence

LARGEST = 1_000
"""Inputs of more numbers than this are not swept."""

_NEAR, _SAME = 2.0**-10, 1e-9
"""A step relative to each entry that changes a derivative visibly, and what a right gradient may be off by."""
_KEPT = (
    "its gradient stays the same when the input changes, although the derivative changes: backward uses values that "
    "forward stored in an earlier call, on the class or module instead of ctx"
)
_OVERFLOWING = 32.0
"""Entries as large as this may make a right backward overflow: exp(3 x) does in single precision."""


@final
class OtherInputsCheck(Check):
    """Gradients in other branches of forward than the given inputs take; a note if the user gave the values."""

    name = "other-inputs"
    optional = True
    sentence = (
        "the gradients are right also at larger, smaller and negative inputs, at special values (such as 0 and 1), "
        "between the constants of the source, where entries are equal or in order, and where a mask leaves out all; a "
        "wrong gradient there is a failure if gradcli drew the inputs, and only a note if you gave their values"
    )

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare backward with autodiff of forward's body at other inputs; if they differ, differences decide."""
        subject = situation.subject
        if not situation.sweep or not comparable(situation) or subject.domain.size > LARGEST:
            return
        witness, info = subject.body_map(1), subject.info
        wanted = self.name in situation.settings.only or not info.has_autodiff
        if witness is None and info.backward is None and info.has_autodiff:  # no rule of its own
            return
        if witness is None and not wanted:
            yield from self._documented(situation)
            return
        all_bounds = all_bounds_of(subject.arguments, subject.active)
        drawn = {place: bounds for place, bounds in all_bounds.items() if is_drawn(subject.arguments[place])}
        data = _drawn_data(subject) if drawn else {}
        if not situation.sizes_given:
            closed = hints_of(situation).values.closed
            drawn, data = (with_closed_ends(each, subject.arguments, closed) for each in (drawn, data))
        parts = [part for part in (drawn, {**drawn, **data} if data else {}) if part]
        parts = parts or ([drawn] if any(equal_eigenvalues(subject.arguments, subject.active)) else [])
        compared, overflow = False, None
        for part in parts + ([all_bounds] if all_bounds.keys() != drawn.keys() else []):
            sweep = _Sweep(situation, witness, part, is_first=part is drawn, counts=part in parts)
            if evidence := self._first_judged(situation, sweep.doubtful(), counts=part in parts):
                yield from evidence
                return
            compared = compared or sweep.compared
            overflow = overflow or sweep.overflow
        if compared or overflow is not None:
            yield self.passed(*([] if overflow is None else [overflow_note(subject, *overflow)]))

    def _documented(self, situation: Situation) -> list[Evidence]:
        """What differences show to be wrong at zeros that documentation allows, where forward has no body to ask."""
        subject = situation.subject
        if situation.sizes_given:
            return []
        all_bounds = all_bounds_of(subject.arguments, subject.active)
        drawn = {place: bounds for place, bounds in all_bounds.items() if is_drawn(subject.arguments[place])}
        bounds = with_closed_ends(drawn, subject.arguments, hints_of(situation).values.closed)
        sweep = _Sweep(situation, None, bounds, is_first=False, counts=True)
        evidence = self._first_judged(situation, sweep.documented(), counts=True)
        return evidence or ([self.passed()] if sweep.compared else [])

    def _first_judged(self, situation: Situation, doubtful: Iterator[Comparison], *, counts: bool) -> list[Evidence]:
        return next(filter(None, (self._judged(situation, found, counts=counts) for found in doubtful)), [])

    def _judged(self, situation: Situation, found: Comparison, *, counts: bool) -> list[Evidence]:
        """What is wrong at one of the other inputs: failures where they count, else a note; nothing if it is right."""
        from gradcli.checks.other_points.other_masks import is_filled_row, label_of_data

        subject, label = situation.subject, label_of_data(situation.subject, found.arguments, found.data)
        label = label or label_of_equal_eigenvalues(subject.arguments, found.arguments)
        steps = counts and iterates(subject, found.arguments) and not stays_wrong(subject, found.arguments)
        filled = counts and is_filled_row(subject, found.arguments, found.value, found.claimed)
        if (
            counts
            and not (steps or filled or found.excused)
            and (evidence := failures(self.name, situation, found.arguments, label))
        ):
            return evidence
        wrong = wrong_at(situation, found.arguments, noted=True)
        if wrong is None or (counts and not wrong.at_one_point and found.is_unsure()):
            return []
        if not counts and (kept := self._left_by_earlier_calls(situation)):
            return kept
        why = "you gave the inputs, and these values are not among them"
        if counts:
            why = "the gradient at a kink is a matter of convention" if wrong.at_one_point else "it is right close by"
            why = "autodiff of forward's body is not finite there either" if found.excused else why
            why = "forward iterates, and may not have converged at these inputs" if steps else why
            why = "forward fills what a mask leaves out with a number, also in a row without entries" if filled else why
        return [self.passed(note_of(*simplest(situation, found.arguments, wrong), why))]

    def _left_by_earlier_calls(self, situation: Situation) -> list[Evidence]:
        """A finding for each input whose gradient is right, and stays the same to the bit close by where it should not.

        A formula of the input that stays the same there is not right by accident: backward has what an earlier call
        of forward left.
        """
        subject, cotangent = situation.subject, situation.subject.codomain.flatten(situation.cotangents(number=1))
        maps = subject.derivative_map(1), subject.body_map(1)
        signs = np.random.default_rng([situation.seed, 31]).choice([-1.0, 1.0], subject.point.size)
        near = subject.point + _NEAR * signs * entry_scales(subject.domain, subject.point)
        given = [[pulled(m, x, cotangent) for x in (subject.point, near)] for m in maps if m is not None]
        rows = [[found[1] for found in each if found is not None] for each in given]
        if [len(each) for each in rows] != [2, 2]:
            return []
        (here, there), (right, moved) = rows
        names = []
        for place, position in zip(subject.domain.slices, subject.active, strict=True):
            size = float(np.abs(right[place]).max(initial=0.0))
            changes = np.abs(moved[place] - right[place]) > _NEAR**2 * size
            is_right = bool((np.abs(here[place] - right[place]) <= _SAME * size).all())
            if is_right and changes.any() and (here[place] == there[place])[changes].all():
                names.append(situation.input_name(position))
        return [self.failed(FindingKind.STATEFUL, f"{name}: {_KEPT}", input=name) for name in names]


@final
class _Sweep:
    """Gradient and reference at other values of some inputs.

    `compared` says whether any point could be compared; `overflow` holds large inputs at which backward's gradient is
    not finite although value and reference are, and that gradient.
    """

    def __init__(
        self,
        situation: Situation,
        witness: VectorMap | None,
        all_bounds: Mapping[int, Bounds],
        *,
        is_first: bool,
        counts: bool,
    ) -> None:
        self.compared = False
        self.overflow: tuple[Arguments, FloatArray] | None = None
        self._is_first, self._counts = is_first, counts
        self._situation, self._witness, self._all_bounds = situation, witness, all_bounds

    def doubtful(self) -> Iterator[Comparison]:
        """The inputs to be checked by differences, up to a limit."""
        situation, subject, witness = self._situation, self._situation.subject, self._witness
        generator = np.random.default_rng([situation.seed, 23])
        cotangent = subject.codomain.flatten(situation.cotangents(number=1))
        together = combined_point(subject.arguments, self._all_bounds, generator)
        combined = None if together is None or witness is None else self._first_compared(cotangent, [together])
        same = combined is not None and not combined.apart(situation)
        if self._counts and combined is not None and same:
            same = not combined.is_off_at_special_values()
        tried = TOGETHER if same else ()
        self.compared = bool(tried)
        between = between_thresholds(subject.info)
        around = around_places(subject.info, with_defaults(subject.arguments, subject.info))
        points = other_points(subject.arguments, self._all_bounds, generator, tried, between, around)
        others = _other_data(subject) if self._is_first else ()
        zeros = zero_points(subject.arguments, self._all_bounds) if self._counts else ()
        matrices = equal_eigenvalues(subject.arguments, subject.active) if self._is_first else ()
        kinds = ((points, False), (zeros, True), (others, False), (matrices, False))
        each = itertools.chain.from_iterable(zip(each, itertools.repeat(z)) for each, z in kinds)
        yield from self._doubtful_of(cotangent, each)

    def documented(self) -> Iterator[Comparison]:
        """The same at values that documentation allows."""
        subject = self._situation.subject
        cotangent = subject.codomain.flatten(self._situation.cotangents(number=1))
        points = documented_points(subject.arguments, self._all_bounds)
        yield from self._doubtful_of(cotangent, zip(points, itertools.repeat(False)))

    def _doubtful_of(
        self, cotangent: FloatArray, tried: Iterable[tuple[Iterable[Arguments], bool]]
    ) -> Iterator[Comparison]:
        situation, asked = self._situation, 0
        for candidates, zero in tried:
            found = self._first_compared(cotangent, candidates, zero=zero)
            self.compared = self.compared or found is not None
            if found is None or asked >= found.most_asked or not found.doubtful(situation, special=self._counts):
                continue
            asked += 1
            yield found

    def _first_compared(
        self, cotangent: FloatArray, candidates: Iterable[Arguments], *, zero: bool = False
    ) -> Comparison | None:
        """Claim and witness at the first of these arguments where they can be compared; None if there are none.

        They cannot be compared if forward refuses the arguments or takes too long, if values are not finite, or if
        forward's body gives other values than forward. A claim that is not finite is a mistake if the witness is
        finite, except at large inputs: many a right formula overflows there, so that is only kept as `overflow`. Where
        neither is finite, differences decide: autodiff of forward's body divides zero by zero as easily as backward. It
        is excused where an input was made `zero`.
        """
        subject, given = self._situation.subject, self._situation.subject.point
        for arguments in candidates:
            point = subject.domain.flatten([arguments[i].value for i in subject.active])
            data = _changed_data(subject, arguments)
            if not data and not np.any(point != given):
                continue
            at = self._subject_at(arguments) if data else subject
            if at is None:
                continue
            witness = self._witness if at is subject else at.body_map(1)
            claimed = pulled(at.derivative_map(1), point, cotangent, finite=False)
            if claimed is None:
                continue
            other = None if witness is None else pulled(witness, point, cotangent)
            is_finite = bool(np.isfinite(claimed[1]).all())
            useless = is_finite and witness is not None if other is None else not close(claimed[0], other[0])
            if useless:
                continue
            found = Comparison(
                subject=at,
                arguments=arguments,
                data=data,
                point=point,
                cotangent=cotangent,
                value=claimed[0],
                claimed=claimed[1],
                other=None if other is None else other[1],
                witness=None if other is None else witness,
                zero=zero,
            )
            if is_finite or not bool((np.abs(point) > _OVERFLOWING).any()):
                return found
            if other is not None or found.is_smooth_where_not_finite():
                self.overflow = self.overflow or (arguments, claimed[1])
        return None

    def _subject_at(self, arguments: Arguments) -> Subject | None:
        """The subject whose maps hold at these arguments; None if forward refuses them, or gives other outputs."""
        subject = self._situation.subject
        try:
            other = subject.rebind(arguments)
        except UserCodeError:
            return None
        same = other.output_numbers == subject.output_numbers and other.active == subject.active
        return other if same and other.codomain.size == subject.codomain.size else None


def _other_data(subject: Subject) -> Iterator[Iterable[Arguments]]:
    """Other indices and masks than those drawn."""
    kinds = {a.value.dtype.kind for a in subject.arguments if a.is_tensor and is_drawn(a)}
    if kinds & {"i", "u"}:
        from gradcli.checks.other_points.other_indices import other_indices

        yield from ([point] for point in other_indices(subject.arguments, subject.info))
    if any(a.is_tensor and not a.requires_grad for a in subject.arguments):
        from gradcli.checks.other_points.other_masks import other_masks

        yield from other_masks(subject.arguments, subject.active)


def _drawn_data(subject: Subject) -> dict[int, Bounds]:
    """Where the entries of drawn inputs without a gradient may lie: forward's branch may depend on them as well.

    A single number is a setting, such as a running average, and not data.
    """
    tensors = [i for i, a in enumerate(subject.arguments) if a.is_tensor and a.shape]
    data = [i for i in tensors if i not in subject.active and is_drawn(subject.arguments[i])]
    return all_bounds_of(subject.arguments, [i for i in data if subject.arguments[i].value.dtype.kind == "f"])


def _changed_data(subject: Subject, arguments: Arguments) -> tuple[int, ...]:
    """The positions of inputs without a gradient that have other values than the subject's."""
    return tuple(
        i for i, a in enumerate(arguments) if i not in subject.active and a is not subject.arguments[i] and a.is_tensor
    )
