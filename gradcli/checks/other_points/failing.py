"""A gradient that is wrong at other inputs than the random ones: the failure, and a domain that excludes them."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument, InputSpec
from gradcli.checks.base import Situation
from gradcli.checks.gradient import UNDECIDED, evidence_of
from gradcli.checks.other_points.bounds import any_given, bounds_of
from gradcli.checks.other_points.proof import Proof, Wrong, proof_at, wrong_at
from gradcli.errors import UserCodeError
from gradcli.numerics.verify import BlockOutcome, Outcome
from gradcli.results import Evidence
from gradcli.verdict import Verdict

_CLOSE_BY, _CLOSER = 2.0**-6, (2.0**-22, 2.0**-26)
"""Relative. A gradient has to be wrong at values this close, too: most branches are wider, an accident is not. In a
narrower branch, for inputs that are almost equal, it has to be wrong at both of the shorter distances."""
_LEAST, _ALIKE = 1e-3, 0.1
"""The error in such a narrow branch, relative to the largest entry, is at least the first, the smallest that a formula
usually makes, and at both distances the same to the second. Rounding errors of a right formula with cancellation change
with the distance."""
_OTHER_ORDER = (
    "which gradcli tried in addition to the random order; if such inputs cannot occur in your program, give fixed "
    "numbers as inputs (the key 'value' in a spec, or tensors in Python)"
)
_SHIFTS = (1, -1, 0, 0)
"""By how much the sorted entries are rolled, 0 for a random order. An order that is its own inverse, as two in three of
those of three entries are, hides `d[order]` in place of `d[argsort(order)]`; a roll of three or more is none."""
_ALSO_THERE = "at values that gradcli tried in addition to the random inputs, for which the comparison was inconclusive"
"""Where a gradient is wrong if the inputs drawn first were undecided: it may be wrong there too, so no domain helps."""


def failures(
    check: str, situation: Situation, arguments: Sequence[Argument], label: str | None = None
) -> list[Evidence]:
    """The evidence of a gradient that is proven wrong at these arguments; none if it is not.

    `label` says where that is and how to exclude it, by default the entry with the largest error and its value.

    At a kink the gradient is a matter of convention: it is not counted, even if it does not lie between the slopes.
    A gradient that is wrong at a single point counts if the slopes on both sides of the point are equal; where one that
    is not finite is proven wrong, they are.
    """
    proof = proof_at(situation, arguments)
    if proof is None:
        return []
    smooth = [b for b in proof.blocks if b.outcome is Outcome.DIFFERS or _is_smooth(b)]
    wide = [b.max_rel_error for b in smooth if b.outcome is Outcome.DIFFERS and not _is_not_finite(b)]
    lasts = not wide or _lasts(situation, arguments, max(wide))
    if not smooth or not (lasts or _breaks_off(situation, arguments, proof, smooth[0])):
        return []
    worst = proof.worst(smooth[0])
    found = replace(proof.found, blocks=tuple(_counted(block) for block in smooth))
    drawn, tried = situation.subject.arguments, proof.subject.arguments
    undecided: set[int] = situation.once(UNDECIDED, set)
    label = _ALSO_THERE if smooth[0].input in undecided else label
    label = label or _order_label(drawn, arguments) or _label_of_equal(tried, worst)
    label = label or _label(drawn, _unusual(drawn, tried, worst))
    return [
        _labelled(evidence, proof, label)
        for evidence in evidence_of(check, 1, proof.map_, found, proof.subject.output_numbers)
        if evidence.verdict is Verdict.FAILED
    ]


def failures_in_other_orders(check: str, situation: Situation) -> list[Evidence]:
    """The evidence that a gradient is wrong for the drawn entries in another order; empty if the values were given."""
    subject, rng = situation.subject, np.random.default_rng([situation.seed, 79])
    if any_given(subject):
        return []
    free = [
        number
        for number, a in enumerate(subject.arguments)
        if a.is_tensor and a.requires_grad and (bounds := bounds_of(a)) is not None and not bounds.ordered
    ]
    names = " and ".join(subject.arguments[number].name for number in free)
    label = f"where the entries of {names} are in another order, {_OTHER_ORDER}"
    for shift in _SHIFTS if free else ():
        arguments = list(subject.arguments)
        for number in free:
            entries = np.sort(arguments[number].value, axis=None)
            entries = np.roll(entries, shift) if shift else rng.permuted(entries)
            arguments[number] = replace(arguments[number], value=entries.reshape(arguments[number].shape))
        if found := failures(check, situation, arguments, label):
            return found
    return []


def _is_smooth(block: BlockOutcome) -> bool:
    """Whether a block is wrong at a single point with equal slopes on both sides; NaN there is not counted."""
    point = block.special
    return point is not None and not point.jump and point.left == point.right and bool(np.isfinite(point.claimed))


def _is_not_finite(block: BlockOutcome) -> bool:
    """Whether NaN or infinity was proven wrong in a block."""
    return block.table is not None and not np.isfinite(block.table.claimed).all()


def _counted(block: BlockOutcome) -> BlockOutcome:
    """The block without what is wrong only at a kink."""
    return block if block.special is None or _is_smooth(block) else replace(block, special=None)


def _labelled(evidence: Evidence, proof: Proof, label: str) -> Evidence:
    """The evidence with the subject at which it was measured, and what to say of the inputs there."""
    finding = evidence.finding
    labelled = None if finding is None else replace(finding, message=f"{finding.message}; the error appears {label}")
    return replace(evidence, measured_at=proof.subject, note=label, finding=labelled)


def _lasts(situation: Situation, arguments: Sequence[Argument], error: float) -> bool:
    """Whether the gradient is wrong at values close by too: those of `_CLOSE_BY`, or all of `_CLOSER` by as much."""
    if wrong_at(situation, _moved(situation, arguments, _CLOSE_BY)) is not None:
        return True
    if not _LEAST <= error < math.inf:
        return False
    near = (proof_at(situation, _moved(situation, arguments, amount)) for amount in _CLOSER)
    return all(
        proof is not None and abs(max(b.max_rel_error for b in proof.blocks) - error) <= _ALIKE * error
        for proof in near
    )


def _breaks_off(situation: Situation, arguments: Sequence[Argument], proof: Proof, block: BlockOutcome) -> bool:
    """Whether the slope of the worst entry, at an end of its interval, is what backward returns just inside that.

    Only the gradient jumps there, as that of `w * exp(x)` for w does where backward leaves out `w == 0`. At a guard
    such as `clamp(x, 1e-12)` the slope jumps instead.
    """
    table, inside = block.table, _moved(situation, arguments, _CLOSER[0])
    if table is None or all(np.array_equal(a.value, b.value) for a, b in _at_ends(situation, arguments, inside)):
        return False
    with np.errstate(all="ignore"):
        gap = np.nan_to_num(np.abs(table.claimed - table.numeric), nan=np.inf)
    row, column = np.unravel_index(int(gap.argmax()), gap.shape)
    space, cotangent = proof.map_.codomain, np.zeros(proof.map_.codomain.size)
    part = space.slices[block.output]
    if table.cotangent is None:
        cotangent[part.start + int(table.rows[row])] = 1.0
    else:
        cotangent[part] = table.cotangent
    try:
        other = situation.subject.rebind(inside)
        _, rows = situation.map_of(other, 1).value_and_vjps(other.point, cotangent[None])
    except UserCodeError:
        return False
    claimed = float(rows[0][proof.map_.domain.slices[block.input].start + int(table.columns[column])])
    slope = float(table.numeric[row, column])
    return abs(claimed - slope) <= _ALIKE * abs(slope)


def _at_ends(
    situation: Situation, arguments: Sequence[Argument], inside: Sequence[Argument]
) -> Iterator[tuple[Argument, Argument]]:
    """The arguments that have entries at an end of the interval that they were drawn from, each with another value."""
    for one, other, drawn in zip(arguments, inside, situation.subject.arguments, strict=True):
        bounds = bounds_of(drawn) if drawn.is_tensor else None
        if bounds is not None and bool(np.isin(one.value.real, (bounds.low, bounds.high)).any()):
            yield one, other


def _moved(situation: Situation, arguments: Sequence[Argument], most: float) -> tuple[Argument, ...]:
    """The arguments with every entry that gets a gradient changed by up to `most` of itself, in their order.

    A branch may depend on the order of the entries, which a change of each on its own could leave. An entry at an end
    of its interval, such as 0, moves into that: a guard such as `clamp(x, 1e-12)` matters at the end alone.
    """
    rng = np.random.default_rng([situation.seed, 31])
    return tuple(
        replace(a, value=_in_order_of(a.value, _inward(drawn, a.value, rng.uniform(-most, most, a.value.shape))))
        if a.is_tensor and a.requires_grad
        else a
        for a, drawn in zip(arguments, situation.subject.arguments, strict=True)
    )


def _inward(drawn: Argument, value: NDArray[Any], changes: NDArray[np.float64]) -> NDArray[Any]:
    """The values changed by parts of themselves; those at an end of the interval that was drawn from, into that."""
    bounds, changed = bounds_of(drawn), value * (1 + changes)
    if bounds is None:
        return np.asarray(changed)
    changed = np.where(value.real == bounds.low, value + np.abs(changes), changed)
    return np.asarray(np.where(value.real == bounds.high, value - np.abs(changes), changed))


def _in_order_of(value: NDArray[Any], changed: NDArray[Any]) -> NDArray[Any]:
    """The changed real entries, the smallest in the place of the smallest of `value`, and so on."""
    if value.dtype.kind != "f":
        return changed
    found = np.empty(value.size, changed.dtype)
    found[np.argsort(value, axis=None, kind="stable")] = np.sort(changed, axis=None)
    return found.reshape(value.shape)


def _order_label(drawn: Sequence[Argument], tried: Sequence[Argument]) -> str | None:
    """Where the gradient is wrong, if the values drawn were only put in order; None if they are others."""
    changed = [
        (before, after.value.reshape(-1))
        for before, after in zip(drawn, tried, strict=True)
        if before.is_tensor and not np.array_equal(before.value, after.value)
    ]
    for order, step in (("ascending", 1), ("descending", -1)):
        if changed and all(np.array_equal(np.sort(before.value, axis=None)[::step], now) for before, now in changed):
            names = " and ".join(before.name for before, _ in changed)
            return f"where the entries of {names} are in {order} order, {_OTHER_ORDER}"
    return None


def _label(drawn: Sequence[Argument], wrong: Wrong) -> str:
    """Where the gradient is wrong, and the flag that keeps random inputs away from there."""
    where = "at values that gradcli tried in addition to the random inputs"
    if wrong.entry is not None and wrong.value is not None:
        value = _told(wrong.value)
        where = f"where {wrong.entry} = {value}, a value that gradcli tried in addition to the random inputs"
    flags = [flag for one in drawn if one.name == wrong.input and (flag := _excluding(one, wrong)) is not None]
    advice = (
        f"run again with {flags[0]}"
        if flags
        else "give fixed numbers as inputs (the key 'value' in a spec, or tensors in Python)"
    )
    return f"{where}; if such values cannot occur in your program, {advice}"


def _told(value: complex) -> str:
    """Six digits of a value, or all if those are a round number that it is not, as 1 for 0.9999999995."""
    short = f"{value:.6g}"
    return str(value) if _is_round(value) and complex(short) != value else short


def _is_round(value: complex) -> bool:
    """Whether a value has few digits, as far as six show it."""
    return f"{value:.6g}" == f"{value:.5g}"


def _label_of_equal(tried: Sequence[Argument], wrong: Wrong) -> str | None:
    """That the worst entry is equal to that of another input in the same place; None where it is not, or is zero."""
    own, index = next((a for a in tried if a.name == wrong.input and a.is_tensor), None), _index(wrong)
    if own is None or index is None or len(index) != len(own.shape) or not wrong.value:
        return None
    for other in tried:
        alike = other.is_tensor and other.name != own.name and other.shape == own.shape
        if alike and other.value[index] == wrong.value:
            entry = str(wrong.entry).replace(own.name, other.name, 1)
            return (
                f"where {wrong.entry} and {entry} are equal, as in values that gradcli tried in addition to the random "
                "inputs; if they cannot be equal in your program, give fixed numbers as inputs (the key 'value' in a "
                "spec, or tensors in Python)"
            )
    return None


def _index(wrong: Wrong) -> tuple[int, ...] | None:
    """The place of the worst entry in its input, as `(0, 1)`."""
    place = None if wrong.entry is None else re.fullmatch(rf"{re.escape(wrong.input)}(?:\[([\d, ]+)\])?", wrong.entry)
    return None if place is None else tuple(int(n) for n in (place[1] or "").split(",") if n)


def _unusual(drawn: Sequence[Argument], tried: Sequence[Argument], wrong: Wrong) -> Wrong:
    """The entry of another input in the same place, if its value is out of the ordinary, and that of the wrong is not.

    A gradient may depend on the difference of two inputs, as that of a loss does, of which one has an ordinary value.
    If the wrong entry still has the value that was drawn for it, an unusual entry of the same input is named instead.
    None is named if it has another one of the sign and the size of those drawn, and not a round one.
    """
    own = next((a for a in drawn if a.name == wrong.input and a.is_tensor), None)
    if own is None or wrong.entry is None or wrong.value is None or not _is_ordinary(own, wrong.value):
        return wrong
    index = _index(wrong)
    if index is None or len(index) != len(own.shape):
        return wrong
    for before, after in zip(drawn, tried, strict=True):
        alike = before.is_tensor and before.value is not None and before.shape == own.shape == after.shape
        if not alike or before.name == wrong.input or not before.value.size:
            continue
        value = after.value[index].item()
        if not _is_ordinary(before, value):
            return replace(
                wrong, input=before.name, entry=wrong.entry.replace(wrong.input, before.name, 1), value=value
            )
    after = next(a for a in tried if a.name == wrong.input)
    if np.isclose(own.value[index], after.value[index]):
        return _unusual_in(own, after, wrong, index)
    arbitrary = not _is_round(wrong.value) and bool((own.value * wrong.value > 0).any())
    return replace(wrong, entry=None, value=None) if arbitrary else wrong


def _unusual_in(drawn: Argument, tried: Argument, wrong: Wrong, index: tuple[int, ...]) -> Wrong:
    """The largest unusual entry of an input, among those that share most indices with the wrong one."""
    unusual = [place for place in np.ndindex(tried.shape) if not _is_ordinary(drawn, tried.value[place].item())]

    def nearness(place: tuple[int, ...]) -> tuple[int, float]:
        return sum(a == b for a, b in zip(place, index, strict=True)), abs(tried.value[place])

    best = max(unusual, key=nearness, default=None)
    if best is None:
        return replace(wrong, entry=None, value=None)
    entry = f"{drawn.name}[{', '.join(map(str, best))}]" if best else drawn.name
    return replace(wrong, entry=entry, value=tried.value[best].item())


def _is_ordinary(drawn: Argument, value: complex) -> bool:
    """Whether a value is neither larger nor smaller than all that were drawn for an input."""
    sizes = np.abs(drawn.value)
    return bool(sizes.size and sizes.min() <= abs(value) <= sizes.max())


def _excluding(drawn: Argument, wrong: Wrong) -> str | None:
    """The flag that draws the input from a domain without the value at which the gradient is wrong.

    The domain contains the values drawn first, at which the gradient is right. None if there is no such domain.
    """
    own, value = drawn.value.real, None if wrong.value is None else wrong.value.real
    if value is None or not own.size or drawn.value.dtype.kind == "c" or drawn.sparsity is not None:
        return None
    for domain, parameters in _domains(own, value):
        text = domain if not parameters else f"{domain}({parameters[0][1]}, {parameters[1][1]})"
        bounds = bounds_of(replace(drawn, domain=text))
        if bounds is not None and not bool(bounds.holds(np.array([value]))[0]):
            spec = InputSpec(name=drawn.name, shape=drawn.shape, domain=domain, parameters=parameters)
            dtype = drawn.dtype_name
            return replace(spec, dtype=None if dtype == "float64" else dtype).as_flag()
    return None


def _domains(own: NDArray[Any], value: float) -> Iterator[tuple[str, tuple[tuple[str, Any], ...]]]:
    """Domains that hold what was drawn and may leave a value out, the simplest first."""
    sizes = np.abs(own)
    positive = bool((own > 0).all())
    if value == 0 or (value < 0 and positive):
        yield "positive", ()
    elif abs(value) > float(sizes.max()):
        limit = _one_digit(float(sizes.max()), math.ceil)
        yield "open-interval", (("lo", 0 if positive else -limit), ("hi", limit))
    elif abs(value) < float(sizes.min()):
        low, high = _one_digit(float(sizes.min()), math.floor), _one_digit(float(sizes.max()), math.ceil)
        yield "open-interval", (("lo", low), ("hi", high))


def _one_digit(value: float, rounded: Callable[[float], int]) -> float:
    """The value rounded up or down to one digit."""
    digit = 10.0 ** math.floor(math.log10(value))
    found = float(f"{rounded(value / digit) * digit:.6g}")
    return int(found) if found.is_integer() else found
