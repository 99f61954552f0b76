"""What the engine's and PyTorch's backends share: recognising targets, calling them once, and binding them."""

import difflib
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.arrays.trees import expanded
from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Backend, Counters, Subject
from gradcli.backends.documentation import documentation_of
from gradcli.backends.guard import generators_restored, users_code
from gradcli.backends.origin import Origin, function_origin
from gradcli.backends.tensor.bound import BoundFunction
from gradcli.backends.tensor.call_records import Call
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.captured_tensors import Own, OwnCall, bound_to_own
from gradcli.backends.tensor.containers import ContainerCall, Containers
from gradcli.backends.tensor.framework import Framework, same_values
from gradcli.backends.tensor.inspection import Inspector
from gradcli.backends.tensor.maps import pullback
from gradcli.backends.tensor.modules import ModuleCall, held_arrays, is_lazy, is_module
from gradcli.backends.tensor.pairs import Pair, joined
from gradcli.backends.tensor.precision_and_layout import in_64_bits
from gradcli.backends.tensor.raw_backward import sums_gradients
from gradcli.cases import Argument
from gradcli.errors import OverrunError, TargetError, UsageError, UserCodeError
from gradcli.targets import (
    Parameter,
    TargetInfo,
    Trial,
    listed_parameters,
    outer_parameters,
    parameters_of,
    signature_of,
    takes_keywords,
)

_MISSPELT = 0.85
"""From this similarity on (by difflib), another name is taken for a misspelt one: backwards has 0.94, and backward_fn,
which may be a helper, 0.84."""


