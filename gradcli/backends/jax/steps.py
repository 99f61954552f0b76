"""What a jaxpr shows: whether it has loops, the operands of a scan, and the lowest precision it computes in."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

_LOOPS = frozenset({"while", "scan", "cond"})
"""What JAX compiles when it is called outside of a compiled function, for every function object that it is given."""


def loops_of(function: Callable[..., Any], *tensors: Any) -> list[int]:
    """The loops and branches of JAX's that a function runs: the length of each scan, which a fori_loop is too, else 0.

    There are none in a function that cannot be traced.
    """
    try:
        loops = [step for step in _steps(function, *tensors) if step.primitive.name in _LOOPS]
    except Exception:  # what keeps it from being traced shows wherever it is called
        return []
    return [step.params.get("length", 0) for step in loops]


def roundoff_inside(function: Callable[..., Any], *tensors: Any) -> float:
    """The unit roundoff of the lowest precision that a function computes in."""
    import jax

    roundoff = 2.0**-53
    for step in _steps(function, *tensors):
        kinds = [v.aval.dtype for v in step.outvars if jax.numpy.issubdtype(v.aval.dtype, jax.numpy.inexact)]
        roundoff = max([roundoff, *(float(jax.numpy.finfo(kind).eps) / 2 for kind in kinds)])
        roundoff = max(roundoff, 2.0 ** -(step.params.get("mantissa_bits", 52) + 1))
    return roundoff


def scan_counts(parameters: Mapping[str, Any]) -> tuple[int, int]:
    """The number of constants and of carried arrays among the operands of a scan, from the equation's parameters."""
    if "num_consts" in parameters:
        return parameters["num_consts"], parameters["num_carry"]
    constants, carried, _ = parameters["ft_in"].unpack()  # from JAX 0.11
    return len(constants.vals), len(carried.vals)


def jaxprs_of(step: Any) -> list[Any]:
    """The jaxprs inside an equation: its loop's body, its branches, the function that it calls."""
    body = body_kept_as_function(step)
    closed = [*([] if body is None else [body]), *jaxprs_among(step.params)]
    return [getattr(jaxpr, "jaxpr", jaxpr) for jaxpr in closed]


def jaxprs_among(parameters: Mapping[str, Any]) -> list[Any]:
    """The jaxprs in an equation's parameters, those that are closed with their constants."""
    from jax.extend import core

    kinds = (core.ClosedJaxpr, core.Jaxpr)  # the same from JAX 0.11
    values = [v for p in parameters.values() for v in (p if isinstance(p, tuple | list) else (p,))]
    return [v for v in values if isinstance(v, kinds)]


def body_kept_as_function(step: Any) -> Any | None:
    """The closed jaxpr of an equation that keeps a function, as custom_root does from JAX 0.11; None of any other."""
    import jax

    if step.primitive.name != "call_hi_primitive":
        return None
    run = partial(step.primitive.to_lojax, **step.params)
    return jax.make_jaxpr(run)(*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in step.invars))


def _steps(function: Callable[..., Any], *tensors: Any) -> Iterator[Any]:
    """The equations of a function's jaxpr, and of those inside it."""
    import jax

    pending = [jax.make_jaxpr(function)(*tensors).jaxpr]
    while pending:
        for step in pending.pop().eqns:
            yield step
            pending += jaxprs_of(step)
