"""Calls of a Function at other arguments than those it is bound to, with one backward pass each."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Counters
from gradcli.backends.guard import users_code
from gradcli.backends.tensor.call_records import CallResult, Outputs, Seeds, Values
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.maps import carries_gradient, gradients_of


def called_at(
    caller: Caller, active: Sequence[int], counters: Counters, seeds: Seeds | None, beside: Values | None = None
) -> CallResult:
    """One call by `caller` at its own arguments, and a pass for the cotangents that `seeds` makes, if there is one.

    Where values close by are given, forward is called there as well.

    Raises:
        UserCodeError: forward or backward raised; its `phase` says which.
    """
    framework, phase, gradients = caller.framework, "forward", None
    counters.forward += 1
    try:
        with users_code(framework, silent=True, recording=True):
            call = caller.run(caller.leaves(active))
            is_tensor, to_array = framework.is_tensor, framework.to_array
            outputs = tuple([to_array(o) if is_tensor(o) else np.asarray(o, dtype=object) for o in call.outputs])
            numbers = tuple([n for n, output in enumerate(call.outputs) if carries_gradient(framework, output)])
            phase = "backward"
            if seeds is not None:
                gradients = gradients_of(framework, counters, call, numbers, seeds([outputs[n] for n in numbers]))
    except (Exception, SystemExit) as error:
        raise user_code_error(error, phase) from error
    return CallResult(
        outputs=outputs,
        numbers=numbers,
        active=tuple(active),
        gradients=gradients,
        beside=None if beside is None else _values(caller, beside, numbers, counters),
        in_place=any(given is output for given in call.passed if is_tensor(given) for output in call.returned),
    )


def _values(caller: Caller, values: Values, numbers: Sequence[int], counters: Counters) -> Outputs | None:
    """The outputs of these numbers at other values, without a graph unless forward needs one; None where it raises."""
    framework, found = caller.framework, None
    for recording in (False, True):
        counters.forward += 1
        leaves = dict(zip(values, framework.leaves(list(values.values()), tracked=recording), strict=True))
        with suppress(Exception, SystemExit):
            with users_code(framework, silent=True), framework.namespace.set_grad_enabled(recording):
                outputs = caller.run(leaves).outputs
                found = tuple([framework.to_array(outputs[number]) for number in numbers])
            break
    return found


def sharing(function: Callable[..., Any], first: int, second: int) -> Callable[..., Any]:
    """`function` with its argument at `first` in the place of `second` too."""

    def shared(*given: Any, **named: Any) -> Any:
        return function(*given[:second], given[first], *given[second + 1 :], **named)

    return shared
