"""A domain of the inferred inputs in which the gradient is right, where it is wrong at the numbers drawn."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gradcli.backends.base import Subject
from gradcli.cases import Argument, InputSpec
from gradcli.inputs.builders import build
from gradcli.results import CheckResult, Evidence, Finding
from gradcli.runner.outcome.recheck import FailureProof, Recheck
from gradcli.runner.planning.plan import CheckCase

_SAMPLES = 3
"""How many random inputs of the domain the gradient has to be right for."""


def positive_note(
    result: CheckResult, case: CheckCase, subject: Subject, finding: Finding, evidence: Sequence[Evidence]
) -> str | None:
    """The flags to add if some inputs are always positive, where the gradient is wrong at the negative entries drawn.

    Args:
        result: the failed case, with the inputs that were inferred.
        case: the case.
        subject: the target at the sample that failed.
        finding: what was found there.
        evidence: what the checks found there.

    Returns:
        The note; None where the gradient is wrong at positive values too, or something else than values is wrong.
    """
    proof = FailureProof.of(finding, evidence)
    if not (proof.is_of_values and proof.is_finite):
        return None
    recheck = Recheck(subject, proof, case.settings, case.seed)
    free = _free(result.inputs, subject.arguments)
    found: list[tuple[InputSpec, ...]] = [
        (spec,) for spec in free if _is_right(recheck, (spec,), subject.arguments, case)
    ]
    if not found and len(free) > 1 and _is_right(recheck, free, subject.arguments, case):
        found = [free]
    if not found:
        return None
    where = ", or where ".join(" and ".join(f"{spec.name} > 0" for spec in choice) for choice in found)
    flags = ", or ".join(" ".join(spec.as_flag() for spec in choice) for choice in found)
    holds, what = ("that always holds", "") if len(found) == 1 else ("one of these always holds", "its flag: ")
    return (
        f"gradcli chose inputs with negative entries; the gradient is right where {where}: if {holds} in your program, "
        f"add {what}{flags}"
    )


def _free(specs: Sequence[InputSpec], arguments: Sequence[Argument]) -> tuple[InputSpec, ...]:
    """The inputs that have negative entries, each to be drawn from positive numbers instead."""
    negative = {a.name for a in arguments if a.is_tensor and a.value.dtype.kind == "f" and bool((a.value < 0).any())}
    return tuple(replace(s, domain="positive") for s in specs if s.domain == "normal" and s.name in negative)


def _drawn(
    chosen: Sequence[InputSpec], arguments: Sequence[Argument], case: CheckCase
) -> Iterator[tuple[Argument, ...]]:
    """The arguments with the chosen inputs drawn from their domain, as they are if the flags are given."""
    for sample in range(_SAMPLES):
        new = {a.name: a for a in build(chosen, seed=case.seed, dtype=case.settings.dtype, sample=sample)}
        yield tuple(replace(a, value=new[a.name].value, domain="positive") if a.name in new else a for a in arguments)


def _is_right(recheck: Recheck, chosen: Sequence[InputSpec], arguments: Sequence[Argument], case: CheckCase) -> bool:
    """Whether the check passes at all samples. One direction is tested first: it refutes most wrong gradients."""
    return all(not recheck.is_refuted(drawn) and recheck.passes(drawn) for drawn in _drawn(chosen, arguments, case))
