"""PyTorch's operators as targets: made by torch.library.custom_op, or called through torch.ops."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from gradcli.backends.origin import Origin
from gradcli.errors import TargetError
from gradcli.frozen import dataclass
from gradcli.targets import Parameter, TargetInfo, parameters_of

_GENERATED = "torch._library.autograd"
"""Where PyTorch makes the Function classes that carry the backwards registered for operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One overload of an operator, and the definition that custom_op made of it, if it did."""

    overload: Any
    definition: Any | None

    @property
    def name(self) -> str:
        """Its qualified name without an overload called default, such as demo::cube."""
        return str(self.overload.name()).removesuffix(".default")


def operator_of(target: object) -> Operator | None:
    """The operator that `target` is, None for anything else; a packet stands for its first overload."""
    kind = type(target)
    found: Any = target
    if kind.__module__ == "torch._library.custom_ops" and kind.__name__ == "CustomOpDef":
        return Operator(overload=found._opoverload, definition=found)
    if kind.__module__ != "torch._ops":
        return None
    if kind.__name__ == "OpOverloadPacket":
        found = getattr(found, found.overloads()[0])
    elif kind.__name__ != "OpOverload":
        return None
    from torch._library.custom_ops import OPDEFS

    return Operator(overload=found, definition=OPDEFS.get(str(found.name()).removesuffix(".default")))


def describe_operator(operator: Operator, backend: str) -> TargetInfo:
    """Its parameters, and the functions that were given for its body and backward.

    Raises:
        TargetError: it was made by custom_op and has no backward.
    """
    definition = operator.definition
    if definition is None:
        return TargetInfo(
            name=operator.name, backend=backend, parameters=_of_schema(operator), forward=None, backward=None
        )
    if definition._backward_fn is None:
        raise TargetError(
            f"{operator.name} has no backward, so there is nothing to check: expected one, registered with "
            "register_autograd(backward, setup_context=...)"
        )
    body = inspect.unwrap(definition._init_fn)
    return TargetInfo(
        name=operator.name,
        backend=backend,
        parameters=parameters_of(body, skip=0),
        forward=body,
        backward=inspect.unwrap(definition._backward_fn),
        setup_context=definition._setup_context_fn,
        once_differentiable="once_differentiable" in definition._backward_fn.__code__.co_qualname,
    )


def operator_origin(operator: Operator) -> Origin:
    """The Function that PyTorch generates for it, and its body, where custom_op was given one."""
    generated = "GeneratedBackwardFor_" + str(operator.overload.name()).replace("::", "_").replace(".", "_")
    whole = generated if generated.endswith(f"_{operator.overload._overloadname}") else f"{generated}_default"

    def owns(owner: type) -> bool:
        return owner.__module__ == _GENERATED and owner.__name__ == whole

    if operator.definition is None:
        return Origin(owns=owns)
    return Origin(owns=owns, body=functools.partial(_body, operator.definition._init_fn))


def registered_rule(owner: type) -> Callable[..., Any] | None:
    """The user's backward in a Function class that PyTorch generated; None for any other class."""
    if owner.__module__ != _GENERATED:
        return None
    found_rule = inspect.getattr_static(owner, "backward")
    rule = found_rule.__func__ if isinstance(found_rule, staticmethod) else found_rule
    held = inspect.getclosurevars(rule).nonlocals
    if "orig_backward" in held:  # where the operator takes lists, PyTorch wraps the one that knows the rule
        held = inspect.getclosurevars(held["orig_backward"]).nonlocals
    holder = held.get("info")
    found = getattr(holder, "_backward_fn", None)
    return found if inspect.isfunction(found) else None


def _body(function: Callable[..., Any], needs_input_grad: tuple[bool, ...]) -> Callable[..., Any]:  # noqa: ARG001
    """The body of an operator, which is given no ctx to ask."""
    return function


def _of_schema(operator: Operator) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name=argument.name,
            has_default=argument.has_default_value(),
            default=argument.default_value,
            annotation=str(argument.type),
            keyword_only=argument.kwarg_only,
        )
        for argument in operator.overload._schema.arguments
    )
