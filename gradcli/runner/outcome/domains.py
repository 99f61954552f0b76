"""A domain or a shape of the inputs for which the gradient is right, where it is wrong at the inputs tried."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import Argument, InputSpec
from gradcli.checks.other_points.bounds import all_bounds_of, is_drawn
from gradcli.checks.other_points.changes import Change
from gradcli.checks.other_points.points import other_points
from gradcli.inputs.builders import build
from gradcli.inputs.hints.reading import read_hints
from gradcli.inputs.search.domains import ORDERED, pairs_of
from gradcli.inputs.search.trials import DomainChoice
from gradcli.results import CheckResult, Evidence, Finding
from gradcli.runner.outcome.recheck import FailureProof, Recheck
from gradcli.runner.planning.plan import CheckCase

_SAMPLES = 3
"""How many random inputs of the domain the gradient has to be right for."""
_LARGER = 4.0
"""It must not be wrong for inputs so many times as large either: random ones lie between 0.3 and 2."""
_LEAST = 0.5
"""The smallest entry after a shift."""


def positive_note(
    result: CheckResult,
    case: CheckCase,
    subject: Subject,
    finding: Finding,
    evidence: Sequence[Evidence],
    smallest: Sequence[Argument],
) -> str | None:
    """The flags to add if some inputs are always positive, where the gradient is wrong at the negative entries drawn.

    Args:
        result: the failed case, with the inputs that were inferred.
        case: the case.
        subject: the target at the sample that failed.
        finding: what was found there.
        evidence: what the checks found there.
        smallest: the smallest failing arguments: inputs that are positive there are no excuse.

    Returns:
        The note; None where the gradient is wrong at positive values too, or something else than values is wrong.
    """
    proof = FailureProof.of(finding, evidence)
    if not (proof.is_of_values and proof.is_finite):
        return None
    recheck = Recheck(subject, proof, case.settings, case.seed)
    free = _free(result.inputs, subject.arguments)

    failing = [subject.arguments, smallest]

    def excuses(chosen: tuple[InputSpec, ...]) -> bool:
        if _are_positive(chosen, smallest) or not is_right_for(recheck, chosen, subject.arguments, result, case):
            return False
        others = itertools.chain(
            _made_positive(chosen, failing),
            _larger(chosen, subject.arguments, result, case),
            _beyond_the_draws(chosen, subject, result, case),
        )
        return not any(recheck.is_refuted(arguments) for arguments in others)

    found: list[tuple[InputSpec, ...]] = [(spec,) for spec in free if excuses((spec,))]
    if not found and len(free) > 1 and excuses(free):
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


def ordered_note(
    result: CheckResult, case: CheckCase, subject: Subject, finding: Finding, evidence: Sequence[Evidence]
) -> str | None:
    """The flags to add if a lower limit is always below the upper one, as it need not be in the inputs tried.

    The arguments and the result are those of `positive_note`; the inputs may also be those whose shapes the user gave.
    """
    proof = FailureProof.of(finding, evidence)
    if not (proof.is_of_values and proof.is_finite):
        return None
    recheck = Recheck(subject, proof, case.settings, case.seed)
    specs = {spec.name: spec for spec in result.inputs if spec.kind == "tensor" and spec.domain == "normal"}
    names = [parameter.name for parameter in subject.info.parameters]

    def drawn(pair: Sequence[str], domains: Sequence[DomainChoice]) -> tuple[InputSpec, ...]:
        return tuple(
            replace(specs[name], domain=domain, parameters=parameters)
            for name, (domain, parameters) in zip(pair, domains, strict=True)
        )

    for pair in pairs_of(read_hints(subject.info, names).forward, names):
        if not specs.keys() >= set(pair):
            continue
        for domains in ORDERED:
            chosen = drawn(pair, domains)
            if not is_right_for(recheck, chosen, subject.arguments, result, case):
                continue
            if recheck.is_refuted(_put_in_order(pair, subject.arguments)):
                continue
            # Both positive, in the other order: if the gradient is right there too, the order is not the reason.
            turned = drawn(pair, ORDERED[1][::-1])
            if any(
                recheck.is_refuted(a) or recheck.fails(a) for a in drawn_from(turned, subject.arguments, result, case)
            ):
                low, high = pair
                flags = " ".join(spec.as_flag() for spec in chosen)
                return (
                    f"the gradient is wrong where {low} is above {high}, and was right wherever gradcli tried {low} "
                    f"below {high}: if {low} is always below {high} in your program, rerun with {flags}"
                )
    return None


def summed_note(
    result: CheckResult, case: CheckCase, subject: Subject, finding: Finding, evidence: Sequence[Evidence]
) -> str | None:
    """The flag to add if an inferred input always has the shape that backward returns its gradient in.

    A loss that divides by `weight.sum()` may be meant for a weight of every entry, and forward takes a vector as well.
    The framework silently sums a larger gradient to the shape of the vector, and the sum may be wrong.

    The arguments and the result are those of `positive_note`.
    """
    proof = FailureProof.of(finding, evidence)
    positions = [n for n, argument in enumerate(subject.arguments) if argument.name == finding.input]
    specs = [spec for spec in result.inputs if spec.name == finding.input and spec.kind == "tensor"]
    if not (proof.is_of_values and proof.is_finite and positions and specs):
        return None
    raw = subject.raw_backward([np.ones(block.shape, block.dtype) for block in subject.codomain.blocks])
    gradient = raw.gradients[positions[0]] if positions[0] < len(raw.gradients) else None
    given = np.shape(subject.arguments[positions[0]].value)
    if gradient is None or gradient.shape is None or not raw.sums_down or gradient.shape == given:
        return None
    larger = replace(specs[0], shape=gradient.shape)
    if not is_right_for(Recheck(subject, proof, case.settings, case.seed), (larger,), subject.arguments, result, case):
        return None
    returned, own = list(gradient.shape), list(given)
    return (
        f"gradcli inferred shape {own} for {finding.input}, and backward returns a gradient of shape {returned} for "
        f"it; the framework sums that, and the sum is wrong. For {finding.input} of shape {returned} the gradient is "
        f"right: if it always has that shape in your program, add {larger.as_flag()}"
    )


def distinct_note(
    result: CheckResult, case: CheckCase, subject: Subject, finding: Finding, evidence: Sequence[Evidence]
) -> str | None:
    """The flag to add if the indices in an input never repeat, as they may in those drawn.

    The arguments and the result are those of `positive_note`.
    """
    proof = FailureProof.of(finding, evidence)
    if not (proof.is_of_values and proof.is_finite):
        return None
    recheck = Recheck(subject, proof, case.settings, case.seed)
    for spec in result.inputs:
        high = dict(spec.parameters).get("high")
        if spec.domain != "indices" or not spec.shape or not isinstance(high, int) or spec.shape[-1] > high:
            continue
        different = replace(spec, domain="permutation", parameters=(("high", high),))
        if is_right_for(recheck, (different,), subject.arguments, result, case):
            return (
                f"the gradient is wrong where an index repeats in {spec.name}, and was right wherever gradcli tried "
                f"different ones: if they are always different in your program, rerun with {different.as_flag()}"
            )
    return None


def _free(specs: Sequence[InputSpec], arguments: Sequence[Argument]) -> tuple[InputSpec, ...]:
    """The inputs that have negative entries, each to be drawn from positive numbers instead."""
    negative = {a.name for a in arguments if a.is_tensor and a.value.dtype.kind == "f" and bool((a.value < 0).any())}
    return tuple(replace(s, domain="positive") for s in specs if s.domain == "normal" and s.name in negative)


def _are_positive(chosen: Sequence[InputSpec], arguments: Sequence[Argument]) -> bool:
    """Whether all entries of the chosen inputs are positive in these arguments."""
    names = {spec.name for spec in chosen}
    return all(bool((a.value > 0).all()) for a in arguments if a.name in names)


def _put_in_order(pair: Sequence[str], arguments: Sequence[Argument]) -> tuple[Argument, ...]:
    """The arguments with the smaller of two limits as the lower one everywhere."""
    values = {a.name: a.value for a in arguments if a.name in pair}
    low, high = (values[name] for name in pair)
    if low.shape != high.shape:
        low, high = np.minimum(low, high.min(initial=np.inf)), np.maximum(high, low.max(initial=-np.inf))
    ordered = dict(zip(pair, (np.minimum(low, high), np.maximum(low, high)), strict=True))
    return tuple(replace(a, value=ordered[a.name]) if a.name in ordered else a for a in arguments)


def _made_positive(
    chosen: Sequence[InputSpec], failing: Sequence[Sequence[Argument]]
) -> Iterator[tuple[Argument, ...]]:
    """The failing arguments with the chosen inputs made positive: by their magnitudes, and shifted together.

    What depends on distances or squares stays wrong there, unless the sign was the reason.
    """
    names = {spec.name for spec in chosen}
    for arguments in failing:
        least = min((float(a.value.min()) for a in arguments if a.name in names and a.value.size), default=0.0)
        for changed in (
            lambda value: np.where(value == 0, _LEAST, np.abs(value)),
            lambda value, least=least: value - least + _LEAST,
        ):
            yield tuple(
                replace(a, value=np.asarray(changed(a.value), dtype=a.value.dtype)) if a.name in names else a
                for a in arguments
            )


def _larger(
    chosen: Sequence[InputSpec], arguments: Sequence[Argument], result: CheckResult, case: CheckCase
) -> Iterator[tuple[Argument, ...]]:
    """Arguments drawn from the domain, with larger numbers."""
    names = {spec.name for spec in chosen}
    for drawn in drawn_from(chosen, arguments, result, case):
        yield tuple(
            replace(a, value=np.asarray(a.value * _LARGER, dtype=a.value.dtype)) if a.name in names else a
            for a in drawn
        )


def _beyond_the_draws(
    chosen: Sequence[InputSpec], subject: Subject, result: CheckResult, case: CheckCase
) -> Iterator[tuple[Argument, ...]]:
    """Arguments drawn from the domain, changed as other inputs are: all of them small, or of many sizes.

    Random inputs seldom come near a threshold on a difference of two of them; at small ones every difference is small.
    """
    for drawn in itertools.islice(drawn_from(chosen, subject.arguments, result, case), 1):
        floating = [i for i, a in enumerate(drawn) if a.is_tensor and a.value.dtype.kind == "f" and is_drawn(a)]
        generator = np.random.default_rng([case.seed, 41])
        left_out = set(Change) - {Change.SCALED, Change.SMALL}
        for candidates in other_points(drawn, all_bounds_of(drawn, floating), generator, left_out):
            yield from itertools.islice(candidates, 1)


def drawn_from(
    chosen: Sequence[InputSpec], arguments: Sequence[Argument], result: CheckResult, case: CheckCase
) -> Iterator[tuple[Argument, ...]]:
    """The arguments with the chosen inputs drawn from their new domains, first with the other inputs as they are."""
    names = {spec.name for spec in chosen}
    others = tuple(spec for spec in result.inputs if spec.domain == "normal" and spec.name not in names)
    for sample in range(_SAMPLES):
        specs = (*chosen, *(others if sample else ()))
        new = {a.name: a for a in build(specs, seed=case.seed, dtype=case.settings.dtype, sample=sample)}
        yield tuple(
            replace(a, value=new[a.name].value, domain=new[a.name].domain) if a.name in new else a for a in arguments
        )


def is_right_for(
    recheck: Recheck, chosen: Sequence[InputSpec], arguments: Sequence[Argument], result: CheckResult, case: CheckCase
) -> bool:
    """Whether the check passes at all samples. One direction is tested first: it refutes most wrong gradients."""
    drawn = drawn_from(chosen, arguments, result, case)
    return all(not recheck.is_refuted(these) and recheck.passes(these) for these in drawn)
