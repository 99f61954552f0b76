"""The rule that a user defined for a JAX function: custom_vjp, custom_jvp or custom_gradient, and what it was given."""

import ast
import inspect
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from gradcli.backends.arrays.transforms import Rule
from gradcli.errors import TargetError
from gradcli.sources import returned_by, source_of, tree_of

_RULES = ("custom_vjp", "custom_jvp")


def rule_of(target: object) -> Any | None:
    """The custom_vjp or custom_jvp object behind a target: itself, or what jit wraps."""
    seen: Any = target
    while seen is not None and not inspect.isfunction(seen):
        kind = type(seen)
        if kind.__module__.startswith("jax.") and kind.__name__ in _RULES:
            return seen
        seen = getattr(seen, "__wrapped__", None)
    return None


def is_vjp(rule: Any) -> bool:
    """Whether it is a custom_vjp."""
    return type(rule).__name__ == "custom_vjp"


def rule_is_defined(rule: Any) -> bool:
    """Whether defvjp or defjvp was called on it."""
    return (rule.bwd if is_vjp(rule) else rule.jvp) is not None


def require_definition(rule: Any, name: str) -> None:
    """Raise TargetError if the function called `name` has no rule yet."""
    if not rule_is_defined(rule):
        define = "defvjp(fwd, bwd)" if is_vjp(rule) else "defjvp(rule)"
        raise TargetError(
            f"{name} is a {type(rule).__name__} function without a rule, so there is nothing to check: call {define} "
            "on it"
        )


def rules_of(rule: Any | None) -> tuple[Callable[..., Any] | None, ...]:
    """The rules that defjvps was given, one for each argument; none for any other rule."""
    if rule is None or is_vjp(rule) or not inspect.isfunction(rule.jvp):
        return ()
    given = inspect.getclosurevars(rule.jvp).nonlocals.get("jvps")
    return tuple(given) if isinstance(given, tuple) else ()


def function_of(rule: Any) -> Any:
    """The user's function that has the rule."""
    whole = with_gradient(rule)
    return rule.fun if whole is None else whole


def with_gradient(rule: Any) -> Callable[..., Any] | None:
    """What jax.custom_gradient was given, a function that returns its value and its gradient; None for other rules."""
    held = rule.fun
    if not inspect.isfunction(held) or not held.__qualname__.startswith("custom_gradient."):
        return None
    whole: Callable[..., Any] | None = inspect.getclosurevars(held).nonlocals.get("fun")
    return whole


def _gradient_inside(whole: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function inside another one that this returns as its gradient, for its source; None where there is not one.

    It is made anew by each call, so what is returned here has its code and none of the values that it uses.
    """
    if not inspect.isfunction(whole):
        return None
    last = [value.elts[-1] for value in returned_by(tree_of(source_of(whole))) if isinstance(value, ast.Tuple)]
    names = {value.id if isinstance(value, ast.Name) else "<lambda>" for value in last}
    codes = [each for each in whole.__code__.co_consts if isinstance(each, CodeType)]
    found = [code for code in codes if code.co_name in names] or [c for c in codes if c.co_name == "<lambda>"]
    if len(found) != 1:
        return None
    return FunctionType(found[0], whole.__globals__, None, None, tuple(CellType() for _ in found[0].co_freevars))


def backward_of(rule: Any | None) -> Callable[..., Any] | None:
    """The user's function to look at: bwd, or what defjvp was given."""
    if rule is None:
        return None
    if (whole := with_gradient(rule)) is not None:
        return _gradient_inside(inspect.unwrap(whole))
    own: Any = rule.bwd if is_vjp(rule) else None if rules_of(rule) else rule.jvp
    return inspect.unwrap(own) if callable(own) else None


def saving_of(rule: Any | None) -> Callable[..., Any] | None:
    """The user's fwd, which returns what bwd is given beside the output."""
    is_written = rule is not None and is_vjp(rule) and with_gradient(rule) is None
    return inspect.unwrap(rule.fwd) if rule is not None and is_written and callable(rule.fwd) else None


def fixed_positions(rule: Any | None) -> tuple[int, ...]:
    """The positions of arguments that are not differentiated: its nondiff_argnums."""
    return () if rule is None else tuple(rule.nondiff_argnums or ())


def rule_from(rule: Any) -> Rule:
    """The user's rule; a bwd that takes symbolic zeros cannot be called directly."""
    if not is_vjp(rule):
        return Rule(primal=rule.fun, forward=rule.jvp, fixed=fixed_positions(rule))
    backward = None if rule.symbolic_zeros else rule.bwd
    return Rule(primal=rule.fun, forward=rule.fwd, backward=backward, fixed=fixed_positions(rule))
