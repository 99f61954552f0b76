"""The check that failed, run again at other arguments of the same target."""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.cases import Argument
from gradcli.checks.base import Situation
from gradcli.checks.battery import run_battery
from gradcli.errors import GradcliError
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass
from gradcli.numerics.differences.refute import refuted
from gradcli.numerics.sampling.directions import entry_scales
from gradcli.results import Evidence, Finding, judge
from gradcli.settings import Settings
from gradcli.verdict import Verdict, tells_apart

CLOSE_BY = 2.0**-8
"""A point that lies this part of the inputs' size away counts as the same: beside a kink the verdict comes from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureProof:
    """The proof of a finding: the checks that failed, each with the finding that it named, if any."""

    finding: Finding
    behind: frozenset[tuple[str, FindingKind | None]]
    error: float | None = None
    """The largest error that was measured, relative to the largest entry of the gradient."""

    @staticmethod
    def of(finding: Finding, evidence: Sequence[Evidence]) -> "FailureProof":
        """From the evidence of the case."""
        failed = [e for e in evidence if e.verdict is Verdict.FAILED]
        close = [e for e in failed if (e.order, e.input) == (finding.order, finding.input)]
        named = [e for e in failed if e.finding is not None and is_same(e.finding, finding)]
        behind = named or close or failed
        errors = [e.max_rel_error for e in behind if e.max_rel_error is not None]
        return FailureProof(
            finding=finding,
            behind=frozenset((e.check, _kind(e)) for e in behind),
            error=max(errors, default=None),
        )

    @property
    def checks(self) -> tuple[str, ...]:
        """The names of the checks."""
        return tuple(sorted({check for check, _ in self.behind}))

    def holds_in(self, evidence: Sequence[Evidence]) -> bool:
        """Whether the evidence of other arguments proves the same, of the same input and order."""
        own = [e for e in evidence if e.verdict is Verdict.FAILED and (e.check, _kind(e)) in self.behind]
        return any(self._fits(e) for e in own)

    def _fits(self, e: Evidence) -> bool:
        if (e.order, e.input) != (self.finding.order, self.finding.input) and e.finding is None:
            return False
        if e.finding is not None and e.finding.input != self.finding.input:
            return False
        claimed = None if e.mismatch is None else e.mismatch.claimed
        return claimed is None or bool(np.isfinite(claimed).all()) == self.is_finite

    @property
    def is_finite(self) -> bool:
        """Whether numbers are wrong, rather than NaN or infinite."""
        return self.finding.kind is not FindingKind.NON_FINITE_GRADIENT

    @property
    def is_of_shape(self) -> bool:
        """Whether a gradient has a wrong shape, which its values explained."""
        return any(kind is FindingKind.WRONG_SHAPE for _, kind in self.behind)

    @property
    def is_of_values(self) -> bool:
        """Whether values of a gradient are wrong, found by a check that leaves the name to the diagnosis."""
        return all(check in ("gradient", "higher-order") and kind is None for check, kind in self.behind)


def _returns_numbers(subject: Subject, name: str | None) -> bool:
    """Whether backward returns anything but zeros for an input: zeros of a wrong shape would show only half of it.

    An object that is not a tensor counts too: it has no shape that a larger input would show better.
    """
    raw = subject.raw_backward([np.ones(block.shape, block.dtype) for block in subject.codomain.blocks])
    places = [place for place, argument in enumerate(subject.arguments) if argument.name == name]
    returned = [raw.gradients[place] for place in places if place < len(raw.gradients)]
    return any(not (each.is_none or each.is_tensor) or bool(np.any(each.value)) for each in returned)


def _has_its_shape(subject: Subject, name: str | None) -> bool:
    """Whether backward returns a gradient of an input's own shape, or none, for this input; True if it raises."""
    try:
        raw = subject.raw_backward([np.ones(block.shape, block.dtype) for block in subject.codomain.blocks])
    except GradcliError:
        return True
    places = [place for place, argument in enumerate(subject.arguments) if argument.name == name]
    shapes = [(raw.gradients[n].shape, subject.arguments[n].shape) for n in places if n < len(raw.gradients)]
    return all(returned in (None, own) for returned, own in shapes)


