"""One forward and backward of a target that has a graph, at given arguments."""

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from math import prod
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Backend
from gradcli.backends.owners import FRAMEWORKS
from gradcli.backends.registry import backend_named, backends, backends_for
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.backends.traced import TracedBackend
from gradcli.cases import Argument, InputsFrom
from gradcli.diagnosis.symptoms.rules import explain_trace
from gradcli.errors import (
    GradcliError,
    InputsNotFoundError,
    OtherFrameworkError,
    TargetError,
    UsageError,
    UserCodeError,
)
from gradcli.frozen import dataclass
from gradcli.inputs.builders import known_dtype, rounded
from gradcli.runner.arguments.supply import Supply, supply_of
from gradcli.targets import TargetInfo
from gradcli.traces import TraceGraph
from gradcli.tracing.captures import Captures
from gradcli.tracing.passes import trace_call

_COTANGENTS = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0)


@final
class DrawnCotangents:
    """The cotangents of the outputs, one after the other: short numbers of mixed size and sign.

    Ones would hide what sums to zero, as the gradient of a softmax does. Equal numbers for two outputs would hide
    gradients of theirs that sum to zero; those of each output after the first are therefore multiplied by a factor,
    which differs for seven outputs in a row, and which makes no number 1.
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._place = 0

    def next(self, shape: Sequence[int]) -> NDArray[Any]:
        """The cotangent of the next output; 1 for a first output of one entry, which is a loss."""
        place, self._place = self._place, self._place + 1
        if not place and prod(shape) == 1:
            return np.ones(tuple(shape))
        factor = 1 + (1 + (place - 1) % 7) / 8 if place else 1
        return self._generator.choice(_COTANGENTS, size=tuple(shape)) * factor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Traceable:
    """A target ready to be run: what to call, whose parameters that has, and the modules it consists of."""

    backend: FunctionBackend
    call: Callable[..., Any]
    info: TargetInfo
    dtype: str = "float64"
    modules: dict[str, Any] = field(default_factory=dict)


def trace_arguments(
    target: object, backend: FunctionBackend, arguments: Sequence[Argument], name: str, seed: int
) -> TraceGraph:
    """Run forward and backward of `target` once at these arguments, in the precision of its parameters.

    Raises:
        TargetError: the target is nothing that can be traced.
        OtherFrameworkError: it computes with another framework.
    """
    ready = traceable(target, backend)
    framework = ready.backend.framework
    state = framework.random_state()
    framework.seed(seed)
    try:
        supply = supply_of([tuple(_as_parameters(ready, argument) for argument in arguments)], InputsFrom.GIVEN)
        return explain_trace(traced(ready, supply, name, seed))
    finally:
        framework.restore_random_state(state)


def _as_parameters(ready: Traceable, argument: Argument) -> Argument:
    """A floating argument of a module in the precision of its parameters."""
    if not (ready.modules and argument.is_tensor and np.asarray(argument.value).dtype.kind == "f"):
        return argument
    return replace(argument, value=rounded(np.asarray(argument.value, known_dtype(ready.dtype)), ready.dtype))


def traced_by_its_own(
    target: object, given: object, attempt: Callable[[FunctionBackend | TracedBackend], TraceGraph]
) -> TraceGraph:
    """What `attempt` returns for the backend that `target` belongs to, called with `given` if that is known.

    Where the names in its code are of several frameworks, or of none, its run tells: the first backend is taken that
    inputs are found for, or the one with whose framework it computes.

    Raises:
        TargetError: there is none with a graph.
    """
    waiting = list(_backends_of(target, given))
    tried: set[str] = set()
    refusals: list[GradcliError] = []
    while waiting:
        backend = waiting.pop(0)
        tried.add(backend.name)
        try:
            return attempt(backend)
        except OtherFrameworkError as error:
            if error.framework in tried:
                raise
            waiting = [_with_graph(backend_named(error.framework))]
        except (UsageError, InputsNotFoundError, UserCodeError) as error:
            refusals.append(error)
    raise refusals[0]


def _backends_of(target: object, given: object) -> tuple[FunctionBackend | TracedBackend, ...]:
    """The backends that `target` may belong to and that have a graph of it, in the order to be tried."""
    kind = target if inspect.isclass(target) else type(target)
    for backend in backends():
        if isinstance(backend, FunctionBackend) and _is_module_of(backend, kind):
            return (backend,)
    likely = backends_for(target, given)
    able = [each for each in likely if isinstance(each, FunctionBackend | TracedBackend)]
    return tuple(able) or (_with_graph(likely[0]),)


def _with_graph(backend: Backend) -> FunctionBackend | TracedBackend:
    if not isinstance(backend, FunctionBackend | TracedBackend):
        raise TargetError(f"trace needs a graph of nodes, which the {backend.name} backend does not have")
    return backend


def _is_module_of(backend: FunctionBackend, kind: type) -> bool:
    return _is_loaded(backend.name) and issubclass(kind, backend.framework.namespace.nn.Module)


def _is_loaded(name: str) -> bool:
    return name in sys.modules or f"gradcli.{name}" in sys.modules


def _others(backend: FunctionBackend) -> dict[str, ModuleType]:
    """The top modules of the other frameworks with graphs of nodes, as far as they have been imported."""
    loaded = [backend_named(name) for name in FRAMEWORKS if name != backend.name and _is_loaded(name)]
    return {each.name: each.framework.namespace for each in loaded if isinstance(each, FunctionBackend)}


def traceable(target: object, backend: FunctionBackend) -> Traceable:
    """What to call for a Function class, a module or a callable of this backend's framework.

    Raises:
        TargetError: it is none of these.
        UsageError: a module's class needs arguments.
    """
    kind = target if inspect.isclass(target) else type(target)
    if _is_module_of(backend, kind):
        return _traceable_module(backend, _instance(target))
    function: Any = backend.function_class(target)
    call = target if function is None else _application(function)
    if not callable(call):
        raise TargetError(f"expected a Function class, a module or a callable, got {type(target).__name__}")
    return Traceable(backend=backend, call=call, info=backend.describe(target))


def _application(function: Any) -> Callable[..., Any]:
    """What applies a Function: `apply` is looked up at the call, when the trace has put its own in place."""

    def applied(*args: Any, **keywords: Any) -> Any:
        return function.apply(*args, **keywords)

    return applied


def _traceable_module(backend: FunctionBackend, module: Any) -> Traceable:
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


def traced(
    ready: Traceable,
    supply: Supply | None,
    name: str,
    seed: int,
    captures: Captures | None = None,
    *,
    memory: bool = False,
) -> TraceGraph:
    """The graph of one forward and backward at the first sample of `supply`, or without arguments if that is None.

    Raises:
        OtherFrameworkError: the target computes with another framework than that of its backend.
    """
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
        cotangent=_drawn(ready.backend.framework, DrawnCotangents(seed)),
        captures=captures,
        memory=memory,
        others=_others(ready.backend),
    )
    if supply is None:
        return graph
    return replace(graph, inputs_from=supply.source.value, flags=tuple(spec.as_flag() for spec in supply.specs))


def _tensor(ready: Traceable, argument: Argument) -> Any:
    tensor = ready.backend.framework.from_array(np.asarray(argument.value))
    return tensor.requires_grad_() if argument.requires_grad else tensor


def _drawn(framework: Framework, drawn: DrawnCotangents) -> Callable[[Any], Any]:
    """What makes the cotangent of an output."""
    return lambda root: framework.from_array(drawn.next(root.shape), framework.dtype_name(root))
