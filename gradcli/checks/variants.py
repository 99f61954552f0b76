"""The same Function, called in other ways that the inputs given cannot tell apart."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np

from gradcli.backends.base import Subject
from gradcli.cases import Argument
from gradcli.checks.base import Check, Situation
from gradcli.checks.gradient import comparable, evidence_of
from gradcli.checks.subsets import tracking
from gradcli.errors import UserCodeError
from gradcli.numerics.verify import verify
from gradcli.results import Evidence
from gradcli.verdict import Verdict

STRUCTURAL_NAMES = frozenset(
    [
        "dim",
        "dims",
        "axis",
        "axes",
        "keepdim",
        "keepdims",
        "size",
        "shape",
        "stride",
        "padding",
        "dilation",
        "groups",
        "kernel_size",
        "num_classes",
        "num_heads",
        "n_heads",
        "heads",
        "reduction",
        "seed",
        "training",
        "inplace",
        "chunks",
        "block",
        "block_size",
        "steps",
        "n_steps",
        "iterations",
        "n_iter",
        "max_iter",
        "num_iters",
        "ndim",
        "index",
        "offset",
    ]
)
"""Names of arguments that choose a structure rather than enter a formula: not varied."""


@final
class UntrackedCheck(Check):
    """Inputs whose gradient was not asked for must not spoil the others' when it is."""

    name = "untracked"
    sentence = "the gradients stay right when the float inputs that were given without requires_grad require one too"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify the tracked inputs once more with every float input tracked."""
        subject = situation.subject
        floats = [i for i, a in enumerate(subject.arguments) if a.is_tensor and a.value.dtype.kind in "fc"]
        extra = [situation.input_name(i) for i in floats if i not in subject.active]
        if not extra or not comparable(situation):
            return
        try:
            other = subject.rebind(tracking(subject, floats))
        except UserCodeError:
            return
        names = " and ".join(extra)
        verb, whose = ("does", "its gradient was") if len(extra) == 1 else ("do", "their gradients were")
        inputs = [place for place, position in enumerate(other.active) if position in subject.active]
        note = f"{names} {verb} not require a gradient here, so {whose} not checked"
        yield from variant(self, situation, other, f"with {names} requiring a gradient too", note, inputs=inputs)


@final
class ConstantsCheck(Check):
    """A constant such as 1 or 0 can hide that backward leaves it out."""

    name = "constants"
    sentence = "the gradients stay right for other values of the number arguments"

    def run(self, situation: Situation) -> Iterator[Evidence]:
        """Verify once for another value of each number argument, defaults included, that forward accepts."""
        subject = situation.subject
        if not comparable(situation):
            return
        given = with_defaults(subject)
        for position, argument in enumerate(given):
            if not is_formula_constant(argument):
                continue
            for value in other_values(argument.value):
                arguments = list(given)
                arguments[position] = replace(argument, value=value)
                other = self._accepted(subject, arguments)
                if other is not None:
                    yield from self._tried(situation, other, argument, value)
                    break

    def _tried(self, situation: Situation, other: Subject, argument: Argument, value: object) -> Iterator[Evidence]:
        """The evidence of `other`; told and not counted where the number that the user gave is backward's alone.

        Such a number damps, scales or clips the gradient on purpose, and the user said by how much. One that forward
        uses has a derivative that is right or wrong at any value, and a neutral one only hides which.
        """
        label = f"with {argument.name}={value!r} (given: {argument.value!r})"
        found = list(variant(self, situation, other, label, None))
        wrong = [e for e in found if e.verdict is Verdict.FAILED]
        if wrong and argument.fixed and self._same_forward(situation.subject, other):
            names = " and ".join(dict.fromkeys(str(e.input) for e in wrong))
            yield self.passed(
                f"the gradient of {names} is wrong {label}; not counted here, since {argument.name} was given and "
                "forward does not depend on it"
            )
        else:
            yield from found

    def _same_forward(self, subject: Subject, other: Subject) -> bool:
        pairs = zip(subject.first_call.outputs, other.first_call.outputs, strict=True)
        return all(np.array_equal(one, two, equal_nan=one.dtype.kind in "fc") for one, two in pairs)

    def _accepted(self, subject: Subject, arguments: list[Argument]) -> Subject | None:
        """The Function at these arguments, None where forward refuses them or is not finite."""
        try:
            other = subject.rebind(arguments)
            outputs = other.first_call.outputs
        except UserCodeError:
            return None
        numbers = [o for o in outputs if o.dtype.kind in "fc"]
        finite = all(bool(np.isfinite(o).all()) for o in numbers)
        same = [b.shape for b in other.codomain.blocks] == [b.shape for b in subject.codomain.blocks]
        return other if finite and same and other.output_numbers == subject.output_numbers else None


def variant(
    check: Check,
    situation: Situation,
    other: Subject,
    label: str,
    note: str | None,
    *,
    inputs: list[int] | None = None,
) -> Iterator[Evidence]:
    """Verify another subject; a failure is reported with the label, anything less is no news."""
    map_ = situation.map_of(other, 1)
    try:
        found = verify(map_, other.point, seed=situation.seed + 1, significance=situation.significance, inputs=inputs)
    except UserCodeError:
        # The same call is made, and reported, by the check on that input itself.
        yield Evidence(check=check.name, verdict=Verdict.PASSED, note=note)
        return
    wrong = [
        replace(e, witness=other, note=label if e.note is None else f"{label}; {e.note}")
        for e in evidence_of(check.name, 1, map_, found, other.output_numbers)
        if e.verdict is Verdict.FAILED
    ]
    yield from wrong
    if not wrong:
        yield Evidence(check=check.name, verdict=Verdict.PASSED, note=note, reference="finite-difference")


def with_defaults(subject: Subject) -> list[Argument]:
    """The subject's arguments, and the defaults of those that were left out, in forward's order."""
    given = list(subject.arguments)
    listed = [p for p in subject.info.parameters if not p.variadic]
    if len(listed) != len(subject.info.parameters) or [a.name for a in given] != [p.name for p in listed[: len(given)]]:
        return given
    for parameter in listed[len(given) :]:
        if not parameter.has_default:
            return list(subject.arguments)
        given.append(
            Argument(name=parameter.name, value=parameter.default, is_tensor=False, keyword=parameter.keyword_only)
        )
    return given


def is_formula_constant(argument: Argument) -> bool:
    """Whether an argument is a number that may enter a formula."""
    value = argument.value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return not argument.is_tensor and number and argument.name.lower() not in STRUCTURAL_NAMES


def other_values(value: float) -> tuple[Any, ...]:
    """Values to try instead: not neutral ones (0, 1, -1), and of the same type."""
    if isinstance(value, int):
        return (value + 1, value + 2) if value not in (-2, -1, 0) else (3, 2)
    return (value * 1.375 + 0.1875, value * 0.75) if value else (0.375, 2.5)
