"""Loops and branches that JAX lowers and compiles once for all calls, and not again in each call."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, final

import numpy as np

from gradcli.backends.jax.custom_rules import kind_of_rule
from gradcli.backends.jax.steps import jaxprs_among

_KEPT = 64
"""Programs; a function under check runs a handful of loops, at a handful of shapes."""


@contextlib.contextmanager
def loops_compiled_once() -> Iterator[None]:
    """Run a loop outside of compiled functions with the program that was compiled for an equal loop before.

    JAX finds the program of a `while_loop`, `scan` or `cond` by the identity of its body. A body that is defined inside
    a function is another object in every call, and lowering and compiling it again takes most of the call's time
    (130 ms instead of 20 for a fixed point and its adjoint).
    """
    from jax.extend.core.primitives import cond_p, scan_p, while_p

    loops = (while_p, scan_p, cond_p)
    before = [loop.impl for loop in loops]
    try:
        for loop, impl in zip(loops, before, strict=True):
            loop.def_impl(partial(_PROGRAMS.run, loop, impl))
        yield
    finally:
        for loop, impl in zip(loops, before, strict=True):
            loop.def_impl(impl)


@final
class _Programs:
    """Compiled loops by what they compute; the ones used last are kept."""

    def __init__(self) -> None:
        self._programs: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()

    def run(self, loop: Any, impl: Callable[..., Any], *operands: Any, **parameters: Any) -> Any:
        """The results of a loop; `impl` is how JAX runs it."""
        import jax

        if jax.config.jax_disable_jit or _closes_over_arrays(parameters):
            return impl(*operands, **parameters)
        key = (loop, _parameters(parameters), tuple(jax.typeof(x) for x in operands))
        try:
            known = key in self._programs
        except TypeError:  # a parameter without a hash
            return impl(*operands, **parameters)
        if not known:
            self._programs[key] = jax.jit(lambda *given: loop.bind(*given, **parameters))
            if len(self._programs) > _KEPT:
                self._programs.popitem(last=False)
        self._programs.move_to_end(key)
        return self._programs[key](*operands)


_PROGRAMS = _Programs()


def _closes_over_arrays(parameters: Mapping[str, Any]) -> bool:
    """Whether a jaxpr in these parameters, or one inside it, closes over arrays, which may change."""
    return any(
        getattr(jaxpr, "consts", ()) or any(_closes_over_arrays(step.params) for step in jaxpr.eqns)
        for jaxpr in jaxprs_among(parameters)
    )


def _parameters(parameters: Mapping[str, Any]) -> Hashable:
    """Parameters of an equation, equal for equal computations: jaxprs by their equations, all else as JAX compares it.

    Functions are equal only to themselves, such as those that callbacks call.
    """
    return tuple((name, _parameter(parameters[name])) for name in sorted(parameters))


def _parameter(value: Any) -> Hashable:
    if isinstance(value, tuple | list):
        return tuple(map(_parameter, value))
    return _computation(value) if jaxprs_among({"": value}) else value


def _computation(jaxpr: Any) -> Hashable:
    """What a jaxpr computes: its equations, with variables numbered in their order."""
    from jax.extend import core

    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    numbers: dict[Any, int] = {}

    def read(variable: Any) -> Hashable:
        if isinstance(variable, core.Literal):
            return (variable.aval, np.asarray(variable.val).tobytes())
        return numbers[variable]

    def write(variables: Any) -> Hashable:
        numbers.update({variable: len(numbers) + i for i, variable in enumerate(variables)})
        return tuple(variable.aval for variable in variables)

    given = write(jaxpr.invars)
    steps = tuple(
        (step.primitive, _evaluated(step), tuple(map(read, step.invars)), write(step.outvars)) for step in jaxpr.eqns
    )
    return (given, steps, tuple(map(read, jaxpr.outvars)))


def _evaluated(step: Any) -> Hashable:
    """The parameters of an equation that its value depends on: not the derivative that a custom rule holds."""
    rule = kind_of_rule(step) is not None and "call_jaxpr" in step.params
    return _parameter(step.params["call_jaxpr"]) if rule else _parameters(step.params)
