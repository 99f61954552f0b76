"""The custom rules that the equations of a jaxpr call: whose they are, and the function with its rule by itself."""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

from gradcli.backends.attribution import is_users_file

_RULES = {"custom_vjp_call": "custom_vjp", "custom_vjp_call_jaxpr": "custom_vjp", "custom_jvp_call": "custom_jvp"}
_DEEPEST = 10


def kind_of_rule(equation: Any) -> str | None:
    """The kind of custom rule that an equation calls; None for any other equation."""
    return _RULES.get(equation.primitive.name)


def name_of_rule(equation: Any) -> str:
    """What the function that has the rule is called, "" where that is not known."""
    own = equation.params.get("name") or _debug_info(equation)
    return own if isinstance(own, str) else str(getattr(own, "func_name", "") or "")


def shown_name(equation: Any) -> str:
    """An equation as reports name it: the primitive, or the kind of its rule and the function that has it."""
    kind = kind_of_rule(equation)
    if "_prim" in equation.params:  # one of JAX's own functions that it keeps whole from 0.11 on, such as custom_root
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(equation.params["_prim"]).__name__).lower()
    return str(equation.primitive.name) if kind is None else f"{kind} {name_of_rule(equation)}".strip()


def is_users_rule(equation: Any) -> bool:
    """Whether an equation calls a custom rule that the user wrote."""
    if kind_of_rule(equation) is None:
        return False
    source = str(getattr(_debug_info(equation), "func_src_info", None) or "")
    place = source.rpartition(" at ")[2].rpartition(":")[0]
    return is_users_file(place) if place else rule_of_equation(equation) is not None


def rule_of_equation(equation: Any) -> FunctionType | None:
    """The user's own bwd, or what defjvp was given, behind what JAX wrapped it in."""
    wrapped = next((equation.params[key] for key in ("bwd", "jvp_jaxpr_fun") if key in equation.params), None)
    return next(_users_functions(wrapped, _DEEPEST), None)


def _users_functions(value: object, deepest: int) -> Iterator[FunctionType]:
    if not deepest:
        return
    if isinstance(value, FunctionType):
        if is_users_file(value.__code__.co_filename):
            yield value
            return
        for name, held in inspect.getclosurevars(value).nonlocals.items():
            if name != "fun":  # the function, not its rule
                yield from _users_functions(held, deepest - 1)
    elif isinstance(value, tuple):
        for held in value:
            yield from _users_functions(held, deepest - 1)
    else:
        yield from _users_functions(getattr(value, "f", None), deepest - 1)


def _debug_info(equation: Any) -> Any:
    inner = equation.params.get("call_jaxpr")
    return getattr(getattr(inner, "jaxpr", None), "debug_info", None)


def function_of(held: Sequence[Any], places: Sequence[int], run: Callable[..., Any]) -> Callable[..., Any]:
    """An equation as a function of the operands at `places`; the others keep the values that are `held`."""

    def function(*values: Any) -> Any:
        made = run(*_whole(held, places, values))
        return made[0] if len(made) == 1 else tuple(made)

    names = [inspect.Parameter(f"arg{n}", inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in range(len(places))]
    function.__signature__ = inspect.Signature(names)  # type: ignore[attr-defined]
    return function


def _whole(held: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    given = list(held)
    for place, value in zip(places, values, strict=True):
        given[place] = value
    return given


def function_with_rule(
    equation: Any, variables: Sequence[Any], held: Sequence[Any], places: Sequence[int], run: Callable[..., Any]
) -> Any:
    """A custom_vjp function of the operands at `places`: the equation's function, and its rule as JAX applies it.

    Args:
        equation: the call.
        variables: what it takes, each once.
        held: their values.
        places: those of them that gradients go to.
        run: the call as a function of all variables.
    """
    import jax
    from jax.extend import core

    inner = core.jaxpr_as_fun(equation.params["call_jaxpr"])
    ruled = function_of(held, places, run)

    def primal(*values: Any) -> Any:
        known = dict(zip(variables, _whole(held, places, values), strict=True))
        made = inner(*(v.val if hasattr(v, "val") else known[v] for v in equation.invars))
        return made[0] if len(made) == 1 else tuple(made)

    def forward(*values: Any) -> tuple[Any, tuple[Any, ...]]:
        return ruled(*values), values

    def backward(values: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
        return tuple(jax.vjp(ruled, *values)[1](cotangent))

    primal.__signature__ = _signature(equation, [variables[n] for n in places])  # type: ignore[attr-defined]
    primal.__name__ = primal.__qualname__ = name_of_rule(equation) or "function"
    made = jax.custom_vjp(primal)
    made.defvjp(forward, backward)
    return made


def _signature(equation: Any, taken: Sequence[Any]) -> inspect.Signature:
    """The names of the user's parameters where JAX knows them, argument by argument."""
    own = getattr(_debug_info(equation), "arg_names", None) or ()
    data = equation.invars[equation.params.get("num_consts", 0) :]
    positions = {variable: place for place, variable in enumerate(data) if not hasattr(variable, "val")}
    names: list[str] = []
    for place, variable in enumerate(taken):
        position = positions.get(variable, len(own))
        name = str(own[position]) if position < len(own) else ""
        names.append(name if name.isidentifier() and name not in names else f"arg{place}")
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
