"""A higher derivative that is wrong because forward keeps a result of its own: right if backward computes it again."""

from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FunctionType
from typing import final

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.diagnosis.slips.hooks import running
from gradcli.edits.draft import Draft, drafts_for
from gradcli.edits.recomputing import Recomputation, computed_again, recomputations
from gradcli.errors import OverrunError, UserCodeError
from gradcli.frozen import dataclass
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.verify import Outcome, verify
from gradcli.results import Evidence, Location

_MOST_ROWS = 16
"""Rows of a measured Jacobian that are compared before the derivative is verified as a whole."""
_AGREES = 1e-7
"""The significance of a check: a relative error below it is none."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConstant:
    """The proven cause: what forward keeps, the line that keeps it, and the file with backward computing it again."""

    said: str
    location: Location
    corrected: str | None


def saved_constant(failed: Sequence[Evidence], subject: Subject) -> tuple[SavedConstant | None, bool]:
    """The result that forward keeps and through which no derivative flows, if the derivative is right without that.

    Args:
        failed: the evidence at the lowest order at which the derivative is wrong.
        subject: where it was found.

    Returns:
        The cause, None if it is not proven; and whether one was tried, so that another cause is to be looked for.
    """
    tried = False
    for owner, role, draft, recomputed in _recomputations(subject):
        codes = draft.codes_with(recomputed.candidate.changes)
        right = None if codes is None else _is_right(failed, subject, codes)
        tried |= right is not None
        if not right:
            continue
        blamed = _fewest(failed, subject, role, draft, recomputed)
        made = draft.with_changes(blamed.candidate.changes)
        found = SavedConstant(
            said=_said(owner, [f"`{kept.name}`" for kept in blamed.saved]),
            location=Location(file=draft.file.path, line=blamed.saved[0].line),
            corrected=None if made is None else made.file.text,
        )
        return found, True
    return None, tried


def _said(owner: str, names: Sequence[str]) -> str:
    """The cause in words."""
    if len(names) == 1:
        return (
            f"{owner} saves the intermediate result {names[0]}, which backward treats as a constant; with it computed "
            "again in backward, the derivative is right"
        )
    return (
        f"{owner} saves the intermediate results {', '.join(names[:-1])} and {names[-1]}, which backward treats as "
        "constants; with them computed again in backward, the derivative is right"
    )


def _fewest(
    failed: Sequence[Evidence], subject: Subject, role: str, draft: Draft, whole: Recomputation
) -> Recomputation:
    """The recomputation without values that stay constant: numbers, masks, and what depends on no input.

    They are left out one by one where the measured rows stay right, and what remains is verified as a whole.
    """
    measured = any(e.mismatch is not None for e in failed)
    if len(whole.saved) < 2 or not measured:
        return whole
    forward, backward, plain = draft.part(role).node, draft.backward.node, _plain(subject)
    left: list[str] = []
    fewest = whole
    for each in whole.saved:
        made = computed_again(forward, backward, plain, [*left, each.name])
        codes = None if made is None else draft.codes_with(made.candidate.changes)
        if made is not None and codes is not None and _is_right(failed, subject, codes, measured=True):
            left.append(each.name)
            fewest = made
    codes = None if fewest is whole else draft.codes_with(fewest.candidate.changes)
    return fewest if codes is not None and _is_right(failed, subject, codes) else whole


def _plain(subject: Subject) -> list[str]:
    return [argument.name for argument in subject.arguments if not argument.is_tensor]


def _recomputations(subject: Subject) -> Iterator[tuple[str, str, Draft, Recomputation]]:
    """What may be computed again, with what saves it in words and as a role (forward or setup_context), and the file.

    The words name the Function where the target calls it.
    """
    plain = _plain(subject)
    for name, draft in drafts_for(subject.info).items():
        for role in ("forward", "setup_context"):
            if draft.has(role):
                for each in recomputations(draft.part(role).node, draft.backward.node, plain):
                    yield (f"{name}.{role}" if subject.info.called else role), role, draft, each


def _is_right(
    failed: Sequence[Evidence], subject: Subject, codes: Mapping[FunctionType, CodeType], *, measured: bool = False
) -> bool | None:
    """Whether the derivatives are right where functions run other code, as measured before, then as a whole.

    Only as measured before, where they were `measured`. None if that code raises, or the first derivative is another
    one.
    """
    order = failed[0].order
    generator = np.random.default_rng(order)
    cotangent = generator.standard_normal(subject.codomain.size)
    try:
        before = subject.derivative_map(1).vjp(subject.point, cotangent)
        with running(codes):
            there = subject.rebind(subject.arguments)
            first = there.derivative_map(1).vjp(there.point, cotangent)
            if not np.allclose(first, before, rtol=0, atol=_AGREES * np.abs(before).max(initial=0.0)):
                return None  # not what forward computes
            map_ = there.derivative_map(order)
            if not all(_agrees(e, map_) for e in failed):
                return False
            if measured:
                return True
            found = verify(map_, there.base_point(order, order), seed=order, witness=there.body_map(order))
    except OverrunError:
        raise
    except UserCodeError:  # the edit uses what backward does not have
        return None
    return bool(found.blocks) and all(block.outcome is Outcome.AGREES for block in found.blocks)


def _agrees(evidence: Evidence, map_: VectorMap) -> bool:
    """Whether the rows of the Jacobian that were measured are what the map returns."""
    mismatch = evidence.mismatch
    if mismatch is None or mismatch.point.shape != (map_.domain.size,):
        return True
    columns = map_.domain.slices[mismatch.input].start + mismatch.columns
    for number, row in enumerate(mismatch.rows[:_MOST_ROWS]):
        unit: FloatArray = np.zeros(map_.codomain.size)
        unit[map_.codomain.slices[mismatch.output].start + row] = 1.0
        claimed, numeric = map_.vjp(mismatch.point, unit)[columns], mismatch.numeric[number]
        slack = 3 * mismatch.bound[number] + _AGREES * np.abs(numeric).max(initial=0.0)
        if (np.abs(claimed - numeric) > slack).any():
            return False
    return True