class FunctionBackend(Backend):
    """A backend for a framework of PyTorch's shape."""

    @property
    @abstractmethod
    def framework(self) -> Framework:
        """The framework; imports it."""

    @abstractmethod
    def function_base(self) -> type:
        """The framework's autograd Function class; imports the framework."""

    def joined(self, pair: Pair) -> object:
        """A Function that calls both."""
        return joined(pair, self.framework)

    def is_complete(self, target: object) -> bool:
        """Whether forward and backward (or vjp) are both defined."""
        owner = self.function_class(target)
        if owner is None or not self._overrides(owner, "forward"):
            return False
        return self._overrides(owner, "backward") or self._overrides(owner, "vjp")

    def is_misspelt(self, owner: type) -> bool | None:
        """Whether a Function class that is not complete has a misspelt forward or backward.

        None for a class that others build on: it has subclasses, or neither a forward nor a backward.
        """
        if self.function_class(owner) is None or owner.__subclasses__():
            return None
        has_backward = self._overrides(owner, "backward") or self._overrides(owner, "vjp")
        own = {"forward": self._overrides(owner, "forward"), "backward": has_backward}
        misspelt = any(not has and close_to(name, owner, cutoff=_MISSPELT) for name, has in own.items())
        return misspelt if misspelt or any(own.values()) else None

    def describe(self, target: object) -> TargetInfo:
        """Parameters of forward (without ctx) and the functions behind the target."""
        function_class = self.function_class(target)
        if function_class is None and is_module(self.framework, target):
            return self._describe_module(target)
        if function_class is None:
            return self._describe_callable(target)
        forward = static_method(function_class, "forward")
        setup = (
            static_method(function_class, "setup_context") if self._overrides(function_class, "setup_context") else None
        )
        if forward is None or not self._overrides(function_class, "forward"):
            close = close_to("forward", function_class, cutoff=0.7)
            raise TargetError(
                f"{function_class.__name__} defines no forward: expected `forward(ctx, ...)`, or `forward(...)` with "
                f"`setup_context(ctx, inputs, output)`{f'; it defines {close!r}' if close else ''}"
            )
        overrides_vjp = self._overrides(function_class, "vjp")
        backward = static_method(function_class, "vjp" if overrides_vjp else "backward")
        if not overrides_vjp and not self._overrides(function_class, "backward"):
            raise TargetError(_no_backward(function_class))
        sample_inputs = getattr(function_class, "sample_inputs", None)
        return TargetInfo(
            name=function_class.__name__,
            backend=self.name,
            parameters=_parameters(forward, skip=_bound_class(function_class, "forward") + (setup is None)),
            forward=inspect.unwrap(forward),
            backward=None if backward is None else inspect.unwrap(backward),
            sample_inputs=sample_inputs if callable(sample_inputs) else None,
            setup_context=setup,
            once_differentiable="once_differentiable" in _qualified_name(backward),
            has_jvp=self._overrides(function_class, "jvp"),
            jvp=static_method(function_class, "jvp") if self._overrides(function_class, "jvp") else None,
            vmap=self.vmap_rule(function_class),
            documentation=documentation_of(function_class),
        )

    def attempt(self, target: object, arguments: Sequence[Argument], *, gradients: bool = False) -> Trial:
        """Run forward once, silently, with generators restored; an error is that at the arguments' own precision."""
        function, given = self._taken_apart(target, arguments)
        raised, low = in_64_bits(given)
        inspector = Inspector(self.framework, self.origin(target) if gradients else None)
        trial = self._trial(Caller(self.framework, function, raised), inspector, gradients=gradients)
        if trial.error is None or not low:
            return trial
        casting = Caller(self.framework, function, raised, casts=low)
        return self._trial(casting, inspector, gradients=gradients)

    def _trial(self, caller: Caller, inspector: Inspector, *, gradients: bool) -> Trial:
        arguments = caller.arguments
        tracked = [i for i, a in enumerate(arguments) if a.is_tensor and a.requires_grad]
        try:
            with users_code(self.framework, silent=True, recording=True):
                call = caller.run(caller.leaves(tracked))
                outputs = [o for o in call.outputs if self.framework.is_tensor(o)]
                arrays = tuple(self.framework.to_array(o) for o in outputs)
                differentiable = tuple(bool(o.requires_grad) for o in outputs)
                updated = frozenset() if gradients else self._updated(caller, call)
        except (Exception, SystemExit) as error:
            return Trial(error=error)
        if not gradients or not any(differentiable):
            return Trial(outputs=arrays, differentiable=differentiable, updated=updated)
        try:
            with users_code(self.framework, silent=True, forward=0):
                found = self._gradients(call, outputs)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            return Trial(outputs=arrays, differentiable=differentiable, backward_error=error)
        is_summed = partial(sums_gradients, self.framework, inspector, caller, tracked)
        return Trial(outputs=arrays, differentiable=differentiable, gradients=found, is_summed=is_summed)

    def _updated(self, caller: Caller, call: Call) -> frozenset[str]:
        """The names of the arguments that forward wrote into."""
        as_array, found = self.framework.as_array, set[str]()
        for position, tensor in enumerate(call.passed):
            if self.framework.is_tensor(tensor):
                before = as_array(caller.given(position, call.leaves))
                if not same_values(as_array(tensor), before):
                    found.add(caller.arguments[position].name)
        return frozenset(found)

    def bind(self, target: object, arguments: Sequence[Argument], *, info: TargetInfo | None = None) -> Subject:
        """The target at these arguments."""
        known, origin = info or self.describe(target), self.origin(target)
        function, given = self._taken_apart(target, arguments)
        if any(a.keyword and not a.name.isidentifier() for a in given):  # a leaf, as `xs[0]`
            origin = None  # a gradient of a container cannot be held against its leaves by hand
        own = {i: a.own for i, a in enumerate(given) if a.own is not None and a.requires_grad}

        def bound(reached: Own) -> Subject:
            if not reached:
                bind = partial(BoundFunction, self.framework, known, function, origin, given)
                return _taking_backward(bind(), bind)
            call = OwnCall(self.framework, function, given, reached)
            return BoundFunction(self.framework, known, call, None, given)

        return bound_to_own(bound, own)

    def _taken_apart(
        self, target: object, arguments: Sequence[Argument]
    ) -> tuple[Callable[..., Any], tuple[Argument, ...]]:
        """What to call and its arguments, with containers of tensors taken apart, except those of a Function."""
        function = self._callable(target)
        if self.function_class(target) is not None:
            return function, tuple(arguments)
        trees = Containers(self.framework, self.adopted, kept=[a.own for a in arguments if a.own is not None])
        given = expanded(arguments, trees, by_keyword=True)
        return ContainerCall(function, given, trees), given

    def session(self, *, lazy: bool = True) -> AbstractContextManager[object]:
        """In a lazy one nothing is seeded until a number is drawn; binding repeats its own first call if one is."""
        return generators_restored(self.framework, lazy=lazy)

    def origin(self, target: object) -> Origin | None:
        """The rule that a target tests; None for a callable, which may use several Functions or none."""
        function_class = self.function_class(target)
        if function_class is None:
            return None
        splits = self._overrides(function_class, "setup_context")
        return function_origin(self.framework, function_class, splits_setup=splits)

    def adopt(self, values: Sequence[object]) -> tuple[Argument, ...]:
        """Arguments from tensors (their own requires_grad is respected), arrays and Python values."""
        return tuple(self.adopted(f"arg{number}", value) for number, value in enumerate(values))

    def function_class(self, target: object) -> type | None:
        """The Function class behind a target: itself, or the owner of a bound `apply`."""
        if inspect.isclass(target) and issubclass(target, self.function_base()):
            return target
        owner = getattr(target, "__self__", None)
        if (
            getattr(target, "__name__", "") == "apply"
            and inspect.isclass(owner)
            and issubclass(owner, self.function_base())
        ):
            return owner
        return None

    def adopted(self, name: str, value: object) -> Argument:
        """The argument that a caller's own value is."""
        if self.framework.is_tensor(value):
            tensor: Any = value
            return Argument(
                name=name,
                value=self.framework.to_array(tensor),
                is_tensor=True,
                requires_grad=bool(tensor.requires_grad),
                dtype="bfloat16" if self.framework.dtype_name(tensor) == "bfloat16" else None,
                own=tensor,
            )
        if isinstance(value, np.ndarray):
            floating = value.dtype.kind in "fc"
            return Argument(name=name, value=value.copy(), is_tensor=True, requires_grad=floating)
        return Argument(name=name, value=value, is_tensor=False)

    def _gradients(self, call: Call, outputs: Sequence[Any]) -> tuple[NDArray[Any] | None, ...]:
        ones = [self.framework.namespace.ones_like(output) for output in outputs]
        found = pullback(self.framework, Counters(), outputs, list(call.leaves.values()), ones)
        return tuple(None if g is None else self.framework.to_array(g) for g in found)

    def _callable(self, target: object) -> Callable[..., Any]:
        function_class = self.function_class(target)
        if function_class is not None:
            apply: Callable[..., Any] = function_class.apply  # type: ignore[attr-defined]
            return apply
        if is_module(self.framework, target) and not inspect.isclass(target):
            return ModuleCall(self.framework, target)
        if not callable(target):
            raise TargetError(f"expected a Function class or a callable, got {type(target).__name__}")
        return target

    def constructor(self, target: object) -> TargetInfo | None:
        """For a class of modules what has to be given to make one; None for anything else."""
        if not inspect.isclass(target) or not is_module(self.framework, target):
            return None
        parameters = parameters_of(target.__init__, skip=1)
        return TargetInfo(name=target.__name__, backend=self.name, parameters=parameters, forward=None, backward=None)

    def construct(self, target: object, keywords: Mapping[str, Any]) -> object:
        """An instance of a class, initialised from seed 0."""
        kind: Any = target
        try:
            with users_code(self.framework, silent=True, asked=True, forward=0):
                made: object = kind(**keywords)
        except (Exception, SystemExit) as error:
            raise user_code_error(
                error, f"constructing {kind.__name__}({', '.join(f'{k}={v!r}' for k, v in keywords.items())})"
            ) from error
        return made

    def _describe_module(self, target: object) -> TargetInfo:
        module: Any = target
        kind: Any = module if inspect.isclass(module) else type(module)
        lazy = [] if inspect.isclass(module) else [name for name, p in module.named_parameters() if is_lazy(p)]
        if lazy:
            raise TargetError(
                f"{kind.__name__}: the parameter {lazy[0]} of a lazy module has no shape yet: call the module "
                "once on an input, right after you create it"
            )
        if not callable(inspect.getattr_static(kind, "forward")):
            raise TargetError(
                f"{kind.__name__} is a compiled module, which cannot be run with other parameters: give the Python "
                "module that it was compiled from"
            )
        own = vars(module).get("forward") if not inspect.isclass(module) else None
        sample_inputs = getattr(kind, "sample_inputs", None)
        return TargetInfo(
            name=kind.__name__,
            backend=self.name,
            parameters=parameters_of(kind.forward, skip=1) if own is None else parameters_of(own, skip=0),
            forward=inspect.unwrap(own or kind.forward),
            backward=None,
            takes_keywords=takes_keywords(own or kind.forward),
            sample_inputs=sample_inputs if callable(sample_inputs) else None,
            held=() if inspect.isclass(module) else tuple(held_arrays(self.framework, module).items()),
            documentation=documentation_of(kind),
        )

    def _describe_callable(self, target: object) -> TargetInfo:
        function = self._callable(target)
        try:
            parameters = _parameters(function, skip=0)
        except (TypeError, ValueError):
            parameters = (Parameter(name="inputs", variadic=True),)
        name = getattr(target, "__qualname__", type(target).__name__)
        return TargetInfo(
            name=name,
            backend=self.name,
            parameters=parameters,
            forward=function,
            backward=None,
            outer=outer_parameters(function),
            takes_keywords=takes_keywords(function),
        )

    def vmap_rule(self, function_class: type) -> Callable[..., Any] | None:
        """The user's vmap rule of this Function; None if it defines none."""
        return static_method(function_class, "vmap") if self._overrides(function_class, "vmap") else None

    def _overrides(self, function_class: type, name: str) -> bool:
        own = _defined(function_class, name)
        return own is not None and own is not _defined(self.function_base(), name)


