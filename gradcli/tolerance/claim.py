"""What is checked for a function and its inputs: the Function, a function of the tracked inputs, or a lifted one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from gradcli.backends.base import Subject
from gradcli.backends.registry import backend_named
from gradcli.backends.tensor.closures import Lifted
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.cases import Argument, InputsFrom
from gradcli.errors import TargetError, UsageError
from gradcli.frozen import dataclass
from gradcli.runner.arguments.supply import given_supply
from gradcli.targets import TargetInfo
from gradcli.tolerance.problem import Problem, differentiable, is_tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A target with its arguments, ready to be bound by a backend."""

    backend: FunctionBackend
    target: Any
    name: str
    arguments: tuple[Argument, ...]
    info: TargetInfo | None = None

    def bound(self) -> Subject:
        """The target at its arguments. Raises UserCodeError."""
        return self.backend.bind(self.target, self.arguments, info=self.info)


def backend_of(problem: Problem) -> FunctionBackend:
    """The backend for a problem's tensors.

    Raises:
        TypeError: they belong to no framework of PyTorch's shape.
    """
    for name in ("engine", "torch"):
        backend = backend_named(name)
        if isinstance(backend, FunctionBackend) and backend.framework.is_tensor(problem.tracked()[0]):
            return backend
    raise TypeError(f"gradcheck expects tensors of PyTorch or of gradcli.engine, got {type(problem.tracked()[0])}")


def claims_of(problem: Problem) -> Iterator[Claim]:
    """Ways of checking a problem, the most telling first; the last one works with the caller's own tensors."""
    backend = backend_of(problem)
    if all(_is_plain(problem, value) for value in problem.inputs if is_tensor(value)):
        if backend.function_class(problem.function) is not None:
            yield from _of_function(problem, backend)
        elif not _knows_by_identity(problem):
            yield _of_tracked(problem, backend)
    yield _lifted(problem, backend)


def name_of(function: Callable[..., Any]) -> str:
    """`module:Name` of a function, without the `.apply` of a Function."""
    name = str(getattr(function, "__qualname__", type(function).__name__))
    owner = getattr(function, "__self__", None)
    if inspect.isclass(owner) and name.endswith(".apply"):
        return f"{owner.__module__}:{owner.__qualname__}"
    home = getattr(function, "__module__", None) or type(function).__module__
    return f"{home}:{name}"


def _of_function(problem: Problem, backend: FunctionBackend) -> list[Claim]:
    """The Function class with all arguments; nothing where they do not fit its parameters."""
    try:
        info = backend.describe(problem.function)
        arguments = given_supply(backend, info, [problem.inputs], InputsFrom.GIVEN).samples[0]()
    except (TargetError, UsageError):
        return []
    return [
        Claim(backend=backend, target=problem.function, name=name_of(problem.function), arguments=arguments, info=info)
    ]


def _of_tracked(problem: Problem, backend: FunctionBackend) -> Claim:
    """The function of its tracked inputs, everything else passed as it is."""

    def of_tracked(*values: Any) -> Any:
        merged = list(problem.inputs)
        for place, value in zip(problem.places, values, strict=True):
            merged[place] = value
        return problem.function(*merged)

    return _named(problem, backend, of_tracked)


def _lifted(problem: Problem, backend: FunctionBackend) -> Claim:
    function = Lifted(problem.torch, problem.tracked(), lambda: problem.function(*problem.inputs))
    return _named(problem, backend, function)


def _named(problem: Problem, backend: FunctionBackend, target: Any) -> Claim:
    names = _names(problem)
    adopted = backend.adopt(problem.tracked())
    arguments = tuple(replace(a, name=names[place]) for a, place in zip(adopted, problem.places, strict=True))
    return Claim(backend=backend, target=target, name=name_of(problem.function), arguments=arguments)


def _names(problem: Problem) -> Sequence[str]:
    """The inputs by the names of the function's parameters, by their number where it has none."""
    names = [f"input{number}" for number in range(len(problem.inputs))]
    try:
        parameters = list(inspect.signature(problem.function).parameters.values())
    except (TypeError, ValueError):
        return names
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [parameter.name for parameter in parameters if parameter.kind in kinds][: len(names)]
    return known + names[len(known) :]


def _is_plain(problem: Problem, tensor: Any) -> bool:
    """Whether a tensor is all in its values: dense, on the CPU, of no subclass."""
    if type(tensor).__name__ not in ("Tensor", "Parameter") or not str(tensor.device).startswith("cpu"):
        return False
    strided = vars(problem.torch).get("strided")
    return strided is None or tensor.layout is strided


def _knows_by_identity(problem: Problem) -> bool:
    """Whether an input reaches the outputs although a copy passed in its place does not."""
    copies = list(problem.inputs)
    for place in problem.places:
        copies[place] = problem.inputs[place].detach().clone().requires_grad_()
    own = _reached(problem, problem.inputs)
    return bool(own - _reached(problem, copies))


def _reached(problem: Problem, inputs: Sequence[Any]) -> set[int]:
    """The places whose gradient arrives; none where a gradient cannot be taken, which the check itself will tell."""
    outputs = [o for o in differentiable(problem.function(*inputs)) if o.requires_grad]
    if not outputs:
        return set()
    seeds = [problem.torch.ones_like(output.detach()) for output in outputs]
    tracked = [inputs[place] for place in problem.places]
    try:
        found = problem.torch.autograd.grad(outputs, tracked, seeds, allow_unused=True)
    except Exception:
        return set()
    return {place for place, gradient in zip(problem.places, found, strict=True) if gradient is not None}
