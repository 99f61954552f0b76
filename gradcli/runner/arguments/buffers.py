"""Inferred inputs that are buffers: forward updates them in place, and backward returns no gradient for them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gradcli.backends.base import Subject
from gradcli.backends.tensor.framework import same_values
from gradcli.cases import Argument, InputsFrom
from gradcli.errors import UserCodeError
from gradcli.runner.arguments.supply import Supply
from gradcli.runner.planning.plan import CheckCase

_GIVEN = (InputsFrom.GIVEN, InputsFrom.SAMPLE_INPUTS)


def with_buffers(supply: Supply, subject: Subject, case: CheckCase) -> Supply:
    """The supply with inferred inputs that turn out to be buffers, such as running statistics, without a gradient.

    The user did not say that such an input requires a gradient, and a caller would pass it without. An input that an
    output depends on is not a buffer: it has a gradient.
    """
    given = {spec.name for spec in case.spec.inputs or ()}
    inferred = {spec.name for spec in supply.specs if spec.requires_grad is None} - given
    changed = [n for n in subject.first_call.changed_inputs if n in subject.active]
    buffers = {subject.arguments[n].name for n in changed if subject.arguments[n].name in inferred}
    if not buffers or supply.source in _GIVEN:
        return supply
    returned = subject.raw_backward(subject.codomain.unflatten(np.ones(subject.codomain.size))).gradients
    gets_none = {a.name for a, gradient in zip(subject.arguments, returned, strict=False) if gradient.is_none}
    buffers = {name for name in buffers & gets_none if not _matters(subject, name)}
    specs = (replace(s, requires_grad=False) if s.name in buffers else s for s in supply.specs)
    return replace(supply, specs=tuple(specs)) if buffers else supply


def _matters(subject: Subject, name: str) -> bool:
    """Whether an output changes with an input, or forward refuses other values of it."""
    moved = [replace(a, value=a.value * 1.5 + 0.25) if a.name == name else a for a in subject.arguments]
    try:
        outputs = subject.call_at(moved).outputs
    except UserCodeError:
        return True
    return not all(map(same_values, outputs, subject.first_call.outputs))


def as_supplied(arguments: Sequence[Argument], supply: Supply) -> tuple[Argument, ...]:
    """The arguments, requiring a gradient only if the supply's specs say so."""
    constant = {spec.name for spec in supply.specs if spec.requires_grad is False}
    return tuple(replace(a, requires_grad=False) if a.requires_grad and a.name in constant else a for a in arguments)
