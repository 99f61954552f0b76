"""Plain NumPy as a backend: a function, and the derivative that somebody wrote for it by hand."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.arrays.subject import ArrayMap, Arrays, ArraySubject, Derivatives, Gradients, adopted
from gradcli.backends.arrays.trees import expanded
from gradcli.backends.base import Backend, RawBackward, RawGradient, Subject
from gradcli.backends.documentation import documentation_of
from gradcli.backends.guard import generators_restored, users_code
from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.numpy.pairs import PairCaller, UnfitGradientError
from gradcli.backends.numpy.placements import TREES
from gradcli.backends.tensor.framework import Framework, same_values
from gradcli.cases import Argument
from gradcli.errors import TargetError, UsageError, counted
from gradcli.targets import Parameter, TargetInfo, Trial, outer_parameters, parameters_of, takes_keywords
from gradcli.watchdog.case import Distance


@final
class NumpyFramework(Framework):
    """NumPy's conversions; it has no random generators beyond those that every framework's guard resets."""

    name = "numpy"

    @property
    def namespace(self) -> ModuleType:
        """numpy."""
        return np

    def is_tensor(self, value: object) -> bool:
        """Whether `value` is an array."""
        return isinstance(value, np.ndarray)

    def to_array(self, tensor: Any) -> NDArray[Any]:
        """A copy."""
        return np.array(tensor)

    def dtype_name(self, tensor: Any) -> str:
        """The dtype's name."""
        return str(tensor.dtype)

    def from_array(self, array: NDArray[Any], dtype: str | None = None) -> Any:
        """A copy."""
        return np.array(array, dtype=dtype)

    def seed_generators(self, seed: int) -> None:
        """Nothing: NumPy's legacy generator is reset by the guard, and others belong to the user."""

    def generator_states(self) -> object:
        """Nothing to keep."""
        return None

    def restore_generators(self, states: object) -> None:
        """Nothing to restore."""


@final
class NumpyBackend(Backend):
    """Functions of arrays with a hand-written gradient, Jacobian or vjp."""

    name = "numpy"

    def __init__(self) -> None:
        self.framework = NumpyFramework()

    def claims(self, target: object) -> bool:
        """Whether the target is a function with its hand-written derivative."""
        return isinstance(target, GradientPair)

    def is_complete(self, target: object) -> bool:
        """Whether it has a derivative of its own; a function alone is asked for (value, gradient) when it is run."""
        return isinstance(target, GradientPair)

    def describe(self, target: object) -> TargetInfo:
        """The function's parameters, and both functions for their source."""
        pair = pair_of(target)
        try:
            parameters = parameters_of(pair.function, skip=0)
        except (TypeError, ValueError):
            parameters = (Parameter(name="x"),)
        sample_inputs = getattr(pair.function, "sample_inputs", None)
        return TargetInfo(
            has_autodiff=False,
            name=_name_of(pair),
            backend=self.name,
            parameters=parameters,
            forward=inspect.unwrap(pair.function),
            backward=None if pair.gradient is None else inspect.unwrap(pair.gradient),
            sample_inputs=sample_inputs if callable(sample_inputs) else None,
            once_differentiable=True,
            outer=outer_parameters(pair.function),
            takes_keywords=takes_keywords(pair.function),
            documentation=documentation_of(inspect.unwrap(pair.function)),
        )

    def attempt(self, target: object, arguments: Sequence[Argument], *, gradients: bool = False) -> Trial:
        """Run the function once, silently; and its derivative, if asked.

        Raises:
            UsageError: the function runs, and neither returns (value, gradient) nor comes with a derivative.
        """
        arguments = expanded(arguments, TREES)
        pair = pair_of(target)
        caller = PairCaller(pair, _name_of(pair), arguments)
        values = {i: np.array(a.value) for i, a in enumerate(arguments) if a.is_tensor}
        try:
            with users_code(self.framework, silent=True):
                outputs = caller.outputs(caller.run(values))
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            return Trial(error=error)
        differentiable = tuple(output.dtype.kind in "fc" for output in outputs)
        if not gradients or not any(differentiable):
            updated = frozenset(arguments[i].name for i, v in values.items() if not same_values(v, arguments[i].value))
            return Trial(outputs=outputs, differentiable=differentiable, updated=updated)
        try:
            with users_code(self.framework, silent=True, forward=0):
                found = caller.tried(outputs, values)
        except (Exception, SystemExit) as error:
            if isinstance(error, UnfitGradientError) and error.lacks_a_sum:
                return Trial(outputs=outputs, differentiable=differentiable, lacks_a_sum=True)
            return Trial(outputs=outputs, differentiable=differentiable, backward_error=error)
        return Trial(outputs=outputs, differentiable=differentiable, gradients=found)

    def bind(self, target: object, arguments: Sequence[Argument], *, info: TargetInfo | None = None) -> Subject:
        """The pair at these arguments. Raises UserCodeError, and UsageError where there is no derivative."""
        given = expanded(arguments, TREES)
        return NumpySubject(self.framework, info or self.describe(target), pair_of(target), given)

    def session(self, *, lazy: bool = True) -> AbstractContextManager[object]:
        """Without `lazy`, each call is seeded; else each call restores the generators itself, as outside."""
        return nullcontext() if lazy else generators_restored(self.framework)

    def adopt(self, values: Sequence[object]) -> tuple[Argument, ...]:
        """Arguments from arrays and Python values."""
        return tuple(adopted(f"arg{n}", value) for n, value in enumerate(values))


