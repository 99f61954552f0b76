"""The candidates of a search in stages, the edits that are most likely and least large first."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli.edits.expressions import Candidate
from gradcli.findings import FindingKind as K
from gradcli.fix.candidates import Setting, cut_graphs, farther, farthest, fits, forward_edits, in_place, near, needed
from gradcli.fix.examine import Examination
from gradcli.fix.probes import Probes

_WRITES = frozenset({K.MUTATES_GRAD_OUTPUT, K.MUTATES_SAVED, K.MUTATES_INPUT})


def stages(
    setting: Setting, probes: Probes, wrong: frozenset[int] | None, seen: Examination, deferred: Sequence[Candidate]
) -> Iterator[Callable[[], Iterator[Candidate]]]:
    """The stages for what is wrong: where no gradient is, only edits that leave them right.

    Candidates that the stages before have deferred follow before larger edits.
    """
    values = wrong is None or bool(wrong)

    def first() -> Iterator[Candidate]:
        yield from near(setting)
        if wrong and len(setting.scopes) == len(probes.each):
            yield from fits(setting, _lacks(probes, wrong))

    kinds = {finding.kind for finding in seen.findings}
    if not values and kinds & _WRITES:
        yield lambda: in_place(setting)
    if not values and K.NOT_TWICE_DIFFERENTIABLE in kinds:
        yield lambda: cut_graphs(setting)
    if not values and K.NEEDS_INPUT_GRAD in kinds:
        yield lambda: needed(setting, [f.input for f in seen.findings if f.kind is K.NEEDS_INPUT_GRAD])
    yield first
    yield lambda: forward_edits(setting)
    if values:
        yield lambda: farther(setting)
    yield lambda: iter(tuple(deferred))
    if values:
        yield lambda: farthest(setting)


def _lacks(probes: Probes, wrong: frozenset[int]) -> list[tuple[list[Any], list[Any]]]:
    """For each wrong input the right gradients at the probes and what is returned."""
    returned = [probe.returned() for probe in probes.each]
    found = []
    for place in sorted(wrong):
        right = [probe.right[place] for probe in probes.each]
        had = []
        for probe, row in zip(probes.each, returned, strict=True):
            position = probe.subject.active[place]
            had.append(None if row is None or position >= len(row) else row[position])
        if all(r is not None for r in right):
            found.append((right, had))
    return found
