"""Traces of functions that a framework transforms as a whole: no graph is recorded while they run."""

import inspect
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gradcli.backends.traced import TracedBackend, TracedCalls
from gradcli.cases import InputsFrom, InputSpec
from gradcli.diagnosis.symptoms.functional import explain_functional
from gradcli.errors import TargetError, UsageError
from gradcli.runner.arguments.given import Given, supply_from
from gradcli.runner.arguments.supply import supply_inputs
from gradcli.runner.planning.plan import CheckCase
from gradcli.runner.trace_nodes import calls_checked
from gradcli.runner.traceable import DrawnCotangents
from gradcli.traces import TraceGraph


def functional_trace(
    backend: TracedBackend,
    target: object,
    case: CheckCase,
    inputs: Given | None,
    flags: tuple[InputSpec, ...],
    *,
    counted: bool,
    checked: bool | None = None,
) -> TraceGraph:
    """The trace of such a function.

    `counted` says that its memory was asked for, `checked` that the user's rules are to be checked (True: every
    operation).

    Raises:
        TargetError: it is a class, or an object that cannot be called.
        UsageError: there is no memory to count.
        UserCodeError: the function raised.
    """
    if inspect.isclass(target) or not callable(target):
        raise TargetError(f"trace needs a graph of nodes, which the {backend.name} backend does not have")
    if counted:
        raise UsageError(f"memory: {backend.name} keeps no graph whose saved tensors could be counted")
    info = backend.describe(target)
    if inputs is not None:
        supply = supply_from(inputs, backend, info, case)
    else:
        given = case.spec.with_inputs(flags, InputsFrom.FLAGS) if flags else case.spec
        supply = supply_inputs(backend, target, info, replace(case, spec=given))

    drawn = DrawnCotangents(case.settings.seed)

    def cotangent(result: Any) -> NDArray[Any]:
        return drawn.next(result.shape).astype(result.dtype)

    calls = None if checked is None else TracedCalls(every=checked)
    graph = backend.traced(target, supply.samples[0](), cotangent, calls)
    if calls is not None:
        graph = calls_checked(graph, calls, case.settings.seed)
    return replace(
        explain_functional(graph),
        target=case.spec.target,
        inputs_from=supply.source.value,
        flags=tuple(spec.as_flag() for spec in supply.specs),
    )
