"""A gradient that is wrong at other inputs than those given: the proof, the smallest such input, and the note."""

import ast
from collections.abc import Sequence
from time import perf_counter

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.cases import Argument, InputSpec
from gradcli.checks.base import Situation
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass
from gradcli.numerics.maps.space import Space
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.verify import BlockOutcome, Doubt, Outcome, Verification, verify

BUDGET, LEAST_BUDGET, _SECONDS = 3_000, 60, 5.0
"""Forward evaluations for the verdict at one of the other inputs: as many as take `_SECONDS`, between two bounds."""
_NOTED, _STEPS = 250, 4
"""The limit where only a note depends on the verdict and some line of forward runs `_STEPS` times or more, as in an
iteration. Notes proved there took at most 145 evaluations. Without this limit, each comparison of a right iteration
that stops early took up to 1,600, because the derivative of its loop is off."""
_TIMED = 4
_SHRINKING_SECONDS = 1.0
_LONGEST_FLAGS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """The worst entry of a gradient that differences prove wrong, of all outputs and inputs.

    `entry` is named as `x[0, 1]`, `value` is its value; `slope` the result of differences. `at_one_point` says that
    the gradient is right nearby. All but the first are None if only the whole gradient is known.
    """

    input: str
    entry: str | None = None
    value: complex | None = None
    claimed: float | None = None
    slope: str | None = None
    at_one_point: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """A gradient that differences neither prove wrong nor find right; `note` says why, if that is known."""

    input: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A verification at other arguments that found something wrong: in `blocks`, the worst of them first."""

    subject: Subject
    map_: VectorMap
    found: Verification
    blocks: tuple[BlockOutcome, ...]

    def worst(self, block: BlockOutcome) -> Wrong:
        """The worst entry of a block."""
        return _described(self.map_.domain, self.found, block)


def wrong_at(situation: Situation, arguments: Sequence[Argument], *, noted: bool = False) -> Wrong | None:
    """The worst of what differences prove wrong at these arguments; None where they prove nothing.

    `noted` says that only a note depends on it.
    """
    found = found_at(situation, arguments, noted=noted)
    return found if isinstance(found, Wrong) else None


def found_at(situation: Situation, arguments: Sequence[Argument], *, noted: bool = False) -> Wrong | Undecided | None:
    """The worst of what differences prove wrong at these arguments, or what they leave undecided; None if neither.

    A kink does not count as undecided: gradcli chose the point, and there any slope between the two is right.
    """
    verified = _verified(situation, arguments, noted=noted)
    if verified is None:
        return None
    proof = _proof(*verified)
    if proof is not None:
        return proof.worst(proof.blocks[0])
    (*_, map_, found) = verified
    undecided = (b for b in found.blocks if b.outcome is Outcome.UNDECIDED and b.doubt is not Doubt.KINK)
    block = next(undecided, None)
    return None if block is None else Undecided(input=map_.domain.blocks[block.input].name, note=block.note)


def proof_at(situation: Situation, arguments: Sequence[Argument]) -> Proof | None:
    """What differences prove wrong at these arguments; None where they prove nothing."""
    verified = _verified(situation, arguments)
    return None if verified is None else _proof(*verified)


def _verified(
    situation: Situation, arguments: Sequence[Argument], *, noted: bool = False
) -> tuple[Subject, VectorMap, Verification] | None:
    """The verdict at these arguments; None where forward refuses them, or returns other outputs."""
    subject = situation.subject
    try:
        other = subject.rebind(tuple(arguments))
        if other.output_numbers != subject.output_numbers or other.active != subject.active:
            return None
        map_ = situation.map_of(other, 1)
        found = verify(
            map_,
            other.point,
            seed=situation.seed,
            significance=situation.significance,
            witness=other.body_map(1),
            budget=_affordable(map_, other.point, noted=noted),
        )
    except UserCodeError:  # forward refuses these arguments, which gradcli chose
        return None
    return other, map_, found


def _proof(subject: Subject, map_: VectorMap, found: Verification) -> Proof | None:
    blocks = [b for b in found.blocks if b.outcome is Outcome.DIFFERS or b.special is not None]
    blocks.sort(key=lambda b: (b.outcome is Outcome.DIFFERS, b.max_rel_error), reverse=True)
    return Proof(subject=subject, map_=map_, found=found, blocks=tuple(blocks)) if blocks else None


def _affordable(map_: VectorMap, point: FloatArray, *, noted: bool) -> int:
    """How many evaluations fit into the time allowed, fewer if only a note depends on them.

    The shortest of several calls counts: on a machine under load any one of them may be delayed by milliseconds.
    """
    most = _NOTED if noted and _repeats(map_, point) else BUDGET
    shortest = np.inf
    for _ in range(_TIMED):
        began = perf_counter()
        map_.value(point)
        shortest = min(shortest, perf_counter() - began)
        if shortest * most <= _SECONDS:
            return most
    return int(max(LEAST_BUDGET, _SECONDS / shortest))


def _repeats(map_: VectorMap, point: FloatArray) -> bool:
    """Whether some line of forward runs `_STEPS` times or more."""
    effort = map_.effort(point)
    return effort is not None and max(effort.lines.values(), default=0) >= _STEPS


def _described(space: Space, found: Verification, block: BlockOutcome) -> Wrong:
    name, first = space.blocks[block.input].name, space.slices[block.input].start
    if block.outcome is not Outcome.DIFFERS and block.special is not None:
        kink = block.special
        slope = f"{kink.left:.9g}" if kink.left == kink.right else f"between {kink.left:.9g} and {kink.right:.9g}"
        place, value = _entry(space, found.point, kink.coordinate)
        return Wrong(input=name, entry=place, value=value, claimed=kink.claimed, slope=slope, at_one_point=True)
    table = block.table
    if table is None:
        return Wrong(input=name)
    with np.errstate(all="ignore"):
        gap = np.abs(table.claimed - table.numeric)
    row, column = np.unravel_index(int(np.where(np.isnan(gap), np.inf, gap).argmax()), gap.shape)
    place, value = _entry(space, table.point, first + int(table.columns[column]))
    slope = f"{table.numeric[row, column]:.9g} ± {table.bound[row, column]:.0e}"
    return Wrong(input=name, entry=place, value=value, claimed=float(table.claimed[row, column]), slope=slope)


def _entry(space: Space, point: FloatArray, coordinate: int) -> tuple[str, complex]:
    """The entry that a coordinate belongs to, as in `x[0, 1]`, and its value."""
    found = space.locate(coordinate)
    index = f"[{', '.join(map(str, found.index))}]" if found.index else ""
    return f"{space.blocks[found.block].name}{index}", space.unflatten(point)[found.block][found.index].item()


def simplest(situation: Situation, arguments: Sequence[Argument], wrong: Wrong) -> tuple[Sequence[Argument], Wrong]:
    """Smaller and simpler arguments at which the same input's gradient is wrong in the same way, with the error."""
    last, zeros = wrong, _has_zeros(arguments)

    def still_wrong(smaller: Sequence[Argument]) -> bool:
        nonlocal last
        found = None if _has_zeros(smaller) and not zeros else wrong_at(situation, smaller)
        if found is None or (found.input, found.at_one_point) != (wrong.input, wrong.at_one_point):
            return False
        last = found
        return True

    if situation.settings.shrink:
        from gradcli.inputs.shrinking import shrink

        arguments = shrink(arguments, still_wrong, budget_seconds=_SHRINKING_SECONDS)
    return arguments, last


