"""What is known of a target: its parameters, its source, and the outcome of running it once."""

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gradcli.frozen import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray


_SAME = 1e-9
"""Relative and absolute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of forward, ctx left out; a `static` one is declared to be no tensor, as by nondiff_argnums."""

    name: str
    has_default: bool = False
    default: Any = None
    annotation: str | None = None
    variadic: bool = False
    keyword_only: bool = False
    static: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A Function that a target goes through: its name, and its parts, for their source."""

    name: str
    forward: Callable[..., Any] | None
    setup_context: Callable[..., Any] | None
    backward: Callable[..., Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo:
    """What can be known of a target without running it.

    `forward` and `backward` are the Python functions behind it where they exist, for their source; `inner` says that
    `backward` is that of a Function which the target calls, not of the target itself, and `called` are all of these,
    known once the target has run. `setup_context` saves values for backward, as `fwd` does in JAX. `jvp` and `vmap`
    are the user's rules for forward mode and for batches, `rules` those for single arguments. `held` are the
    parameters that a module brings along, inputs beside forward's own, with their values. `outer` are the parameters of
    a decorator's wrapper, where `parameters` are those of what it wraps; `takes_keywords` says that any further name
    may be given. `differentiates_numbers` says that its rule has to give a gradient for a Python float as well as for
    a tensor. `documentation` is the docstring of the class, and the comments above it and above forward. `has_autodiff`
    says that the framework can differentiate forward itself.
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
    called: tuple[Called, ...] = ()
    held: "tuple[tuple[str, NDArray[Any]], ...]" = ()
    outer: tuple[Parameter, ...] = ()
    takes_keywords: bool = False
    differentiates_numbers: bool = False
    documentation: str = ""
    has_autodiff: bool = True

    @property
    def is_pushed(self) -> bool:
        """Whether `backward` is a rule of forward mode, as of custom_jvp: it returns the outputs and their tangents."""
        return self.backward is not None and self.has_jvp and self.jvp is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The outcome of running forward once on trial inputs: outputs as arrays, or the exception.

    `lacks_a_sum` says that the framework rejects a gradient that was not summed over a broadcast axis, `needs_values`
    that forward cannot be run on shapes alone. `is_summed` runs backward again, and says whether a gradient has another
    shape than its input, to which the framework sums it. `updated` are the names of the tensors that forward wrote
    into.
    """

    outputs: "tuple[NDArray[Any], ...]" = ()
    differentiable: tuple[bool, ...] = ()
    error: BaseException | None = None
    gradients: "tuple[NDArray[Any] | None, ...] | None" = None
    backward_error: BaseException | None = None
    lacks_a_sum: bool = False
    needs_values: bool = False
    is_summed: Callable[[], bool] = bool
    updated: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """True where forward returned at least one tensor."""
        return self.error is None and bool(self.outputs)

    def equals(self, other: "Trial") -> bool:
        """Whether both have the same bits in outputs of the same shapes."""
        import numpy as np

        pairs = zip(self.outputs, other.outputs, strict=False)
        return len(self.outputs) == len(other.outputs) and all(np.array_equal(a, b) for a, b in pairs)

    def agrees(self, other: "Trial") -> bool:
        """Whether both returned, and the same outputs up to rounding."""
        import numpy as np

        if not (self.ok and other.ok) or len(self.outputs) != len(other.outputs):
            return False
        pairs = zip(self.outputs, other.outputs, strict=True)
        return all(a.shape == b.shape and np.allclose(a, b, _SAME, _SAME, equal_nan=True) for a, b in pairs)


def parameters_of(function: Callable[..., Any], *, skip: int) -> tuple[Parameter, ...]:
    """The parameters of `function`, without the first `skip` (ctx, or a class method's class)."""
    return listed_parameters(signature_of(function).parameters, skip=skip)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """What a call of `function` is bound by.

    A wrapper that passes on whatever it takes has the signature of what it wraps (`functools.wraps`); one with
    parameters of its own has these, whatever it wraps. Raises ValueError or TypeError where there is none.
    """
    own = _own_signature(function)
    wrapped = getattr(function, "__wrapped__", None)
    if callable(wrapped) and (own is None or _passes_on(own)):
        return signature_of(wrapped)
    return inspect.signature(function) if own is None else own


def outer_parameters(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a wrapper that has the signature of what it wraps; empty for any other callable.

    It may add arguments of its own to those that it is called with, so that it can be called with fewer.
    """
    own = _own_signature(function)
    follows = own is not None and callable(getattr(function, "__wrapped__", None)) and _passes_on(own)
    return listed_parameters(own.parameters, skip=0) if own is not None and follows else ()


def takes_keywords(function: Callable[..., Any]) -> bool:
    """Whether a call of `function` may name arguments that are no parameters of it: it ends in `**keywords`."""
    try:
        kinds = [parameter.kind for parameter in signature_of(function).parameters.values()]
    except (TypeError, ValueError):
        return False
    return inspect.Parameter.VAR_KEYWORD in kinds


def _own_signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def _passes_on(signature: inspect.Signature) -> bool:
    return any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in signature.parameters.values())


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
        annotation=None if annotation is empty else _written(annotation),
        variadic=parameter.kind is inspect.Parameter.VAR_POSITIONAL,
        keyword_only=parameter.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _written(annotation: Any) -> str:
    """An annotation as text; `Optional[float]` has a `__name__` too, which leaves out the number."""
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else inspect.formatannotation(annotation)
