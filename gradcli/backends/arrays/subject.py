"""What the backends for functions of plain arrays share: a function at its arguments, and its maps on flat vectors."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Counters, FloatArray, ForwardCall, Layout
from gradcli.backends.executed_lines import LineCounts, lines_run
from gradcli.backends.given_inputs import Home
from gradcli.backends.guard import Session, are_ordinary, generators_restored
from gradcli.backends.orders import noise_of_gradient, space_of, spaces_of_order
from gradcli.backends.spaces import SpacedSubject
from gradcli.backends.tensor.call_records import OtherCalls
from gradcli.backends.tensor.framework import Framework, double_precision, same_values
from gradcli.cases import Argument
from gradcli.errors import UsageError
from gradcli.frozen import dataclass
from gradcli.numerics.maps.space import Space
from gradcli.numerics.maps.vector_map import Effort, VectorMap
from gradcli.targets import TargetInfo
from gradcli.watchdog.case import Distance

Arrays = list[NDArray[Any]]
Gradients = tuple[NDArray[Any] | None, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Derivatives:
    """A map and its claimed derivative on lists of arrays, one for each block.

    `pull_back` takes several sets of cotangents at once and returns a list of gradients for each. `trips` counts those
    through compiled loops, which run no line of Python; None where there are no such loops.
    """

    value: Callable[[Arrays], Sequence[NDArray[Any]]]
    pull_back: Callable[[Arrays, Sequence[Arrays]], Sequence[Sequence[NDArray[Any]]]]
    trips: Callable[[Arrays], int | None] | None = None


@final
class ArrayMap(VectorMap):
    """Derivatives of the user's code as a map on flat vectors, run under the guard `running` of their subject.

    `home` are the inputs, where they were asked for.
    """

    def __init__(
        self,
        derivatives: Derivatives,
        running: "Running",
        domain: Space,
        codomain: Space,
        *,
        phase: str,
        lower: "ArrayMap | None" = None,
        home: Home | None = None,
    ) -> None:
        self._home = home
        self._has_claimed = False
        self._lower = lower
        self.domain = domain
        self.codomain = codomain
        self._derivatives = derivatives
        self._guard = running
        self._phase = phase

    def _running(self, x: FloatArray, *, claim: bool = False) -> AbstractContextManager[None]:
        """The guard of a call at x. The first that asks for gradients is at the inputs asked for."""
        asked = claim and self._home is not None and not self._has_claimed
        self._has_claimed = self._has_claimed or claim
        return self._guard(asked=asked, distance=None if self._home is None else partial(self._home.farthest, [x]))

    def value(self, x: FloatArray) -> FloatArray:
        """The map at `x`, shape (codomain.size,). Raises UserCodeError."""
        try:
            with self._running(x):
                return self.codomain.flatten(list(self._derivatives.value(list(self.domain.unflatten(x)))))
        except (Exception, SystemExit) as error:
            raise user_code_error(error, self._phase) from error

    def effort(self, x: FloatArray) -> Effort:
        """The lines of the user's code that the map runs at `x`, and how often; of compiled loops, the trips."""
        if self._derivatives.trips is not None:
            with self._running(x):
                trips = self._derivatives.trips(list(self.domain.unflatten(x)))
            if trips is not None:
                return Effort(lines={"iterations of compiled loops": trips})
        return lines_run(lambda: self.value(x))

    def value_noise(self, x: FloatArray) -> FloatArray | None:
        """What rounding of the lower order's values leaves in a gradient, None at order 1."""
        return super().value_noise(x) if self._lower is None else noise_of_gradient(self._lower, x)

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """The claimed gradient of <cotangent, map> at `x`, shape (domain.size,). Raises UserCodeError."""
        row: FloatArray = self.vjp_many(x, np.asarray(cotangent)[None])[0]
        return row

    def vjp_many(self, x: FloatArray, cotangents: FloatArray) -> FloatArray:
        """The claimed gradients for several cotangents (k, m), shape (k, n). Raises UserCodeError."""
        rows = [list(self.codomain.unflatten(row)) for row in cotangents]
        try:
            with self._running(x, claim=True):
                found = self._derivatives.pull_back(list(self.domain.unflatten(x)), rows)
                return np.array([self.domain.flatten(list(gradients)) for gradients in found])
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "backward") from error


class Running(Protocol):
    """Opens the context in which the user's code runs."""

    def __call__(
        self, *, silent: bool = True, asked: bool | None = None, distance: Distance | None = None
    ) -> AbstractContextManager[None]:
        """The context; `asked` says whether it runs at inputs that were asked for, the subject's own without it."""
        ...


