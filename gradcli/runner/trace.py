"""From a target to its trace: find it, find inputs for it, run it once, and say what happened."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from types import ModuleType
from typing import Any, final

import numpy as np

from gradcli.backends.registry import backend_for, backends
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.cases import Argument, CheckSpec, InputsFrom, InputSpec
from gradcli.diagnosis.symptoms.rules import explain_trace
from gradcli.errors import TargetError, UsageError, UserCodeError
from gradcli.frozen import dataclass
from gradcli.inputs.builders import known_dtype, rounded
from gradcli.runner.arguments.binding import missing
from gradcli.runner.arguments.given import Given, supply_from
from gradcli.runner.arguments.supply import Supply, supply_inputs, supply_of
from gradcli.runner.planning.plan import CheckCase, case_of
from gradcli.runner.trace_functional import drawn_cotangent, functional_trace
from gradcli.runner.trace_nodes import nodes_checked
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve
from gradcli.targets import TargetInfo
from gradcli.traces import TraceGraph
from gradcli.tracing.captures import Captures
from gradcli.tracing.passes import trace_call


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Traceable:
    """A target ready to be run: what to call, whose parameters that has, and the modules it consists of."""

    backend: FunctionBackend
    call: Callable[..., Any]
    info: TargetInfo
    dtype: str = "float64"
    modules: dict[str, Any] = field(default_factory=dict)


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
        TargetError: the target cannot be found, or is nothing that can be traced.
        UsageError: the inputs do not fit the target's parameters.
        UserCodeError: forward raised.
        InputsNotFoundError: inputs were needed and none could be inferred.
    """
    name = target if isinstance(target, str) else getattr(target, "__qualname__", type(target).__qualname__)
    found = resolve(target).object if isinstance(target, str) else target
    begun()
    case = case_of(CheckSpec(target=name), Settings(seed=seed, samples=1))
    checked, counted = every_node if check or every_node else None, memory or budget is not None
    functional = functional_trace(found, case, inputs, tuple(flags), counted=counted, checked=checked)
    if functional is not None:
        return functional
    framework = _backend_of(found).framework
    state = framework.random_state()
    framework.seed(seed)
    try:
        ready = _ready(found)
        supply = _supply(ready, case, inputs, tuple(flags))
        framework.seed(seed)
        captures = None if checked is None else Captures(every=checked)
        graph = _traced(ready, supply, name, seed, captures, memory=counted)
        if captures is not None:
            graph = nodes_checked(graph, captures.found, captures.left_out, ready.backend, seed)
    finally:
        framework.restore_random_state(state)
    if graph.error is not None and graph.error_phase == "forward" and not graph.passes:
        raised = f"forward raised {graph.error}"
        raise UserCodeError(raised, phase="forward", user_traceback=graph.error_traceback or "")
    if graph.memory is not None:
        graph = replace(graph, memory=replace(graph.memory, budget=budget))
    return explain_trace(graph)


def trace_arguments(target: object, arguments: Sequence[Argument], name: str, seed: int) -> TraceGraph:
    """Run forward and backward of `target` once at these arguments, in the precision of its parameters.

    Raises:
        TargetError: the target is nothing that can be traced.
    """
    ready = _ready(target)
    framework = ready.backend.framework
    state = framework.random_state()
    framework.seed(seed)
    try:
        supply = supply_of([tuple(_as_parameters(ready, argument) for argument in arguments)], InputsFrom.GIVEN)
        return explain_trace(_traced(ready, supply, name, seed))
    finally:
        framework.restore_random_state(state)


def _as_parameters(ready: Traceable, argument: Argument) -> Argument:
    """A floating argument of a module in the precision of its parameters."""
    if not (ready.modules and argument.is_tensor and np.asarray(argument.value).dtype.kind == "f"):
        return argument
    return replace(argument, value=rounded(np.asarray(argument.value, known_dtype(ready.dtype)), ready.dtype))


def _backend_of(target: object) -> FunctionBackend:
    kind = target if inspect.isclass(target) else type(target)
    for backend in backends():
        if isinstance(backend, FunctionBackend) and _is_module_of(backend, kind):
            return backend
    backend = backend_for(target)
    if not isinstance(backend, FunctionBackend):
        raise TargetError(f"trace needs a graph of nodes, which the {backend.name} backend does not have")
    return backend


def _is_module_of(backend: FunctionBackend, kind: type) -> bool:
    if backend.name not in sys.modules and f"gradcli.{backend.name}" not in sys.modules:
        return False
    namespace: ModuleType = backend.framework.namespace
    return issubclass(kind, namespace.nn.Module)


def _ready(target: object) -> Traceable:
    backend = _backend_of(target)
    kind = target if inspect.isclass(target) else type(target)
    if _is_module_of(backend, kind):
        return _ready_module(backend, _instance(target))
    function: Any = backend.function_class(target)
    call = target if function is None else function.apply
    if not callable(call):
        raise TargetError(f"expected a Function class, a module or a callable, got {type(target).__name__}")
    return Traceable(backend=backend, call=call, info=backend.describe(target))


def _ready_module(backend: FunctionBackend, module: Any) -> Traceable:
    """A module is given floating inputs of its parameters' own precision."""
    first = next((p for p in module.parameters() if p.is_floating_point()), None)
    dtype = "float64" if first is None else backend.framework.dtype_name(first)
    info = replace(backend.describe(module.forward), name=type(module).__name__)
    return Traceable(backend=backend, call=module, info=info, dtype=dtype, modules={"": module})


def _instance(target: Any) -> Any:
    if not inspect.isclass(target):
        return target
    required = [
        parameter.name
        for parameter in inspect.signature(target).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        raise UsageError(
            f"{target.__name__} cannot be instantiated without {', '.join(required)}; expected an instance, a class "
            "without required arguments, or a function that builds the model and returns a loss"
        )
    return target()


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


def _traced(
    ready: Traceable,
    supply: Supply | None,
    name: str,
    seed: int,
    captures: Captures | None = None,
    *,
    memory: bool = False,
) -> TraceGraph:
    arguments = () if supply is None else supply.samples[0]()
    tensors = {argument.name: _tensor(ready, argument) for argument in arguments if argument.is_tensor}
    values = [tensors.get(a.name, a.value) for a in arguments if not a.keyword]
    keywords = {a.name: tensors.get(a.name, a.value) for a in arguments if a.keyword}
    graph = trace_call(
        ready.backend.framework.namespace,
        lambda: ready.call(*values, **keywords),
        named=tensors,
        modules=ready.modules,
        target=name,
        backend=ready.backend.name,
        cotangent=lambda root: _cotangent(ready.backend.framework, root, seed),
        captures=captures,
        memory=memory,
    )
    if supply is None:
        return graph
    return replace(graph, inputs_from=supply.source.value, flags=tuple(spec.as_flag() for spec in supply.specs))


def _tensor(ready: Traceable, argument: Argument) -> Any:
    tensor = ready.backend.framework.from_array(np.asarray(argument.value))
    return tensor.requires_grad_() if argument.requires_grad else tensor


def _cotangent(framework: Framework, root: Any, seed: int) -> Any:
    """Short numbers of mixed size and sign; cotangents of ones would hide a gradient that sums to zero."""
    return framework.from_array(drawn_cotangent(root.shape, seed), framework.dtype_name(root))
