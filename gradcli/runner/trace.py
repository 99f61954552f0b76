"""From a target to its trace: find it, find inputs for it, run it once, and say what happened."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from gradcli.backends.attribution import paths_from_here
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.backends.traced import TracedBackend
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.diagnosis.symptoms.rules import error_hint, explain_trace
from gradcli.errors import TargetError, UserCodeError
from gradcli.runner.arguments.binding import missing
from gradcli.runner.arguments.given import Given, supply_from
from gradcli.runner.arguments.supply import Supply, supply_inputs
from gradcli.runner.planning.plan import CheckCase, case_of
from gradcli.runner.trace_functional import functional_trace
from gradcli.runner.trace_nodes import nodes_checked
from gradcli.runner.traceable import Traceable, traceable, traced, traced_by_its_own
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve
from gradcli.traces import TraceGraph
from gradcli.tracing.captures import Captures


@paths_from_here()
def trace_target(
    target: object,
    inputs: Given | None = None,
    *,
    flags: Sequence[InputSpec] = (),
    seed: int = 0,
    check: bool = False,
    every_node: bool = False,
    memory: bool = False,
    budget: int | None = None,
    begun: Callable[[], None] = lambda: None,
) -> TraceGraph:
    """Run forward and backward of `target` once and tell what happened.

    Args:
        target: a Function class, a module, a callable (which may call backward itself), or "module:Name" of one.
        inputs: as for `gradcli.check`; None to infer them where there are parameters.
        flags: inputs as the command line gives them.
        seed: fixes inputs, cotangents and the generators while the target runs.
        check: check the backward of each custom Function; every_node: and of the framework's operations.
        memory: keep the ledger of memory.
        budget: the most bytes that the pass may need at one time; more is a symptom. It asks for the ledger as well.
        begun: called once the target has been imported.

    Returns:
        The graph, the hook calls, and why gradients are missing; an error of backward is in `error`.

    Raises:
        TargetError: the target cannot be found, or is nothing that can be traced, such as an async function.
        UsageError: the inputs do not fit the target's parameters.
        UserCodeError: forward raised.
        InputsNotFoundError: inputs were needed and none could be inferred.
    """
    name = target if isinstance(target, str) else getattr(target, "__qualname__", type(target).__qualname__)
    found = _runnable(resolve(target).object if isinstance(target, str) else target, name)
    begun()
    case = case_of(CheckSpec(target=name), Settings(seed=seed, samples=1))
    checked, counted = every_node if check or every_node else None, memory or budget is not None

    def attempt(backend: FunctionBackend | TracedBackend) -> TraceGraph:
        if isinstance(backend, TracedBackend):
            return functional_trace(backend, found, case, inputs, tuple(flags), counted=counted, checked=checked)
        graph = _recorded(backend, found, case, inputs, tuple(flags), counted=counted, checked=checked)
        if graph.memory is not None:
            graph = replace(graph, memory=replace(graph.memory, budget=budget))
        return graph if _has_failed(graph) else explain_trace(graph)

    graph = traced_by_its_own(found, inputs, attempt)
    _require_forward(graph)
    return graph


def _recorded(
    backend: FunctionBackend,
    target: object,
    case: CheckCase,
    inputs: Given | None,
    flags: tuple[InputSpec, ...],
    *,
    counted: bool,
    checked: bool | None,
) -> TraceGraph:
    """The graph of nodes that the framework records, as `functional_trace`."""
    framework, seed = backend.framework, case.settings.seed
    state = framework.random_state()
    framework.seed(seed)
    try:
        ready = traceable(target, backend)
        supply = _supply(ready, case, inputs, flags)
        framework.seed(seed)
        captures = None if checked is None else Captures(every=checked)
        graph = traced(ready, supply, case.spec.target, seed, captures, memory=counted)
        if supply is not None:  # what it was given may be of the wrong framework; without, its error is its own
            _require_forward(graph)
        return graph if captures is None else nodes_checked(graph, captures, backend, seed)
    finally:
        framework.restore_random_state(state)


def _has_failed(graph: TraceGraph) -> bool:
    """Whether forward raised, so there is nothing to explain."""
    return graph.error is not None and graph.error_phase == "forward" and not graph.passes


def _require_forward(graph: TraceGraph) -> None:
    if _has_failed(graph):
        hint = error_hint(graph)
        raised = f"forward raised {graph.error}{'' if hint is None else f'{chr(10)}  {hint}'}"
        raise UserCodeError(raised, phase="forward", user_traceback=graph.error_traceback or "")


def _runnable(target: object, name: str) -> object:
    """The target; TargetError for a function whose call runs none of its code: an async one, or a generator."""
    code: Any = target if inspect.isroutine(target) else getattr(type(target), "__call__", None)  # noqa: B004
    for function in (target, code):
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TargetError(f"{name} is an async function: trace a function that runs it, as with asyncio.run()")
        if inspect.isgeneratorfunction(function):
            raise TargetError(f"{name} is a generator function: trace a function that consumes it and returns the loss")
    return target


def _supply(ready: Traceable, case: CheckCase, inputs: Given | None, flags: tuple[InputSpec, ...]) -> Supply | None:
    """The inputs, None for a target that is called without any."""
    if inputs is not None:
        return supply_from(inputs, ready.backend, ready.info, case)
    if not flags and not missing((), ready.info) and not any(p.variadic for p in ready.info.parameters):
        return None
    given = case.spec.with_inputs(flags, InputsFrom.FLAGS) if flags else case.spec
    case = replace(case, spec=given, settings=replace(case.settings, dtype=ready.dtype))
    return supply_inputs(ready.backend, _in_precision(ready), ready.info, case)


def _in_precision(ready: Traceable) -> Callable[..., Any]:
    """The target for the search of inputs, which tries float64: they are converted to the module's precision."""
    if not ready.modules or ready.dtype == "float64":
        return ready.call
    framework = ready.backend.framework
    wanted = getattr(framework.namespace, ready.dtype)

    def call(*args: Any, **keywords: Any) -> Any:
        return ready.call(*(_converted(framework, a, wanted) for a in args), **keywords)

    return call


def _converted(framework: Framework, value: Any, wanted: Any) -> Any:
    floating = framework.is_tensor(value) and value.is_floating_point()
    return value.to(wanted) if floating else value