def _no_backward(function_class: type) -> str:
    """What to say of a Function without a backward; a misspelt one is named."""
    close = close_to("backward", function_class, cutoff=0.7)
    hint = f": it defines {close!r}, did you mean 'backward'?" if close else ", so there is nothing to check"
    return f"{function_class.__name__} defines no backward{hint}"


def close_to(name: str, owner: type, *, cutoff: float) -> str | None:
    """The name closest to `name` that a class defines for users, itself or in a base; None where none is close."""
    names = [own for base in owner.__mro__ for own in vars(base) if own[0] != "_" and own != name]
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def _defined(owner: type, name: str) -> Any:
    """What a class or the first of its bases that does so defines under a name, unbound; None where none does."""
    for base in owner.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def static_method(owner: type, name: str) -> Callable[..., Any] | None:
    """The plain function behind a static method or a method."""
    found = _defined(owner, name)
    function = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    return function if callable(function) else None


def _bound_class(owner: type, name: str) -> int:
    """1 where the method is a class method, whose first parameter is the class; else 0."""
    return int(isinstance(_defined(owner, name), classmethod))


def _parameters(function: Callable[..., Any], *, skip: int) -> tuple[Parameter, ...]:
    """Parameters after the first `skip`, with a clear error where even those are missing."""
    total = signature_of(function).parameters
    if len(total) < skip:
        raise TargetError("forward takes no parameters: expected `forward(ctx, ...)`")
    return listed_parameters(total, skip=skip)


def _qualified_name(function: object) -> str:
    """The name in the code of a function written in Python; nothing for a built-in one, or None."""
    name: str = getattr(getattr(function, "__code__", None), "co_qualname", "")
    return name


def _taking_backward(subject: BoundFunction, bound: Callable[..., BoundFunction]) -> BoundFunction:
    """The subject; in the lower precision of its inputs where backward refuses 64 bits, as some kernels do.

    `bound` makes it anew with other options.
    """
    if not subject.low or subject.insists_on is not None or not subject.info.backward or _backward_runs(subject):
        return subject
    lower = bound(casts=subject.low, insists=True)
    return lower if _backward_runs(lower) else subject


def _backward_runs(subject: BoundFunction) -> bool:
    try:
        subject.backward(subject.codomain.unflatten(np.ones(subject.codomain.size)))
    except OverrunError:
        return True  # it was not refused; the checks say what takes so long
    except UserCodeError:
        return False
    return True
