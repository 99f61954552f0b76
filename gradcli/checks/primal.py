"""Forward itself: finite, the same on every call, and leaving its inputs alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import ForwardCall, Subject
from gradcli.backends.tensor.containers import container_leaves
from gradcli.backends.tensor.framework import same_values
from gradcli.cases import InputSpec
from gradcli.checks.base import Check, Situation, relative_gap
from gradcli.checks.other_points.bounds import is_drawn
from gradcli.checks.seeding import signed_cotangents
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.inputs.domains import parse_domain
from gradcli.results import Evidence
from gradcli.verdict import Reason, Verdict

Outputs = tuple[NDArray[Any], ...]
_TRIES, _STEP = 3, 2.0**-20
_MOVES, _ROUNDINGS = 8, 64
"""Two calls may differ by so many times the effect of rounding the inputs, or by so many roundoffs if that is more."""
_MOST = 1e-6
"""A larger relative difference is not excused by rounding, however ill-conditioned forward is."""


@final
class ForwardCheck(Check):
    """Forward returns finite values, the same for the same input, and changes no input that it does not mark."""

    name = "forward"
    sentence = "forward is finite, gives the same result twice, and changes in place only inputs that it marks dirty"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Compare the first call with another."""
        subject = situation.subject
        first, again = subject.first_call, subject.called_again()
        problems = [
            *self._mutation(situation, first),
            *self._repeat(situation, first.outputs, again),
            *self._values(situation, first),
        ]
        yield from problems
        notes = list(_updated(situation, first))
        if not problems:
            notes += [*self._empty(situation), *_tensors_in_containers(situation), *_moved_in_place(situation.subject)]
        if notes or not problems:
            yield self.passed("; ".join(notes) or None)

    def _mutation(self, situation: Situation, call: ForwardCall) -> Iterator[Evidence]:
        arrays = situation.subject.info.backend in ("jax", "numpy")
        unmarked = "" if arrays else ", which does not mark it with ctx.mark_dirty"
        for position in call.changed_inputs:
            if not requires_gradient(situation, position):
                continue
            name = situation.input_name(position)
            yield self.failed(
                FindingKind.MUTATES_INPUT,
                f"{name} is changed in place by forward{unmarked}",
                input=name,
                hint=_as_a_buffer(situation, position),
            )

    def _repeat(self, situation: Situation, first: Outputs, again: Outputs) -> Iterator[Evidence]:
        for number, (one, other) in enumerate(zip(first, again, strict=False)):
            if one.dtype == object or same_values(one, other):
                continue
            if one.dtype.kind not in "fc" or relative_gap(one, other) > _allowed(situation, number, one):
                yield self.failed(
                    FindingKind.NONDETERMINISTIC_FORWARD,
                    "two calls with the same inputs and the same random seed give different results in "
                    f"output {number}",
                    output=number,
                )

    def _values(self, situation: Situation, call: ForwardCall) -> Iterator[Evidence]:
        numbers = situation.subject.output_numbers
        if not situation.subject.active:
            yield self._no_signal("no input requires a gradient, so there is nothing to check")
        elif not numbers:
            yield self._no_signal(
                "no output of forward requires a gradient: each is an integer, marked non-differentiable, or cut off "
                "from the inputs" + "".join(f"; {text}" for text in _tensors_in_containers(situation))
            )
        elif situation.subject.domain.size == 0 or situation.subject.codomain.size == 0:
            yield self._no_signal("an input or the output is empty, so there is nothing to check")
        for number in numbers:
            finite = np.isfinite(call.outputs[number])
            if finite.size and not finite.any():
                yield Evidence(
                    check=self.name,
                    verdict=Verdict.INCONCLUSIVE,
                    output=number,
                    reason=Reason.DOMAIN,
                    note=(
                        f"output {number} has no finite entry at these inputs (the first is "
                        f"{_example(call.outputs[number])}), so there is nothing to compare"
                    ),
                )

    def _empty(self, situation: Situation) -> Iterator[str]:
        """A note for each block without entries, if others are checked."""
        subject = situation.subject
        for block in subject.domain.blocks:
            if not block.size:
                yield f"{block.name} is empty: it has no entries to check"
        for number, block in zip(subject.output_numbers, subject.codomain.blocks, strict=True):
            if not block.size:
                yield f"output {number} is empty: it has no entries to check"

    def _no_signal(self, note: str) -> Evidence:
        return Evidence(check=self.name, verdict=Verdict.INCONCLUSIVE, reason=Reason.NO_SIGNAL, note=note)


