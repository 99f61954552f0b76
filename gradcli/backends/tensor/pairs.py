"""A forward function and the backward function written for it, joined to one Function."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, final

from gradcli.backends.tensor.framework import Framework
from gradcli.errors import UsageError, counted
from gradcli.frozen import dataclass


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A forward and a backward as two functions, as kernels are often written before a Function wraps them.

    `saved` names what backward needs beside the gradients of the results: arguments of forward, and values that forward
    returns after its results, in the order in which they are returned.
    """

    forward: Callable[..., Any]
    backward: Callable[..., Any]
    saved: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of forward."""
        return _called(self.forward)

    def require_cotangent(self) -> None:
        """Raise UsageError where backward takes no gradients of forward's results, or a value is saved twice."""
        if twice := [name for number, name in enumerate(self.saved) if name in self.saved[:number]]:
            raise UsageError(
                f"--saved lists {twice[0]} twice: expected each name once, in the order in which "
                f"{self.name} returns these values after its outputs"
            )
        taken = _names(self.backward)
        if taken and set(taken) <= {*_names(self.forward), *self.saved}:
            raise UsageError(
                f"{_called(self.backward)} takes only {', '.join(taken)}: expected the gradient of {self.name}'s "
                "output, such as grad_output, before these parameters"
            )

    @property
    def extra(self) -> tuple[str, ...]:
        """The names of the values that forward returns after its results."""
        return tuple(name for name in self.saved if name not in _names(self.forward))

    def split(self, returned: Any) -> tuple[Any, tuple[Any, ...]]:
        """What forward returned as its results, one or a tuple, and the values that backward needs.

        Raises:
            UsageError: fewer values were returned than `saved` names.
        """
        count = len(self.extra)
        if not count:
            return returned, ()
        if not isinstance(returned, tuple | list) or len(returned) <= count:
            found = f"{len(returned)} values" if isinstance(returned, tuple | list) else type(returned).__name__
            raise UsageError(
                f"--saved lists {', '.join(self.extra)}: expected {_called(self.forward)} to return its outputs and "
                f"then {', '.join(self.extra)}, got {found}"
            )
        results = tuple(returned[:-count])
        return (results if len(results) > 1 else results[0]), tuple(returned[-count:])

    def call_backward(self, cotangents: Sequence[Any], inputs: Sequence[Any], extra: Sequence[Any]) -> Any:
        """What backward returns for the gradients of the results.

        Its parameters are known by their names where each is an argument of forward, a saved value, or one of as many
        others as there are results. Else the gradients of the results come first, then what `saved` names, or every
        argument of forward.
        """
        known = dict(zip(_names(self.forward), inputs, strict=False)) | dict(zip(self.extra, extra, strict=True))
        named = _by_name(self.backward, known, cotangents)
        if named is not None:
            return self.backward(*named)
        self._require_fit(len(cotangents))
        return self.backward(*cotangents, *([known[name] for name in self.saved] if self.saved else inputs))

    def _require_fit(self, outputs: int) -> None:
        """Raise UsageError where backward has other parameters than forward, and not one for each of the `outputs`."""
        known = {*_names(self.forward), *self.extra}
        strange = [name for name in _names(self.backward) if name not in known]
        counts = [len(self.saved)] if self.saved else range(_required(self.forward), len(_names(self.forward)) + 1)
        if len(strange) == outputs or any(_takes(self.backward, outputs + count) for count in counts):
            return
        raise UsageError(
            f"{_called(self.backward)}({', '.join(_names(self.backward))}) cannot be called as the backward of "
            f"{self.name}({', '.join(_names(self.forward))}): it must have {counted(outputs, 'parameter')} for the "
            f"gradients of the outputs, and all others must have the names of {self.name}'s parameters or of --saved; "
            f"it has {counted(len(strange), 'other parameter')}{': ' * bool(strange)}{', '.join(strange)}"
        )


_OF_A_GRADIENT = re.compile(r"grad|^g|^d|cot|^ct|bar$")
MARK = "written_apart"
"""The attribute of a joined target that holds its pair."""