class ArraySubject(SpacedSubject):
    """A function of arrays bound to arguments; the user's code always gets copies of them.

    Inputs of a lower precision are raised to 64 bits. `asked` says whether the arguments were asked for.
    """

    def __init__(
        self, framework: Framework, info: TargetInfo, arguments: Sequence[Argument], *, asked: bool = True
    ) -> None:
        self.asked = asked
        for argument in arguments:
            if argument.sparsity is not None:
                raise UsageError(
                    f"{argument.name}: the {framework.name} backend takes dense inputs only, got a sparse one"
                )
        self.framework = framework
        self.info = info
        self.arguments = tuple(raised(argument) for argument in with_input(arguments))
        self._low = tuple(a.dtype_name for a, wide in zip(arguments, self.arguments, strict=True) if _is_lower(a, wide))
        self.active = tuple(i for i, a in enumerate(self.arguments) if a.is_tensor and a.requires_grad)
        self.counters = Counters()

    @property
    def low_dtypes(self) -> tuple[str, ...]:
        """The dtypes of tensors that were given in a lower precision than 64 bits."""
        return self._low

    @abstractmethod
    def running(
        self, *, silent: bool = True, asked: bool | None = None, distance: Distance | None = None
    ) -> AbstractContextManager[None]:
        """The context in which the user's code runs, at the subject's own arguments unless `asked` says otherwise."""

    @abstractmethod
    def forward(self, values: dict[int, NDArray[Any]]) -> tuple[tuple[NDArray[Any], ...], dict[int, NDArray[Any]]]:
        """Run the function at these values of the tensors: its outputs, and the tensors as they are afterwards."""

    @abstractmethod
    def gradients(self, cotangents: Arrays, *, values: dict[int, NDArray[Any]], times: int = 1) -> list[Gradients]:
        """Gradients of the active inputs at these values, from forward and backward, `times` times in a row."""

    @abstractmethod
    def interleaved(self, cotangents: Arrays, between: Callable[[], bool]) -> Gradients | None:
        """Gradients, with `between` called after forward and before backward; None if it returns False."""

    @abstractmethod
    def run_at(self, arguments: Sequence[Argument]) -> None:
        """Run forward at other arguments, which may be of other sizes."""

    def settle(self) -> None:
        """Run forward for the first time and take the spaces from what it returns. Raises UserCodeError."""
        outputs, _ = self._guarded_forward(silent=False)
        self._numbers = tuple(n for n, output in enumerate(outputs) if output.dtype.kind in "fc")
        names = [f"output{n}" if n else "output" for n in self._numbers]
        self._codomain = space_of(names, [outputs[n] for n in self._numbers])
        self.activate(self.active)

    def activate(self, positions: Sequence[int]) -> None:
        """Take the inputs at these positions for the active ones."""
        self.active = tuple(positions)
        names = [self.arguments[i].name for i in self.active]
        self._domain = space_of(names, [self.arguments[i].value for i in self.active])

    def session(self, *, lazy: bool = False) -> AbstractContextManager[Session]:
        """Keep the random generators over many calls."""
        return generators_restored(self.framework, lazy=lazy)

    def map_of(self, derivatives: Derivatives, order: int, lower: ArrayMap | None = None) -> ArrayMap:
        """These derivatives as the map of `order`; `lower` is the map of the order below, whose gradient it is."""
        domain, codomain = spaces_of_order(order, self._domain, self._codomain)
        phase = "forward" if order == 1 else "backward"
        home = Home.of(self) if self.asked else None
        return ArrayMap(derivatives, self.running, domain, codomain, phase=phase, lower=lower, home=home)

    def values(self, layout: Layout = Layout.CONTIGUOUS) -> dict[int, NDArray[Any]]:
        """Fresh copies of the tensors among the arguments, by position; the active ones lie in memory as asked."""
        return {
            i: laid_out(a.value, layout if i in self.active else Layout.CONTIGUOUS)
            for i, a in enumerate(self.arguments)
            if a.is_tensor
        }

    def call(self) -> ForwardCall:
        """Run forward once, and say which inputs it changed in place."""
        outputs, after = self._guarded_forward(silent=True)
        return ForwardCall(
            outputs=outputs,
            differentiable=tuple(output.dtype.kind in "fc" for output in outputs),
            changed_inputs=tuple(
                i for i, v in after.items() if not same_values(v, np.asarray(self.arguments[i].value))
            ),
        )

    def line_counts(self) -> LineCounts:
        """How often a call runs each line of the user's code. Raises UserCodeError."""
        with self.framework.stepwise():
            return super().line_counts()

    def backward(self, cotangents: Sequence[NDArray[Any] | None]) -> Gradients:
        """Gradients of the active inputs. Raises UserCodeError."""
        return self._guarded_gradients(cotangents)[0]

    def backward_laid_out(
        self, cotangents: Sequence[NDArray[Any] | None], *, inputs: Layout, outputs: Layout
    ) -> Gradients:
        """Gradients, with inputs and cotangents laid out in memory as asked. Raises UserCodeError."""
        return self._guarded_gradients(cotangents, inputs=inputs, outputs=outputs)[0]

    def backward_twice(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[Gradients, Gradients]:
        """Gradients of two backward passes after one forward. Raises UserCodeError."""
        first, second = self._guarded_gradients(cotangents, times=2)
        return first, second

    def backward_interleaved(
        self, cotangents: Sequence[NDArray[Any] | None], sets: Sequence[OtherCalls]
    ) -> Iterator[Gradients | None]:
        """Gradients, with other calls of forward between forward and backward; a forward for each, without a graph."""
        for others in sets:
            between = partial(others.run_one, self._run_raised)
            try:
                with self.running():
                    found = self.interleaved(self.materialised(cotangents), between)
            except (Exception, SystemExit) as error:
                raise user_code_error(error, "backward") from error
            yield found

    def _run_raised(self, arguments: Sequence[Argument]) -> None:
        given = tuple(raised(argument) for argument in arguments)
        with self.running(asked=False, distance=Home.of(self).to([given[i].value for i in self.active])):
            self.run_at(given)

    def materialised(self, cotangents: Sequence[NDArray[Any] | None], layout: Layout = Layout.CONTIGUOUS) -> Arrays:
        """Fresh copies of the cotangents, zeros for None."""
        blocks = self._codomain.blocks
        return [
            laid_out(np.zeros(block.shape, block.dtype) if c is None else np.asarray(c), layout)
            for block, c in zip(blocks, cotangents, strict=True)
        ]

    def _guarded_forward(self, *, silent: bool) -> tuple[tuple[NDArray[Any], ...], dict[int, NDArray[Any]]]:
        self.counters.forward += 1
        try:
            with self.running(silent=silent):
                return self.forward(self.values())
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "forward") from error

    def _guarded_gradients(
        self,
        cotangents: Sequence[NDArray[Any] | None],
        *,
        inputs: Layout = Layout.CONTIGUOUS,
        outputs: Layout = Layout.CONTIGUOUS,
        times: int = 1,
    ) -> list[Gradients]:
        if inputs is not Layout.CONTIGUOUS:
            self._require_forward(inputs)
        self.counters.forward += 1
        self.counters.backward += times
        try:
            with self.running(asked=self.asked and are_ordinary(cotangents)):
                return self.gradients(self.materialised(cotangents, outputs), values=self.values(inputs), times=times)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "backward") from error

    def _require_forward(self, layout: Layout) -> None:
        """Run forward alone, so that an error in forward is reported as such."""
        try:
            with self.running():
                self.forward(self.values(layout))
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "forward") from error


