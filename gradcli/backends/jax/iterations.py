"""The number of iterations of a function's while loops, which shows whether it stops earlier at other inputs."""

from collections.abc import Callable, Sequence
from typing import Any

from gradcli.backends.jax.steps import body_kept_as_function, jaxprs_of, scan_counts

_CALLS = {
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "eval_jaxpr",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
}
"""Steps of a jaxpr that stand for the steps of the one inside them."""


def trips_of(function: Callable[..., Any], *tensors: Any) -> Callable[..., Any] | None:
    """A compiled function of the same arguments that gives the number of trips through all while loops.

    A compiled loop runs no line of Python, and run step by step outside of the compiler it takes a thousand times as
    long. The function's jaxpr is run with a counter in the state of every loop instead.

    Args:
        function: takes and returns arrays.
        tensors: arrays of the shapes that it will be called with.

    Returns:
        None for a function without such loops, or one that cannot be traced.
    """
    import jax

    try:
        traced = jax.make_jaxpr(function)(*tensors)
    except Exception:  # what keeps it from being traced shows wherever it is called
        return None
    if not _has_while(traced.jaxpr):
        return None
    counted: Callable[..., Any] = jax.jit(lambda *given: _run(traced.jaxpr, traced.consts, given)[1])
    return counted


def _has_while(jaxpr: Any) -> bool:
    return any(
        step.primitive.name == "while" or any(_has_while(inner) for inner in jaxprs_of(step)) for step in jaxpr.eqns
    )


def _run(jaxpr: Any, constants: Sequence[Any], given: Sequence[Any]) -> tuple[list[Any], Any]:
    """The outputs of a jaxpr, and the trips through its loops."""
    import jax.numpy as jnp
    from jax.extend import core

    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *given], strict=True))
    trips: Any = jnp.int32(0)

    def read(variable: Any) -> Any:
        return variable.val if isinstance(variable, core.Literal) else known[variable]

    for step in jaxpr.eqns:
        found, more = _step(step, [read(variable) for variable in step.invars])
        trips = trips + more
        known.update(zip(step.outvars, found, strict=True))
    return [read(variable) for variable in jaxpr.outvars], trips


def _step(step: Any, given: list[Any]) -> tuple[Sequence[Any], Any]:
    name, parameters = step.primitive.name, step.params
    if name == "while" or any(_has_while(inner) for inner in jaxprs_of(step)):
        if name == "while":
            return _while(parameters, given)
        if name == "scan":
            return _scan(parameters, given)
        if name == "cond":
            return _cond(parameters, given)
        if (body := body_kept_as_function(step)) is not None:
            return _run(body.jaxpr, body.consts, given)
        if name in _CALLS:
            inner = parameters.get("jaxpr", parameters.get("call_jaxpr"))
            return _run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given)
    bound = step.primitive.get_bind_params(parameters)
    functions, bound = bound if isinstance(bound, tuple) else ((), bound)  # functions stood beside until JAX 0.9
    found = step.primitive.bind(*functions, *given, **bound)
    return (found if step.primitive.multiple_results else [found]), 0


def _while(parameters: dict[str, Any], given: list[Any]) -> tuple[Sequence[Any], Any]:
    import jax
    import jax.numpy as jnp

    first, second = parameters["cond_nconsts"], parameters["cond_nconsts"] + parameters["body_nconsts"]
    condition, body = parameters["cond_jaxpr"], parameters["body_jaxpr"]

    def going(state: Any) -> Any:
        return _run(condition.jaxpr, condition.consts, [*given[:first], *state[1:]])[0][0]

    def trip(state: Any) -> Any:
        found, inner = _run(body.jaxpr, body.consts, [*given[first:second], *state[1:]])
        goes = going(state)  # under vmap for each entry of the batch: the others keep their values
        kept = (
            [
                jnp.where(jnp.expand_dims(goes, tuple(range(goes.ndim, new.ndim))), new, old)
                for new, old in zip(found, state[1:], strict=True)
            ]
            if goes.ndim
            else found
        )
        return (state[0] + 1 + inner, *kept)

    trips, *found = jax.lax.while_loop(lambda state: jnp.any(going(state)), trip, (jnp.int32(0), *given[second:]))
    return found, trips


def _scan(parameters: dict[str, Any], given: list[Any]) -> tuple[Sequence[Any], Any]:
    import jax

    body, (first, carried) = parameters["jaxpr"], scan_counts(parameters)
    second = first + carried

    def trip(state: Any, row: Any) -> Any:
        found, inner = _run(body.jaxpr, body.consts, [*given[:first], *state[1:], *row])
        return (state[0] + inner, *found[:carried]), found[carried:]

    start = (jax.numpy.int32(0), *given[first:second])
    how = {name: parameters[name] for name in ("length", "reverse", "unroll")}
    (trips, *found), rows = jax.lax.scan(trip, start, given[second:], **how)
    return [*found, *rows], trips


def _cond(parameters: dict[str, Any], given: list[Any]) -> tuple[Sequence[Any], Any]:
    import jax

    def run(branch: Any) -> Callable[..., Any]:
        return lambda *values: _with_trips(*_run(branch.jaxpr, branch.consts, values))

    trips, *found = jax.lax.switch(given[0], [run(branch) for branch in parameters["branches"]], *given[1:])
    return found, trips


def _with_trips(found: Sequence[Any], trips: Any) -> tuple[Any, ...]:
    import jax.numpy as jnp

    return (jnp.int32(trips), *found)
