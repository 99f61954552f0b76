"""A direct call of the user's backward: what it returns, before the framework checks it, and what it changes."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import RawBackward, RawGradient
from gradcli.backends.guard import users_code
from gradcli.backends.tensor.call_records import Call, all_entered
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.inspection import Inspector
from gradcli.cases import Argument

Given = dict[int, NDArray[Any] | None]


def called_directly(
    framework: Framework,
    inspector: Inspector,
    call: Call,
    arguments: Sequence[Argument],
    cotangents: Given,
    *,
    asked: bool,
    watching: bool = True,
) -> RawBackward:
    """What the node's backward returns for the cotangents of the differentiable outputs, by their numbers.

    Without `watching`, nothing is said of what it changes.
    """
    node = inspector.node(call)
    given = None if node is None else _all_cotangents(framework, call, cotangents)
    if node is None or given is None:
        return RawBackward(available=False)
    passed = {i: t for i, t in enumerate(call.passed) if framework.is_tensor(t)}
    try:
        with users_code(framework, silent=True, asked=asked, forward=0), framework.namespace.no_grad():
            each = [dict(enumerate(given)), passed, dict(enumerate(inspector.saved(node)))] if watching else [{}] * 3
            keys = [{i: framework.memory_of(t) for i, t in part.items() if t is not None} for part in each]
            copies = _copies(framework, each)
            with all_entered(call.exchanges):
                returned = node.apply(*given)
            framework.synchronize()
    except (Exception, SystemExit) as error:
        return RawBackward(error=error)
    changed = {key for key, (tensor, copy) in copies.items() if not framework.holds(tensor, copy)}
    cotangents_changed, inputs_changed, saved_changed = [
        tuple(i for i, key in before.items() if key in changed) for before in keys
    ]
    values = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    return RawBackward(
        gradients=tuple(_restricted(inspector.raw(value), arguments, n) for n, value in enumerate(values)),
        changed_cotangents=cotangents_changed,
        changed_inputs=inputs_changed,
        changed_saved=saved_changed,
        container="a list" if isinstance(returned, list) else None,
    )


def sums_gradients(framework: Framework, inspector: Inspector, caller: Caller, tracked: Sequence[int]) -> bool:
    """Whether backward returns a gradient of another shape than its input, to which the framework sums it."""
    try:
        with users_code(framework, silent=True, recording=True):
            call = caller.run(caller.leaves(tracked))
    except (Exception, SystemExit):
        return False
    outputs = {n: output for n, output in enumerate(call.returned) if framework.is_tensor(output)}
    ones: Given = {n: np.ones(framework.to_array(output).shape) for n, output in outputs.items()}
    raw = called_directly(framework, inspector, call, caller.arguments, ones, asked=False, watching=False)
    shapes = dict(enumerate(gradient.shape for gradient in raw.gradients))
    return any(shapes.get(place) not in (None, np.shape(caller.arguments[place].value)) for place in tracked)


def _all_cotangents(framework: Framework, call: Call, cotangents: Given) -> list[Any] | None:
    """One cotangent per output of forward as its backward gets it, zeros for those that carry no gradient.

    None in the list for what is not a tensor; None instead of the list if a cotangent cannot be made.
    """
    result: list[Any] = []
    for number, (output, settled) in enumerate(zip(call.returned, call.outputs, strict=True)):
        if not framework.is_tensor(output) or (number in cotangents and cotangents[number] is None):
            result.append(None)
            continue
        value = cotangents.get(number)
        if value is None:
            value = framework.to_array(framework.namespace.zeros_like(settled.detach()))
        made = framework.cotangent_of(output, np.asarray(value))
        if made is None:
            return None
        result.append(made)
    return result


def _restricted(gradient: RawGradient, arguments: Sequence[Argument], position: int) -> RawGradient:
    """The gradient of a sparse input at the entries that the input has; others do not count."""
    sparsity = arguments[position].sparsity if position < len(arguments) else None
    if sparsity is None or gradient.value is None or gradient.shape != sparsity.shape:
        return gradient
    entries = sparsity.entries_of(gradient.value)
    return replace(gradient, value=entries, shape=entries.shape)


def _copies(framework: Framework, each: Sequence[dict[int, Any]]) -> dict[Hashable, tuple[Any, NDArray[Any]]]:
    """A tensor and a copy of its values for each memory: the input is often saved as well."""
    tensors = [tensor for part in each for tensor in part.values() if tensor is not None]
    whole = {framework.memory_of(tensor): tensor for tensor in tensors}
    return {key: (tensor, framework.to_array(tensor)) for key, tensor in whole.items()}
