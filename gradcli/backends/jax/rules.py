"""The rule that a user defined for a JAX function: custom_vjp or custom_jvp, and what it was given."""

import inspect
from collections.abc import Callable
from typing import Any

from gradcli.backends.arrays.transforms import Rule
from gradcli.errors import TargetError

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


def backward_of(rule: Any | None) -> Callable[..., Any] | None:
    """The user's function to look at: bwd, or what defjvp was given."""
    if rule is None:
        return None
    own: Any = rule.bwd if is_vjp(rule) else None if rules_of(rule) else rule.jvp
    return inspect.unwrap(own) if callable(own) else None


def saving_of(rule: Any | None) -> Callable[..., Any] | None:
    """The user's fwd, which returns what bwd is given beside the output."""
    return inspect.unwrap(rule.fwd) if rule is not None and is_vjp(rule) and callable(rule.fwd) else None


def fixed_positions(rule: Any | None) -> tuple[int, ...]:
    """The positions of arguments that are not differentiated: its nondiff_argnums."""
    return () if rule is None else tuple(rule.nondiff_argnums or ())


def rule_from(rule: Any) -> Rule:
    """The user's rule; a bwd that takes symbolic zeros cannot be called directly."""
    if not is_vjp(rule):
        return Rule(primal=rule.fun, forward=rule.jvp, fixed=fixed_positions(rule))
    backward = None if rule.symbolic_zeros else rule.bwd
    return Rule(primal=rule.fun, forward=rule.fwd, backward=backward, fixed=fixed_positions(rule))