def _has_zeros(arguments: Sequence[Argument]) -> bool:
    """Whether a number that requires a gradient is zero; a mistake at negative numbers must not be reported at zero."""
    return any(bool((a.value == 0).any()) for a in arguments if a.is_tensor and a.requires_grad)


def note_of(arguments: Sequence[Argument], wrong: Wrong, why: str) -> str:
    """The note: where the gradient is wrong, both values, why that is accepted, and how to make it a failure."""
    where = "" if wrong.entry is None else f" ({wrong.entry} = {wrong.value:.6g})"
    at = " at exactly this point" if wrong.at_one_point and wrong.slope is not None else ""
    what = f"at inputs that gradcli chose{where}, the gradient of {wrong.input} is wrong{at}{measured(wrong)}"
    flags = _as_flags(arguments)
    advice = (
        (f"to make it a failure, run with {flags}") if flags else "to make it a failure, give such inputs in a spec"
    )
    return f"{what}; this is reported only as a note, not as a failure, because {why}; {advice}"


def overflow_note(subject: Subject, arguments: Sequence[Argument], claimed: FloatArray) -> str:
    """The note on a gradient that is not finite at large inputs, although forward and its derivative are."""
    space = subject.domain
    point = space.flatten([arguments[i].value for i in subject.active])
    bad = np.flatnonzero(~np.isfinite(claimed))
    coordinate = int(bad[np.argmax(np.abs(point[bad]))])
    place, value = _entry(space, point, coordinate)
    flags = _as_flags(arguments)
    where = f"at inputs that gradcli chose ({place} = {value:.6g})"
    what = f"backward returns {claimed[coordinate]} although the derivative is finite, probably because of overflow"
    advice = f"run with {flags}" if flags else "give such inputs in a spec"
    return (
        f"{where}, {what}; this is reported only as a note, because few programs have inputs that large; to make it a "
        f"failure, {advice}"
    )


def measured(wrong: Wrong) -> str:
    """The returned and the right value as the end of a sentence; empty if only the whole gradient is known."""
    return "" if wrong.slope is None else f": backward gives {wrong.claimed:.9g}, finite differences give {wrong.slope}"


def _as_flags(arguments: Sequence[Argument]) -> str | None:
    """The command line's flags that give exactly these arguments; None where they cannot be written, or are long."""
    flags = []
    for argument in arguments:
        spec = _pinned(argument)
        if spec is None:
            return None
        flags.append(spec.as_flag())
    text = " ".join(flags)
    return text if len(text) <= _LONGEST_FLAGS else None


def _pinned(argument: Argument) -> InputSpec | None:
    """The argument as an input that is given by value; None where its value is no literal."""
    if argument.is_tensor:
        if argument.sparsity is not None:
            return None
        return InputSpec(
            name=argument.name,
            shape=argument.shape,
            dtype=argument.dtype_name if argument.dtype_name in ("float32", "complex64") else None,
            parameters=(("value", argument.value.tolist()),),
            requires_grad=False if argument.value.dtype.kind in "fc" and not argument.requires_grad else None,
        )
    try:
        literal = ast.literal_eval(repr(argument.value)) == argument.value
    except (ValueError, SyntaxError):
        return None
    return InputSpec(name=argument.name, kind="value", value=argument.value) if literal else None