def _kind(e: Evidence) -> FindingKind | None:
    return None if e.finding is None else e.finding.kind


def is_same(one: Finding, other: Finding) -> bool:
    """Whether two findings say the same of the same input and order."""
    return (one.kind, one.input, one.order, one.message) == (other.kind, other.input, other.order, other.message)


@final
class Recheck:
    """Whether other arguments of a subject fail as it did.

    They do not where an input broadcasts that did not before: backward then returns a gradient of another shape than
    its own, which is wrong for a further reason.
    """

    def __init__(self, subject: Subject, proof: FailureProof, settings: Settings, seed: int) -> None:
        self._subject, self._proof, self._seed = subject, proof, seed
        self._keeps_shape = proof.is_of_values and _has_its_shape(subject, proof.finding.input)
        self._settings = replace(settings, only=proof.checks, skip=(), order=max(proof.finding.order, 1))

    def fails(self, arguments: Sequence[Argument]) -> bool:
        """Whether the check fails again at the arguments themselves, not at another point that it moved to."""
        proof = self._proof
        try:
            other = self._subject.rebind(tuple(arguments))
            seen = run_battery(other, self._settings, seed=self._seed)
            if not proof.holds_in(seen) or point_elsewhere(other, proof.finding, seen) is not None:
                return False
            if self._keeps_shape and not _has_its_shape(other, proof.finding.input):
                return False
            return not proof.is_of_shape or _returns_numbers(other, proof.finding.input)
        except GradcliError:  # forward or backward refuses these arguments: they do not show the finding
            return False

    def passes(self, arguments: Sequence[Argument]) -> bool:
        """Whether the check that failed passes at the arguments, for the same input and order.

        The error of the failure must have shown there: the gradient is not zero everywhere, and known well enough.
        """
        proof = self._proof
        try:
            seen = run_battery(self._subject.rebind(tuple(arguments)), self._settings, seed=self._seed)
        except GradcliError:  # forward or backward refuses these arguments
            return False
        own = [e for e in seen if (e.order, e.input) == (proof.finding.order, proof.finding.input)]
        passed = [e for e in own if e.verdict is Verdict.PASSED and not e.zero_everywhere]
        verdict = judge(seen, first_order=self._settings.first_order)
        return verdict is Verdict.PASSED and any(self._would_show(e) for e in passed)

    def _would_show(self, e: Evidence) -> bool:
        significance = Situation(subject=self._subject, settings=self._settings, seed=self._seed).significance
        return tells_apart(self._proof.error, max(significance, e.resolution or 0.0))

    def is_refuted(self, arguments: Sequence[Argument]) -> bool:
        """Whether the derivative along one direction shows that backward is wrong at exactly these arguments."""
        proof = self._proof
        if not (proof.is_of_values and proof.is_finite):
            return False
        order = proof.finding.order
        try:
            other = self._subject.rebind(tuple(arguments))
            situation = Situation(subject=other, settings=self._settings, seed=self._seed)
            map_ = situation.map_of(other, order)
            names = [block.name for block in map_.domain.blocks]
            if proof.finding.input not in names or not (map_.domain.size and map_.codomain.size):
                return False
            block = names.index(proof.finding.input)
            with other.session(lazy=True) as session:
                point = other.base_point(order, self._seed)
                answer = session.run_alike(
                    lambda: refuted(map_, point, block, seed=self._seed, significance=situation.significance)
                )
                return answer is True and (not self._keeps_shape or _has_its_shape(other, proof.finding.input))
        except GradcliError:  # as above
            return False


def point_elsewhere(subject: Subject, finding: Finding, evidence: Sequence[Evidence]) -> FloatArray | None:
    """The inputs that show a finding, where those are others than the subject's own; None where its own do."""
    behind = [
        e for e in evidence if e.verdict is Verdict.FAILED and (e.order, e.input) == (finding.order, finding.input)
    ]
    here = subject.point
    points = [e.mismatch.point[: here.size] for e in behind if e.mismatch is not None and e.measured_at is None]
    if not points:
        return None
    reach = CLOSE_BY * entry_scales(subject.domain, here)
    if any(bool((np.abs(point - here) <= reach).all()) for point in points):
        return None
    return points[0]