def raised(argument: Argument) -> Argument:
    """The argument in 64-bit precision where it is a tensor of a lower one."""
    if not argument.is_tensor or argument.value.dtype.kind not in "fc":
        return argument
    wanted = double_precision(str(argument.value.dtype))
    return argument if wanted == str(argument.value.dtype) else replace(argument, value=argument.value.astype(wanted))


def _is_lower(given: Argument, wide: Argument) -> bool:
    return given.is_tensor and given.value.dtype != wide.value.dtype


def with_input(arguments: Sequence[Argument]) -> list[Argument]:
    """The arguments; where none is a floating array, Python's own floats are the inputs rather than constants."""
    if any(a.is_tensor and a.value.dtype.kind in "fc" for a in arguments):
        return list(arguments)
    return [a if a.is_tensor else replace(number(a.name, a.value), keyword=a.keyword, fixed=a.fixed) for a in arguments]


def number(name: str, value: object) -> Argument:
    """The argument that a number with a fraction is as an input; any other value is a constant."""
    if isinstance(value, float | complex):
        return Argument(name=name, value=np.array(value), is_tensor=True, requires_grad=True)
    return Argument(name=name, value=value, is_tensor=False)


def laid_out(array: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """A copy of an array that lies in memory as asked: in every other place of a buffer, or with its axes reversed.

    Nobody expands one number for a NumPy function, whose arrays could not be written to then: that is a plain copy.
    """
    if layout is Layout.STRIDED and array.ndim:
        return np.stack([array, -array], -1)[..., 0]
    if layout is Layout.TRANSPOSED and array.ndim > 1:
        return np.array(array, order="F")
    return np.array(array)


def adopted(name: str, value: object) -> Argument:
    """A caller's own value as an argument: arrays and NumPy's numbers are tensors."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.array(value)
        if array.dtype.kind in "biufc":
            return Argument(name=name, value=array, is_tensor=True, requires_grad=array.dtype.kind in "fc")
    return Argument(name=name, value=value, is_tensor=False)
