"""The inputs of a Function with another size of the batch."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.call_records import CallResult, Values
from gradcli.backends.torch.interpreter import contained_kernels
from gradcli.cases import Argument
from gradcli.checks.base import Situation, relative_gap
from gradcli.checks.batch.fixed import fixed_sizes_of, is_allowed
from gradcli.checks.batch.rows import entries_make_statistics, entries_stand_alone
from gradcli.checks.seeding import all_finite, paired, signed, signed_cotangents
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass
from gradcli.inputs.drawing import in_order, is_given_distinct, with_distinct
from gradcli.numerics.differences.formats import stored_roundoff
from gradcli.numerics.maps.vector_map import VectorMap

Arguments = tuple[Argument, ...]

_STEP = 2.0**-12
"""Relative to each entry. A gradient that is wrong at a size is off by percents: such a step is fine enough."""
_LONGEST = 2.0**-4
_ROUNDINGS = 4.0
"""Values with few digits may be off by so many roundoffs."""
_APART, _APART_CENTRALLY = 1e-2, 1e-5
"""Parts of the change along a direction by which a right gradient may miss a quotient: one with a step t = 2^-12 on one
side is off by about t, a central one by t^2 = 6e-8, and by more where forward is steep. What misses it is verified."""
TOLERANCE = 128 * 2.0**-24
"""Relative; entries in another order may reorder sums, in float32 where the user's code computes in it."""
_NOISE = 2.0**-46
LONG, _FIRST = 10_000, 1_000
"""Of a batch with more than `LONG` entries only the first `_FIRST` are used to see whether entries are independent."""
_KEPT_WHOLE = (
    "simplex",
    "unit-vectors",
    "one-hot",
    "signs",
    "binary",
    "indices",
    "permutation",
    "pointers",
    "boolean",
    "key",
    "typed-key",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A batch axis: every leading axis of length `size`, or those of the arguments `only`, if these are given.

    `name` is that of an input with such an axis.
    """

    size: int
    name: str
    only: frozenset[str] | None = None

    def is_in(self, subject: Subject, argument: Argument) -> bool:
        """Whether an argument has the axis."""
        if self.only is not None and argument.name not in self.only:
            return False
        return argument.is_tensor and argument.shape[:1] == (self.size,) and not is_held(subject, argument)

    def resized(self, subject: Subject, size: int, *, distinct: bool = True) -> Arguments:
        """The subject's arguments with another size of the axis: cut, or stretched, so that order is kept.

        Whole numbers that were given and are `distinct` stay so where they can, as those that select entries must be
        for a backward that assigns to each.
        """
        made = tuple(
            replace(a, value=in_order(_stretched(a.value, size, mixed=_may_be_mixed(a)), a.domain))
            if self.is_in(subject, a)
            else a
            for a in subject.arguments
        )
        if not distinct or not _repeating(subject, made):
            return made
        largest = max(length for a in made if a.is_tensor for length in a.shape) - 1
        others = {
            position: with_distinct(made[position].value, subject.arguments[position].value, largest)
            for position in _repeating(subject, made)
        }
        return tuple(
            a if (other := others.get(position)) is None else replace(a, value=other) for position, a in enumerate(made)
        )

    def with_repetition(self, subject: Subject, arguments: Arguments) -> Arguments | None:
        """The subject's arguments with whole numbers as often equal as in `arguments`; None if all may be distinct.

        What is wrong there is wrong for equal numbers, whatever the size of the axis.
        """
        positions = _repeating(subject, arguments)
        if not positions:
            return None
        return tuple(
            replace(a, value=np.ascontiguousarray(np.resize(arguments[position].value, a.shape)))
            if position in positions
            else a
            for position, a in enumerate(subject.arguments)
        )

    def is_axis_of_any(self, outputs: Sequence[NDArray[Any]]) -> bool:
        """Whether an output has the axis, so that entries are handled one by one, and smaller sizes are safe to try.

        Code that sums over all entries may assume their number, and read past the end of a smaller batch.
        """
        return any(output.shape[:1] == (self.size,) for output in outputs)

    def is_axis_of_all(self, outputs: Sequence[NDArray[Any]]) -> bool:
        """Whether every output has the axis."""
        return all(output.shape[:1] == (self.size,) for output in outputs)

    def is_followed(self, given: Sequence[NDArray[Any]], found: Sequence[NDArray[Any]], size: int) -> bool:
        """Whether outputs have the new size on the leading axis where they had the old one, and the same shape else."""
        return len(given) == len(found) and all(
            one.ndim == other.ndim
            and all(
                new == size if place == 0 and old == self.size else new == old or (old, new) == (self.size, size)
                for place, (old, new) in enumerate(zip(one.shape, other.shape, strict=True))
            )
            for one, other in zip(given, found, strict=True)
        )

    def is_one(self, situation: Situation) -> bool:
        """Whether the axis is a batch: its entries are independent, or the function computes statistics over them.

        Rows of data are a batch. Pixels, matrices, sequences and pairs that stand for a complex number are not: a
        Function may rely on their sizes. Neither are entries for each of which random numbers are drawn.
        """
        tolerance, outputs_of = situation.tolerance(TOLERANCE), partial(self._outputs_of, situation)
        if self.size > LONG and self._depends_on_its_first_entries(situation, tolerance):
            return entries_stand_alone(_FIRST, outputs_of, tolerance)
        return entries_stand_alone(self.size, outputs_of, tolerance) or entries_make_statistics(
            self.size, outputs_of, tolerance
        )

    def _depends_on_its_first_entries(self, situation: Situation, tolerance: float) -> bool:
        """Whether the first `_FIRST` entries alone give the same first outputs, which then depend on no others."""
        outputs = _given_outputs(situation.subject)
        if any(output.shape[:1] != (self.size,) for output in outputs):
            return False
        found = self._outputs_of(situation, np.arange(_FIRST))
        return found is not None and all(
            relative_gap(output[:_FIRST], part) <= tolerance for output, part in zip(outputs, found, strict=True)
        )

    def _outputs_of(self, situation: Situation, entries: NDArray[np.intp]) -> list[NDArray[Any]] | None:
        """The differentiable outputs for some of the entries; None if forward raises or others are differentiable."""
        subject = situation.subject
        if entries.size == self.size and bool((np.diff(entries) == 1).all()):
            return [subject.first_call.outputs[number] for number in subject.output_numbers]
        given = [replace(a, value=a.value[entries]) if self.is_in(subject, a) else a for a in subject.arguments]
        try:
            found = subject.call_at(given)
        except UserCodeError:
            return None
        if found.numbers != subject.output_numbers:
            return None
        return [found.outputs[number] for number in found.numbers]


def batches(situation: Situation) -> tuple[Batch, ...]:
    """The leading axis of the first active input, and that of the outputs, if these are batch axes.

    A size that also occurs elsewhere in the inputs, or as a number among the arguments, may mean something else, and so
    may 1 and a size that documentation or the source fixes: such an axis is not taken for a batch. With sparse inputs
    no axis is.
    """
    with contained_kernels():
        found: tuple[Batch, ...] = situation.once("batches", lambda: tuple(_batches(situation)))
    return found


def _batches(situation: Situation) -> Iterator[Batch]:
    subject = situation.subject
    tensors = [a for a in subject.arguments if a.is_tensor and not is_held(subject, a) and a.shape]
    outputs = [subject.first_call.outputs[n] for n in subject.output_numbers]
    leading = next((o.shape[0] for o in outputs if o.ndim), None)
    owners = [*[a for a in tensors if a.requires_grad][:1], *[a for a in tensors if a.shape[0] == leading][:1]]
    inner = {size for a in tensors for size in a.shape[1:]} | fixed_sizes_of(situation)
    for size, name in {a.shape[0]: a.name for a in owners}.items():
        batch = Batch(size=size, name=name)
        clear = size > 1 and size not in inner and not any(tells_size(a, size) for a in subject.arguments)
        if clear and all(a.sparsity is None for a in subject.arguments) and batch.is_one(situation):
            yield batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Resized:
    """A call with inputs of other sizes, which forward accepted.

    `error` is what backward raised although forward's body can be differentiated there; `steps` are the differences
    from `arguments` to the nearby inputs at which forward was called as well, by position.
    """

    arguments: Arguments
    result: CallResult
    steps: Values
    error: UserCodeError | None = None


def call_resized(situation: Situation, batch: Batch, size: int, *, steps: bool = True) -> Resized | None:
    """The Function called with another batch size; None if the call says nothing (`call_at`).

    It says nothing either where the outputs are not of that size, or not finite. Distinct whole numbers repeat only if
    forward does not accept others.
    """
    subject = situation.subject
    first, second = batch.resized(subject, size), batch.resized(subject, size, distinct=False)
    both = [first] if _repeating(subject, first) == _repeating(subject, second) else [first, second]
    calls = (
        call_at(situation, arguments, lambda result: _accepted(situation, batch, result, size), steps=steps)
        for arguments in both
    )
    return next((call for call in calls if call is not None), None)


def _repeating(subject: Subject, arguments: Arguments) -> frozenset[int]:
    """The positions of whole numbers some of which are equal here, though those given are distinct."""
    return frozenset(
        position
        for position, (given, here) in enumerate(zip(subject.arguments, arguments, strict=True))
        if given.is_tensor
        and not given.requires_grad
        and given.sparsity is None
        and is_given_distinct(given.value, given.domain)
        and np.unique(here.value).size < here.value.size
    )


def call_at(
    situation: Situation, arguments: Arguments, accepts: Callable[[CallResult], bool], *, steps: bool = True
) -> Resized | None:
    """The Function called with arguments of other sizes, and at values `steps` away; None if the call says nothing.

    It says nothing if forward raises, or returns outputs that are not accepted, or if backward raises where the
    framework's own derivative of forward's body raises too; nor if documentation excludes the sizes, as those of a wide
    matrix where `m >= n`.
    """
    if not is_allowed(situation, arguments):
        return None
    subject, error = situation.subject, None
    step = _step_for(unit_roundoff_of(_given_outputs(subject)))
    away = {position: _steps(arguments[position].value, step) for position in subject.active} if steps else {}
    beside = {position: arguments[position].value + step for position, step in away.items()}
    try:
        result = subject.call_at(arguments, signed_cotangents, beside or None)
    except UserCodeError as raised:
        error = raised
        try:
            result = subject.call_at(arguments)
        except UserCodeError:
            return None
    if not accepts(result) or (error and framework_fails_too(situation, arguments)):
        return None
    return Resized(arguments=arguments, result=result, steps=away, error=error)


def _given_outputs(subject: Subject) -> list[NDArray[Any]]:
    return [subject.first_call.outputs[number] for number in subject.output_numbers]


def unit_roundoff_of(outputs: Sequence[NDArray[Any]]) -> float:
    """The unit roundoff of the floating-point format that the real numbers of some outputs fit into."""
    real = [o.ravel() for o in outputs if o.dtype.kind == "f"] or [np.zeros(0)]
    return stored_roundoff(np.asarray(real[0] if len(real) == 1 else np.concatenate(real), dtype=np.float64))


def _step_for(roundoff: float) -> float:
    """The length of a one-sided step, relative to each entry: longer where values have few digits.

    With a step t the error is roundoff / t from rounding and about t from curvature; at the cube root of roundoff,
    rounding contributes little.
    """
    return max(_STEP, min(_LONGEST, float(roundoff ** (1 / 3)))) if roundoff > 2.0**-53 else _STEP


def _steps(value: NDArray[Any], step: float) -> NDArray[Any]:
    """A step for each entry, of either sign: `step` times the entry's size, or times 1 for zeros."""
    sizes = np.abs(value)
    return np.asarray(step * signed(value.shape, value.dtype, 0) * np.where(sizes == 0, 1.0, sizes))


def _accepted(situation: Situation, batch: Batch, result: CallResult, size: int) -> bool:
    """Whether forward handled the new size: the outputs have it, and are finite."""
    subject = situation.subject
    return (
        (result.numbers, result.active) == (subject.output_numbers, subject.active)
        and batch.is_followed(subject.first_call.outputs, result.outputs, size)
        and all_finite(result.outputs)
    )


def framework_fails_too(situation: Situation, arguments: Arguments) -> bool:
    """Whether the framework's own derivative of forward's body raises there as well, or is not finite."""
    try:
        other = situation.subject.rebind(arguments)
        witness: VectorMap | None = other.body_map(1)
    except UserCodeError:
        return True
    if witness is None:
        return False
    cotangents = signed_cotangents([other.first_call.outputs[n] for n in other.output_numbers])
    try:
        _, rows = witness.value_and_vjps(other.point, other.codomain.flatten(list(cotangents))[None])
    except UserCodeError:
        return True
    return not bool(np.isfinite(rows).all())


def seems_wrong(call: Resized, behind: Sequence[NDArray[Any]] | None = None) -> bool:
    """Whether a difference quotient along one direction contradicts the gradients of a call.

    With the differentiable outputs at the values `behind`, as far away on the other side, the quotient is a central
    one, which shows a thousand times smaller errors.

    At a kink, and if forward is noisy or steep, a right gradient may seem wrong too; rounding of low-precision values
    is allowed for.
    """
    result, beside = call.result, call.result.beside
    outputs = [result.outputs[n] for n in result.numbers]
    if beside is None or any(one.shape != other.shape for one, other in zip(outputs, beside, strict=True)):
        return True
    gradients = zip(result.active, result.gradients or (), strict=True)
    with np.errstate(all="ignore"):
        cotangents = signed_cotangents(outputs)
        changes = [two - one for one, two in zip(outputs, beside, strict=True)]
        if behind is not None:
            changes = [(two - one) / 2 for one, two in zip(behind, beside, strict=True)]
        actual = sum(paired(c, change) for c, change in zip(cotangents, changes, strict=True))
        terms = [g.conj() * call.steps[position] for position, g in gradients if g is not None]
        claimed = sum(float(term.sum().real) for term in terms)
        spread = math.sqrt(sum(paired(term, term) for term in terms))
        floor = _NOISE * sum(paired(np.abs(c), np.abs(one)) for c, one in zip(cotangents, outputs, strict=True))
        roundoff = unit_roundoff_of([*outputs, *beside])
        apart = _APART if behind is None else _APART_CENTRALLY
        if roundoff > 2.0**-53:
            apart += 2 * _step_for(roundoff)
            sizes = [np.abs(c) * np.abs(one) for c, one in zip(cotangents, outputs, strict=True)]
            floor += _ROUNDINGS * roundoff * math.sqrt(sum(paired(size, size) for size in sizes))
        return not abs(actual - claimed) <= apart * max(spread, abs(actual)) + floor


def _stretched(value: NDArray[Any], size: int, *, mixed: bool) -> NDArray[Any]:
    """The array with another size of the leading axis: cut, or stretched; if `mixed`, new entries are mixtures."""
    given = value.shape[0]
    if size <= given:
        return np.ascontiguousarray(value[:size])
    places = np.linspace(0.0, given - 1.0, size)
    below = places.astype(np.int64)
    if not mixed:
        return value[below]
    weight = (places - below).reshape(-1, *[1] * (value.ndim - 1))
    return np.asarray((1 - weight) * value[below] + weight * value[np.minimum(below + 1, given - 1)])


def _may_be_mixed(argument: Argument) -> bool:
    kept = argument.domain is not None and argument.domain.partition("(")[0] in _KEPT_WHOLE
    return argument.requires_grad and not kept


def is_held(subject: Subject, argument: Argument) -> bool:
    """Whether an argument is a parameter or buffer of a module, whose size is the module's."""
    return any(name == argument.name for name, _ in subject.info.held)


def tells_size(argument: Argument, size: int) -> bool:
    """Whether an argument is, or contains, a number that may be the size of the axis."""
    value = argument.value
    if argument.is_tensor:
        return not argument.requires_grad and value.size == 1 and bool((value == size).all())
    several = value if isinstance(value, tuple | list) else (value,)
    return any(isinstance(each, int | float) and not isinstance(each, bool) and each == size for each in several)