def spread(returned: Any, is_floating: Sequence[bool]) -> tuple[Any, ...]:
    """The gradients, one for each argument, where they were returned for the floating tensors among them alone."""
    found = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    if len(found) == len(is_floating) or len(found) != sum(is_floating):
        return found
    left = iter(found)
    return tuple(next(left) if floating else None for floating in is_floating)


def joined(pair: Pair, framework: Framework) -> type:
    """A Function of a framework of PyTorch's shape that calls the two functions, differentiable once."""
    autograd = framework.namespace.autograd

    def is_floating(value: object) -> bool:
        return framework.is_tensor(value) and framework.is_differentiable(value)

    def forward(ctx: Any, *inputs: Any) -> Any:
        results, extra = pair.split(pair.forward(*inputs))
        values = (*inputs, *extra)
        ctx.save_for_backward(*(value for value in values if framework.is_tensor(value)))
        ctx.others = tuple(None if framework.is_tensor(value) else (value,) for value in values)
        ctx.count = len(inputs)
        return results

    def backward(ctx: Any, *cotangents: Any) -> Any:
        tensors = iter(ctx.saved_tensors)
        values = [next(tensors) if other is None else other[0] for other in ctx.others]
        inputs = values[: ctx.count]
        found = pair.call_backward(cotangents, inputs, values[ctx.count :])
        gradients = spread(found, [is_floating(value) for value in inputs])
        left_out = (None,) * (len(_names(pair.forward)) - len(inputs)) if len(gradients) == len(inputs) else ()
        return *gradients, *left_out

    body = {
        "forward": staticmethod(shown_as(pair.forward, forward, first=("ctx",))),
        "backward": staticmethod(
            autograd.function.once_differentiable(shown_as(pair.backward, backward, first=("ctx",)))
        ),
        "__module__": getattr(pair.forward, "__module__", None) or __name__,
        "__doc__": pair.forward.__doc__,
        MARK: pair,
    }
    if callable(samples := getattr(pair.forward, "sample_inputs", None)):
        body["sample_inputs"] = staticmethod(samples)
    return type(_called(pair.forward), (autograd.Function,), body)


def shown_as(function: Callable[..., Any], method: Any, *, first: tuple[str, ...] = ()) -> Any:
    """`method`, which shows the source and the signature of `function`, after the parameters `first`."""
    method.__wrapped__ = function
    method.__name__ = method.__qualname__ = _called(function)
    added = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in first]
    try:
        method.__signature__ = inspect.Signature([*added, *inspect.signature(function).parameters.values()])
    except (TypeError, ValueError):  # compiled code may have none
        method.__signature__ = inspect.signature(method, follow_wrapped=False)
    return method


def _by_name(function: Callable[..., Any], known: dict[str, Any], cotangents: Sequence[Any]) -> list[Any] | None:
    """The arguments of `function` by its parameters' names; None where the names do not say which is which."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        return None
    required = [p.name for p in parameters if p.name in known or p.default is p.empty]
    left = iter(cotangents)
    if sum(name not in known for name in required) != len(cotangents):
        return None
    if required != [p.name for p in parameters[: len(required)]]:
        return None
    if len(cotangents) > 1:
        _require_gradients([name for name in required if name not in known])
    return [known[name] if name in known else next(left) for name in required]


def _require_gradients(names: Sequence[str]) -> None:
    """Refuse names that are not those of gradients: forward may return them for backward, and nobody said so."""
    if strange := [name for name in names if not _OF_A_GRADIENT.search(name.lower())]:
        raise UsageError(
            f"backward takes {', '.join(strange)}, which gradcli can match neither to an argument of forward nor to "
            f"the gradient of one of its {len(names)} outputs. If forward returns these values for backward, give "
            f"--saved {','.join(strange)}"
        )


def _names(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def _required(function: Callable[..., Any]) -> int:
    """How many arguments a function cannot be called without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    return sum(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many values in order; yes where it has no signature."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # as of compiled code
        return True
    return True


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
