"""A tensor passed for two arguments must get the sum of the gradients that two separate, equal tensors get."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Subject
from gradcli.backends.tensor.call_records import CallResult
from gradcli.cases import Argument
from gradcli.checks.base import Check, Situation
from gradcli.checks.seeding import all_finite, signed_cotangents
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.results import Evidence
from gradcli.verdict import Verdict

Arguments = Sequence[Argument]
Pair = tuple[int, int]

_TOLERANCE = 128 * 2.0**-24
"""Relative; where in memory operands lie may reorder sums, in float32 where the user's code computes in it."""
_PAIRS = 6
"""At most so many pairs are tried: all pairs of four inputs."""
_NUDGE, _MOVES = 2.0**-48, 16.0
"""A relative change of the inputs like rounding, and how many times its effect a difference must exceed."""


@final
class AliasingCheck(Check):
    """One tensor passed for two inputs gets the sum of the gradients of two separate, equal tensors."""

    name = "aliasing"
    sentence = (
        "a tensor that is passed for two inputs gets the sum of the gradients that two separate tensors with the "
        "same values get"
    )

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """For each pair of inputs of one shape and dtype, compare one tensor passed twice with two equal tensors."""
        subject = situation.subject
        pairs = list(islice(_pairs(subject), _PAIRS))
        if not pairs or subject.info.backward is None:
            return
        if not subject.has_graph:
            note = (
                f"does not apply: {subject.info.backend} keeps no graph, so one array passed twice is the "
                "same as two arrays"
            )
            yield Evidence(check=self.name, verdict=Verdict.SKIPPED, note=note)
            return
        compared = False
        for pair in pairs:
            for arguments in _equal(subject.arguments, pair):
                apart = _apart(situation, arguments)
                if apart is None:
                    continue
                compared = True
                problem = self._shared(situation, arguments, apart, pair)
                if problem is not None:
                    yield problem
                    return
                break
        if compared:
            yield self.passed()

    def _shared(self, situation: Situation, arguments: Arguments, apart: CallResult, pair: Pair) -> Evidence | None:
        """What is wrong if one tensor is in both places of `pair`; `apart` is the same call with two equal tensors."""
        first, second = pair
        both = f"{situation.input_name(first)} and {situation.input_name(second)}"
        try:
            shared = situation.subject.call_sharing(arguments, first, second, signed_cotangents)
        except UserCodeError as error:
            message = (
                f"the call fails when {both} are one tensor, but not when they are two tensors with the same "
                f"values: {error}"
            )
            return self._found(situation, first, message, error)
        if shared is None or shared.in_place:
            return None
        if shared.numbers != apart.numbers:
            return self._found(
                situation,
                first,
                f"requires_grad of forward's outputs changes when one tensor is passed for {both} instead of two with "
                "the same values",
            )
        parted = _parted(situation, arguments, apart, shared, pair)
        if parted is None:
            return None
        if isinstance(parted, str):
            message = f"{parted} changes when one tensor is passed for {both} instead of two with the same values"
            return self._found(situation, first, message)
        name = situation.input_name(parted)
        if parted == first:
            message = (
                f"one tensor passed for {both} does not get the sum of the gradients that two tensors with the same "
                "values get"
            )
        else:
            message = (
                f"{name}: its gradient changes when one tensor is passed for {both} instead of two with the same values"
            )
        return self._found(situation, parted, message)

    def _found(
        self, situation: Situation, position: int, message: str, raised: UserCodeError | None = None
    ) -> Evidence:
        name = situation.input_name(position)
        return self.failed(FindingKind.ALIASED_INPUTS, message, input=name, raised=raised)


def _pairs(subject: Subject) -> Iterator[Pair]:
    """Pairs of active inputs of the same shape and dtype, except tensors that a module holds."""
    held = {name for name, _ in subject.info.held}
    given = subject.arguments
    free = [
        i for i in subject.active if given[i].name not in held and given[i].sparsity is None and given[i].value.size
    ]
    for first, second in combinations(free, 2):
        one, other = given[first].value, given[second].value
        if (one.shape, one.dtype) == (other.shape, other.dtype):
            yield first, second


def _equal(arguments: Arguments, pair: Pair) -> Iterator[Arguments]:
    """The arguments with the first one's values in both places, then with the second one's."""
    for donor in pair:
        value = arguments[donor].value
        yield [replace(a, value=value.copy()) if i in pair else a for i, a in enumerate(arguments)]


def _apart(situation: Situation, arguments: Arguments) -> CallResult | None:
    """The call with two tensors of equal values; None if that call cannot serve as a reference.

    It cannot if the Function raises or is not finite there, or if forward writes into its inputs.
    """
    subject = situation.subject
    try:
        found = subject.call_at(arguments, signed_cotangents)
    except UserCodeError:
        return None
    if found.in_place or found.gradients is None or found.numbers != subject.output_numbers:
        return None
    return found if all_finite(found.outputs) and all_finite(found.gradients) else None


def _parted(
    situation: Situation, arguments: Arguments, apart: CallResult, shared: CallResult, pair: Pair
) -> str | int | None:
    """The output (by its name) or the input whose gradient (by its position) is not the same in both calls.

    Differences within a tolerance do not count, nor those that rounding of the inputs may cause.
    """
    wanted, got = _results(apart, pair), _results(shared, pair)
    sizes = {key: _size(value) for key, value in wanted.items()}
    by_position = dict(zip(apart.active, apart.gradients or (), strict=True))
    sizes[pair[0]] = _size(by_position[pair[0]]) + _size(by_position[pair[1]])
    tolerance = situation.tolerance(_TOLERANCE)
    doubtful = [key for key in wanted if not _gap(wanted[key], got[key]) <= tolerance * sizes[key]]
    if not doubtful:
        return None
    nudged = _apart(situation, _nudged(situation, arguments, pair))
    if nudged is None:
        return None
    moved = _results(nudged, pair)
    for key in doubtful:
        if not _gap(wanted[key], got[key]) <= _MOVES * _gap(wanted[key], moved[key]):
            return key
    return None


def _results(result: CallResult, pair: Pair) -> dict[str | int, NDArray[Any] | None]:
    """The differentiable outputs by name, and the gradients by position; the pair's first has the sum of both."""
    first, second = pair
    gradients: dict[str | int, NDArray[Any] | None] = dict(zip(result.active, result.gradients or (), strict=True))
    other = gradients.pop(second, None)
    own = gradients[first]
    gradients[first] = other if own is None else own if other is None else own + other
    return {**{f"output {n}": result.outputs[n] for n in result.numbers}, **gradients}


def _nudged(situation: Situation, arguments: Arguments, pair: Pair) -> Arguments:
    """The active arguments changed by a few units of rounding, the pair's two in the same way."""
    generator = np.random.default_rng([situation.seed, 47])
    made = list(arguments)
    for position in situation.subject.active:
        value = arguments[position].value
        moved = value * (1 + _NUDGE * generator.choice([-1.0, 1.0], value.shape))
        made[position] = replace(arguments[position], value=np.asarray(moved))
    made[pair[1]] = replace(arguments[pair[1]], value=made[pair[0]].value.copy())
    return made


def _size(value: NDArray[Any] | None) -> float:
    return 0.0 if value is None else float(np.max(np.abs(value), initial=0.0))


def _gap(one: NDArray[Any] | None, other: NDArray[Any] | None) -> float:
    """The largest difference of two results; None counts as zeros. Infinite where shapes differ."""
    if one is None or other is None:
        return max(_size(one), _size(other))
    return float(np.max(np.abs(one - other), initial=0.0)) if one.shape == other.shape else float("inf")
