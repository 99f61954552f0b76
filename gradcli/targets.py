"""What is known of a target: its parameters, its source, and the outcome of running it once."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of forward, ctx left out."""

    name: str
    has_default: bool = False
    default: Any = None
    annotation: str | None = None
    variadic: bool = False
    keyword_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo:
    """What can be known of a target without running it.

    `forward` and `backward` are the Python functions behind it where they exist, for their source; `inner` says that
    `backward` is that of a Function which the target calls, not of the target itself. `jvp` and `vmap` are the user's
    rules for forward mode and for batches, `rules` those for single arguments. `held` are the parameters that a module
    brings along, inputs beside forward's own, with their values.
    """

    name: str
    backend: str
    parameters: tuple[Parameter, ...]
    forward: Callable[..., Any] | None
    backward: Callable[..., Any] | None
    sample_inputs: Callable[[], Any] | None = None
    setup_context: Callable[..., Any] | None = None
    once_differentiable: bool = False
    has_jvp: bool = False
    jvp: Callable[..., Any] | None = None
    vmap: Callable[..., Any] | None = None
    rules: tuple[Callable[..., Any] | None, ...] = ()
    inner: bool = False
    held: tuple[tuple[str, NDArray[Any]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of running forward once on trial inputs: outputs as arrays, or the exception."""

    outputs: tuple[NDArray[Any], ...] = ()
    differentiable: tuple[bool, ...] = ()
    error: BaseException | None = None
    gradients: tuple[NDArray[Any] | None, ...] | None = None
    backward_error: BaseException | None = None

    @property
    def ok(self) -> bool:
        """True where forward returned at least one tensor."""
        return self.error is None and bool(self.outputs)


def parameters_of(function: Callable[..., Any], *, skip: int) -> tuple[Parameter, ...]:
    """The parameters of `function`, without the first `skip` (ctx, or a class method's class)."""
    return listed_parameters(inspect.signature(function).parameters, skip=skip)


def listed_parameters(listed: Mapping[str, inspect.Parameter], *, skip: int) -> tuple[Parameter, ...]:
    """The parameters of a signature, without the first `skip`."""
    kept = list(listed.values())[skip:]
    return tuple(_parameter(p) for p in kept if p.kind is not inspect.Parameter.VAR_KEYWORD)


def _parameter(parameter: inspect.Parameter) -> Parameter:
    empty = inspect.Parameter.empty
    annotation = parameter.annotation
    return Parameter(
        name=parameter.name,
        has_default=parameter.default is not empty,
        default=None if parameter.default is empty else parameter.default,
        annotation=None if annotation is empty else getattr(annotation, "__name__", str(annotation)),
        variadic=parameter.kind is inspect.Parameter.VAR_POSITIONAL,
        keyword_only=parameter.kind is inspect.Parameter.KEYWORD_ONLY,
    )
