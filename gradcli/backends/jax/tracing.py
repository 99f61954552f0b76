"""From a JAX target and its arguments to the graph of its vjp."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gradcli.backends.arrays.caller import ArrayCaller
from gradcli.backends.arrays.transforms import Transforms
from gradcli.backends.arrays.trees import places_of
from gradcli.backends.attribution import user_code_error
from gradcli.backends.jax.calls import Calls
from gradcli.backends.jax.rules import fixed_positions, rule_of
from gradcli.backends.jax.vjp_graph import VjpGraph
from gradcli.backends.traced import TracedCalls
from gradcli.cases import Argument
from gradcli.errors import TargetError
from gradcli.traces import TraceGraph


def vjp_trace(
    transforms: Transforms,
    target: object,
    given: Sequence[Argument],
    cotangent: Callable[[Any], Any],
    asks_for_values: Callable[[BaseException], bool],
    calls: TracedCalls | None = None,
) -> TraceGraph:
    """The graph, in 64 bits unless the target refuses them.

    Raises:
        TargetError: the function decides by the values of its inputs, so that JAX cannot trace it.
        UserCodeError: it raised.
    """
    for wide in (True, False):
        try:
            with transforms.running(silent=False, wide=wide):
                return _traced(transforms, target, given, cotangent, calls)
        except Exception as error:
            if asks_for_values(error):
                raise TargetError(
                    "trace needs a function that jax.make_jaxpr can trace, but this one uses values that are not "
                    "known while JAX traces (an `if`, float() or item() on an array)"
                ) from error
            if not wide or not transforms.refuses_64_bits(error):
                raise user_code_error(error, "forward") from error
    raise TargetError("the function raises with 64-bit inputs and with 32-bit ones")


def _traced(
    transforms: Transforms,
    target: object,
    given: Sequence[Argument],
    cotangent: Callable[[Any], Any],
    calls: TracedCalls | None,
) -> TraceGraph:
    constants = places_of(given, fixed_positions(rule_of(target)), transforms)
    caller = ArrayCaller(transforms, target, given, constants=constants)
    values = {place: np.asarray(argument.value) for place, argument in enumerate(given) if argument.is_tensor}
    tracked = [place for place in values if given[place].requires_grad]

    def function(*tensors: Any) -> list[Any]:
        return caller.run({**values, **dict(zip(tracked, tensors, strict=True))})

    inputs = [transforms.framework.from_array(values[place]) for place in tracked]
    names = [given[place].name for place in tracked]
    if calls is None:
        return VjpGraph().trace(function, names, inputs, cotangent)
    noted = Calls(calls.every)
    graph = VjpGraph(on_call=noted.note)
    found = graph.trace(function, names, inputs, cotangent)
    for call, step in noted.found:
        calls.add(replace(call, node=graph.nodes.get(step)))
    return found