def _name_of(pair: GradientPair) -> str:
    return getattr(pair.function, "__qualname__", type(pair.function).__name__)


def pair_of(target: object) -> GradientPair:
    """The target as a pair; a function alone is held to return (value, gradient)."""
    if isinstance(target, GradientPair):
        return target
    if not callable(target):
        raise TargetError(f"expected a function of NumPy arrays, got {type(target).__name__}: {target!r:.80}")
    return GradientPair(function=target, gradient=None)


@final
class NumpySubject(ArraySubject):
    """A function and its derivative at arguments. Active are the inputs for which the derivative returns something."""

    def __init__(
        self,
        framework: Framework,
        info: TargetInfo,
        pair: GradientPair,
        arguments: Sequence[Argument],
        *,
        asked: bool = True,
        needed: Sequence[int] | None = None,
    ) -> None:
        super().__init__(framework, info, arguments, asked=asked)
        self._pair = pair
        self._keeps_state, self._takes_state = pair.keeps_state, pair.takes_state
        self._caller = PairCaller(pair, info.name, self.arguments, needed)
        self.settle()
        self.activate(self._spoken_of())

    def running(
        self, *, silent: bool = True, asked: bool | None = None, distance: Distance | None = None
    ) -> AbstractContextManager[None]:
        """Generators kept, floating-point warnings off."""
        asked = self.asked if asked is None else asked
        return users_code(self.framework, silent=silent, asked=asked, distance=distance)

    def forward(self, values: dict[int, NDArray[Any]]) -> tuple[tuple[NDArray[Any], ...], dict[int, NDArray[Any]]]:
        """The outputs, and the arrays passed as they are afterwards."""
        return self._caller.outputs(self._caller.run(values)), values

    def gradients(self, cotangents: Arrays, *, values: dict[int, NDArray[Any]], times: int = 1) -> list[Gradients]:
        """Forward, then the derivative."""
        made: list[Gradients] = []
        outputs: Sequence[NDArray[Any]] = ()
        for number in range(times):
            if number == 0 or self._takes_state:
                outputs, _ = self.forward({i: v.copy(order="K") for i, v in values.items()})
            made += self._derived(values, outputs, [cotangents])
        return made

    def interleaved(self, cotangents: Arrays, between: Callable[[], bool]) -> Gradients | None:
        """Forward, then `between`, then the derivative; None where it belongs to the last call on an object."""
        if self._keeps_state:
            return None
        outputs, _ = self.forward(self.values())
        return self._derived(self.values(), outputs, [cotangents])[0] if between() else None

    def run_at(self, arguments: Sequence[Argument]) -> None:
        """The function alone."""
        self.counters.forward += 1
        caller = PairCaller(self._pair, self.info.name, arguments)
        caller.run({i: np.array(a.value) for i, a in enumerate(arguments) if a.is_tensor})

    @property
    def first_order_only(self) -> str:
        """The reason, which holds for every derivative in NumPy."""
        return "NumPy cannot differentiate the derivative"

    def derivative_map(self, order: int) -> ArrayMap:
        """The function with its derivative. Raises ValueError above order 1: NumPy differentiates nothing."""
        if order != 1:
            raise ValueError(f"a NumPy derivative cannot be differentiated: expected order=1, got order={order}")
        return self.map_of(Derivatives(value=self._value, pull_back=self._pull_back), order)

    def body_map(self, order: int) -> None:
        """None: NumPy does not differentiate."""

    def raw_backward(self, cotangents: Sequence[NDArray[Any] | None], *, again: bool = False) -> RawBackward:  # noqa: ARG002
        """Call the derivative by hand, and say what it returned and what it changed."""
        values, seeds = self.values(), self.materialised(cotangents)
        self.counters.forward += 1
        self.counters.backward += 1
        try:
            with self.running():
                outputs, _ = self.forward(self.values())
                returned = self._caller.derivative(values, outputs, seeds)
                found, floating = self._caller.read(returned), [outputs[n] for n in self.output_numbers]
                if isinstance(found, int):
                    return RawBackward(
                        container=f"{counted(found, 'gradient')} for {counted(len(self.arguments), 'argument')}",
                        advice=self._caller.advice(returned, floating, self.materialised(cotangents)),
                        sums_down=False,
                    )
                gradients = self._raw(found, floating, self.materialised(cotangents))
        except (Exception, SystemExit) as error:
            return RawBackward(error=error)
        before = self.materialised(cotangents)
        return RawBackward(
            gradients=gradients,
            changed_cotangents=tuple(n for n, c in enumerate(seeds) if not same_values(c, before[n])),
            changed_inputs=tuple(i for i, v in values.items() if not same_values(v, self.arguments[i].value)),
            sums_down=False,
        )

    def rebind(self, arguments: Sequence[Argument]) -> "NumpySubject":
        """The same pair at other arguments."""
        needed = self._caller.needed  # another call of the same derivative, which returns gradients for the same inputs
        other = NumpySubject(self.framework, self.info, self._pair, arguments, asked=False, needed=needed)
        other.counters = self.counters
        return other

    def _spoken_of(self) -> tuple[int, ...]:
        """The active inputs that the derivative returns something for; all of them if it raises."""
        try:
            with self.running():
                outputs, _ = self.forward(self.values())
                nothing = self.materialised([None] * len(self.output_numbers))
                returned = self._caller.derivative(self.values(), outputs, nothing)
                found = self._caller.read(returned)
                self.readings = self._caller.readings_of(returned)
        except (Exception, SystemExit):
            return self.active
        return self.active if isinstance(found, int) else tuple(i for i in self.active if i in found)

    def _derived(
        self, values: dict[int, NDArray[Any]], outputs: Sequence[NDArray[Any]], rows: Sequence[Arrays]
    ) -> list[Gradients]:
        """The gradients for each row of cotangents; a vjp is called for each, any other derivative once."""
        floating = [outputs[n] for n in self.output_numbers]
        made: list[Gradients] = []
        found: dict[int, object] = {}
        for number, row in enumerate(rows):
            if number and self._takes_state:
                self.forward({i: v.copy(order="K") for i, v in values.items()})
            if self._caller.is_vjp or number == 0:
                fresh = {i: v.copy(order="K") for i, v in values.items()}
                returned = self._caller.derivative(fresh, outputs, [np.copy(c, order="K") for c in row])
                found = self._caller.placed(returned)
            made.append(tuple(self._caller.gradient(found, i, floating, row) for i in self.active))
        return made

    def _value(self, blocks: Arrays) -> Sequence[NDArray[Any]]:
        self.counters.forward += 1
        outputs, _ = self.forward(self._at(blocks))
        return [outputs[n] for n in self.output_numbers]

    def _pull_back(self, blocks: Arrays, cotangents: Sequence[Arrays]) -> Sequence[Sequence[NDArray[Any]]]:
        self.counters.backward += len(cotangents)
        outputs, _ = self.forward(self._at(blocks))
        found = self._derived(self._at(blocks), outputs, cotangents)
        shapes = [block.shape for block in self.domain.blocks]
        return [[np.zeros(s) if g is None else g for g, s in zip(row, shapes, strict=True)] for row in found]

    def _at(self, blocks: Arrays) -> dict[int, NDArray[Any]]:
        return {**self.values(), **{i: np.array(b) for i, b in zip(self.active, blocks, strict=True)}}

    def _raw(
        self, found: dict[int, object], outputs: Sequence[NDArray[Any]], cotangents: Arrays
    ) -> tuple[RawGradient, ...]:
        nothing = RawGradient(is_none=True, is_tensor=False, shape=None, dtype=None, value=None, type_name="NoneType")
        made = []
        for position, argument in enumerate(self.arguments):
            returned = found.get(position)
            floating = argument.is_tensor and argument.value.dtype.kind in "fc"
            if returned is None or not floating:
                made.append(nothing)
                continue
            claim = self._caller.claim(returned, position, outputs, cotangents)
            shape = claim.value.shape if claim.fits else np.asarray(returned).shape
            real = claim.fits and argument.value.dtype.kind == "f"
            value = claim.value.real if real else claim.value
            made.append(
                RawGradient(
                    is_none=False,
                    is_tensor=True,
                    shape=shape,
                    dtype=str(returned.dtype if isinstance(returned, np.ndarray) else value.dtype),
                    value=value,
                    type_name=type(returned).__name__,
                )
            )
        return tuple(made)