def _allowed(situation: Situation, number: int, values: NDArray[Any]) -> float:
    """How much two calls may differ: by the declared nondeterminism, or by the effect of rounding the inputs.

    Linear algebra on the processor sums in an order that depends on where in memory its operands lie.
    """
    subject = situation.subject
    moves = [relative_gap(values, outputs[number]) for outputs in _close_by(subject) if number < len(outputs)]
    rounding = subject.rounding * max(_ROUNDINGS, _MOVES * max(moves, default=0.0) / _STEP)
    return max(2 * situation.settings.nondeterminism, min(rounding, _MOST))


def _close_by(subject: Subject) -> Iterator[Outputs]:
    """The outputs at nearby inputs; the step is so large that noise is small compared with its effect."""
    for seed in range(_TRIES):
        generator = np.random.default_rng([seed, 37])
        moved = [
            replace(a, value=a.value * (1 + _STEP * generator.choice([-1.0, 1.0], np.shape(a.value))))
            if a.is_tensor and np.asarray(a.value).dtype.kind in "fc"
            else a
            for a in subject.arguments
        ]
        yield subject.rebind(moved).first_call.outputs


def requires_gradient(situation: Situation, position: int) -> bool:
    """Whether the argument at a position requires a gradient; others may be buffers that forward updates."""
    return situation.subject.arguments[position].requires_grad


def _as_a_buffer(situation: Situation, position: int) -> str | None:
    """How an input is given without a gradient, which excuses a change, where backward returns None for it."""
    subject, argument = situation.subject, situation.subject.arguments[position]
    try:
        gradients = subject.call_at(subject.arguments, signed_cotangents).gradients
    except UserCodeError:
        return None
    if gradients is None or gradients[subject.active.index(position)] is not None:
        return None
    way = "give it without requires_grad"
    if argument.own is None and is_drawn(argument):
        domain, parameters = parse_domain(argument.domain or "normal")
        spec = InputSpec(
            name=argument.name,
            shape=argument.shape,
            dtype=None if argument.dtype_name.endswith(("64", "128")) else argument.dtype_name,
            domain=domain.name,
            parameters=tuple(parameters.items()),
            requires_grad=False,
        )
        way = f"give {spec.as_flag()}"
    return (
        f"backward returns None for {argument.name}: if it is a buffer without a gradient, such as running statistics, "
        f"{way}, and the change is reported only as a note"
    )


def _updated(situation: Situation, call: ForwardCall) -> Iterator[str]:
    """A note for each input without a gradient that forward changes in place, as it does with running statistics."""
    for position in call.changed_inputs:
        if not requires_gradient(situation, position):
            name = situation.input_name(position)
            yield (
                f"{name} is changed in place by forward; this is reported only as a note, not as a failure, because "
                f"{name} requires no gradient"
            )


def _tensors_in_containers(situation: Situation) -> Iterator[str]:
    """A note for each argument that holds tensors in a container: a Function gets no gradients for those.

    Tensors that are arguments of their own as well get them.
    """
    passed = {id(argument.own) for argument in situation.subject.arguments if argument.own is not None}
    for argument in situation.subject.arguments:
        leaves = [] if argument.is_tensor else container_leaves(argument.value)
        tracked = [(path, leaf) for path, leaf in leaves if path and getattr(leaf, "requires_grad", False) is True]
        missing = [f"{argument.name}{path}" for path, leaf in tracked if id(leaf) not in passed]
        if missing:
            whole = len(missing) == len(tracked)
            them = f"the tensors in {argument.name}" if whole else _listed(missing)
            several = whole or len(missing) > 1
            get, way = ("get", "pass them as separate arguments") if several else ("gets", "pass it as a separate one")
            if whole and isinstance(argument.value, list | tuple):
                way = f"pass them as *{argument.name}"
            yield (
                f"{them} {get} no gradient: apply sees only tensors passed as separate arguments, not those inside a "
                f"{type(argument.value).__name__}; {way}"
            )


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _moved_in_place(subject: Subject) -> Iterator[str]:
    """A note for inputs that forward or backward reads from a module, container or closure, not from an argument."""
    if subject.moved_in_place:
        names = _listed(subject.moved_in_place)
        yield (
            f"forward or backward reads {names} from a module, a container or a closure, not from an argument: gradcli "
            "changed these tensors in place for the check and restored them; you need not do anything"
        )


def _example(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> str:
    return str(values.reshape(-1)[0])
