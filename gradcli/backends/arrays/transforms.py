"""A function of arrays whose framework transforms functions: bound to arguments, with derivatives of every order."""

import inspect
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.arrays.caller import ArrayCaller
from gradcli.backends.arrays.programs import Program, Variant, first_that_runs, of_order, signature
from gradcli.backends.arrays.subject import ArrayMap, Arrays, ArraySubject, Derivatives, Gradients
from gradcli.backends.arrays.trees import Trees, assembled, places_of, spread
from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Compiled, RawBackward, RawGradient
from gradcli.backends.tensor.framework import Framework
from gradcli.cases import Argument
from gradcli.errors import UserCodeError, counted
from gradcli.frozen import dataclass
from gradcli.targets import TargetInfo
from gradcli.watchdog.case import Distance

Pull = Callable[[Sequence[Any]], tuple[Any, ...]]

_AGREES = 1e-5
"""Relative: how far a rule's own forward may be from the function, computed in float32 where the user says so."""
_NOTHING = RawGradient(is_none=True, is_tensor=False, shape=None, dtype=None, value=None, type_name="NoneType")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A derivative that a user defined for a function.

    `primal` is the function under it; `forward` what computes the output where a derivative is taken; `backward` pulls
    cotangents back, None for a rule of forward mode or one that cannot be called by hand; `fixed` are the positions of
    arguments that are no data.
    """

    primal: Callable[..., Any]
    forward: Callable[..., Any]
    backward: Callable[..., Any] | None = None
    fixed: tuple[int, ...] = ()


class Transforms(Trees):
    """What a framework offers that transforms functions. Everything is called inside `running`."""

    framework: Framework

    @abstractmethod
    def running(
        self, *, silent: bool, wide: bool = True, asked: bool = False, distance: Distance | None = None
    ) -> AbstractContextManager[None]:
        """The context in which the user's code runs, in 64 bits, or in the precision that the user has set."""

    @abstractmethod
    def refuses_64_bits(self, error: BaseException) -> bool:
        """Whether a function raised `error` because it mixes 64-bit inputs with its own arrays of fewer bits."""

    @abstractmethod
    def adjoint(self, function: Callable[..., Any], *tensors: Any) -> tuple[tuple[Any, ...], Pull]:
        """The outputs of a function, and its pull-back for the real pairing Re <a, b>."""

    @abstractmethod
    def cotangent(self, output: Any, value: Any | None) -> Any:
        """The cotangent of an output as the user's rule expects it, from one for Re <a, b>; None: one of no value."""

    @abstractmethod
    def otherwise_compiled(
        self, target: Any, function: Callable[..., Any]
    ) -> AbstractContextManager[Sequence[Variant]]:
        """`function`, which calls `target`, and its gradient: compiled where that is not, and the reverse."""

    @abstractmethod
    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, to be compiled when it is first called."""

    @abstractmethod
    def constant(self, array: NDArray[Any]) -> Any:
        """An array of the framework's that holds its values also inside a function that is compiled."""

    @abstractmethod
    def key(self, array: NDArray[Any], *, typed: bool) -> Any:
        """The random keys that these numbers are, two for each."""

    @abstractmethod
    def loops_of(self, function: Callable[..., Any], *tensors: Any) -> list[int]:
        """The numbers of trips through the compiled loops of `function`, 0 where data decide; 0 for a branch too."""

    @abstractmethod
    def trips_of(self, function: Callable[..., Any], *tensors: Any) -> Callable[..., Any] | None:
        """A function that counts the trips through the compiled loops of `function`; None where it has none."""

    @abstractmethod
    def roundoff_inside(self, function: Callable[..., Any], *tensors: Any) -> float:
        """The unit roundoff of the coarsest floating-point numbers that a function computes with."""

    @abstractmethod
    def asks_for_values(self, error: BaseException) -> bool:
        """Whether a function that is run on shapes alone raised `error` because it needs values."""

    @abstractmethod
    def rehearse(self, function: Callable[..., Any], values: dict[int, Any]) -> bool:
        """Run a function on shapes alone: whether that does, or it asks for values. Raises what else it raises."""


@final
class TransformedSubject(ArraySubject):
    """A function bound to arguments, pytrees taken apart."""

    compiles_shapes = True

    def __init__(
        self,
        transforms: Transforms,
        info: TargetInfo,
        target: Any,
        rule: Rule | None,
        arguments: Sequence[Argument],
        *,
        programs: dict[Hashable, Program] | None = None,
        asked: bool = True,
    ) -> None:
        super().__init__(transforms.framework, info, arguments, asked=asked)
        self._transforms = transforms
        self._target = target
        self._rule = rule
        self._constants = places_of(self.arguments, () if rule is None else rule.fixed, transforms)
        self._caller = ArrayCaller(transforms, target, self.arguments, constants=self._constants)
        self._known_programs = {} if programs is None else programs
        self._programs: dict[tuple[bool, int], Program] = {}
        self._is_wide = True
        try:
            self.settle()
        except UserCodeError as error:
            if error.__cause__ is None or not transforms.refuses_64_bits(error.__cause__):
                raise
            self._is_wide = False
            self.settle()
        if rule is not None:
            self._require_the_rules_forward(rule)

    def running(
        self, *, silent: bool = True, asked: bool | None = None, distance: Distance | None = None
    ) -> AbstractContextManager[None]:
        """64 bits, generators kept."""
        asked = self.asked if asked is None else asked
        return self._transforms.running(silent=silent, wide=self._is_wide, asked=asked, distance=distance)

    @property
    def insists_on(self) -> str | None:
        """The precision of the whole check if forward cannot mix 64-bit inputs with its own constants."""
        return None if self._is_wide else "float32"

    def forward(self, values: dict[int, NDArray[Any]]) -> tuple[tuple[NDArray[Any], ...], dict[int, NDArray[Any]]]:
        """The outputs; jax arrays cannot be changed."""
        found = self._caller.run(values)
        to_array = self.framework.to_array
        return tuple(to_array(o) if self.framework.is_tensor(o) else np.asarray(o, dtype=object) for o in found), {}

    def gradients(self, cotangents: Arrays, *, values: dict[int, NDArray[Any]], times: int = 1) -> list[Gradients]:
        """One forward, and its pull-back `times` times."""
        pull = self._pulling(values)
        return [self._arrays(pull(self._tensors(cotangents))) for _ in range(times)]

    def interleaved(self, cotangents: Arrays, between: Callable[[], bool]) -> Gradients | None:
        """Forward, then `between`, then the pull-back of that forward."""
        pull = self._pulling(self.values())
        return self._arrays(pull(self._tensors(cotangents))) if between() else None

    def run_at(self, arguments: Sequence[Argument]) -> None:
        """The function with its rule; numbers keep the values given."""
        self._pulling({i: np.array(arguments[i].value) for i in self.values()})

    def derivative_map(self, order: int) -> ArrayMap:
        """The function, or its gradient, with JAX's derivative of it: the claim."""
        return self._map(self._caller, order)

    def body_map(self, order: int) -> ArrayMap | None:
        """The function under the rule, differentiated by JAX itself; None where that gives other values or fails."""
        return None if self._body is None else self._map(self._body, order)

    def raw_backward(self, cotangents: Sequence[NDArray[Any] | None], *, again: bool = False) -> RawBackward:  # noqa: ARG002
        """Call the rule's fwd and bwd by hand, and say what bwd returned."""
        rule = self._rule
        if rule is None or rule.backward is None:
            return RawBackward(available=False)
        self.counters.forward += 1
        self.counters.backward += 1
        try:
            with self.running():
                return self._call_rule(rule, rule.backward, self._tensors(self.materialised(cotangents)))
        except (Exception, SystemExit) as error:
            return RawBackward(error=error)

    @cached_property
    def roundoff_inside(self) -> float:
        """The unit roundoff of the coarsest numbers that forward and backward compute with, if they can be traced."""
        function, adjoint = self._caller.on(self.active, self.output_numbers, self.values()), self._transforms.adjoint
        try:
            with self.running():  # outside of it, arrays of 64 bits become ones of 32
                seeds = self._tensors(self.materialised([None] * len(self.output_numbers)))
                given = self._tensors([self.arguments[i].value for i in self.active])
                return self._transforms.roundoff_inside(lambda *tensors: adjoint(function, *tensors)[1](seeds), *given)
        except (Exception, SystemExit):  # what keeps it from being traced shows wherever it is called
            return super().roundoff_inside

    def otherwise_compiled(self, cotangents: Sequence[NDArray[Any]]) -> Compiled | None:
        """Under jit where the target is not compiled, without where it is; None where it cannot be compiled."""
        function = self._caller.on(self.active, self.output_numbers, self.values())
        try:
            with self.running(), self._transforms.otherwise_compiled(self._target, function) as variants:
                self.counters.forward += 1
                self.counters.backward += 1
                tensors = self._tensors([self.arguments[i].value for i in self.active])
                seeds = self._tensors(self.materialised(cotangents))
                outputs, gradients = (self._arrays(a) for a in first_that_runs(variants, tensors, seeds))
                return Compiled(outputs=outputs, gradients=gradients, roundoff=self.roundoff_inside)
        except (Exception, SystemExit) as error:
            if self._transforms.asks_for_values(error):
                return None
            raise user_code_error(error, "a compiled call") from error

    def rebind(self, arguments: Sequence[Argument]) -> "TransformedSubject":
        """The same function at other arguments."""
        programs = self._known_programs
        other = TransformedSubject(
            self._transforms, self.info, self._target, self._rule, arguments, programs=programs, asked=False
        )
        other.counters = self.counters
        return other

    def loops_at(self, arguments: Sequence[Argument]) -> dict[str, int]:
        """The trips through each loop of a fixed length, and through all others together."""
        other = self.rebind(arguments)
        program = other._program(other._caller, 1)
        with other.running():
            trips = program.trips(other._tensors([arguments[i].value for i in other.active]))
        found = {f"loop {number}": length for number, length in enumerate(other._loops)} | {"other loops": trips or 0}
        return {name: times for name, times in found.items() if times}

    @cached_property
    def _body(self) -> ArrayCaller | None:
        if self._rule is None or not self.active or not self._is_wide:
            return None
        body = ArrayCaller(self._transforms, self._rule.primal, self.arguments, constants=self._constants)
        try:
            with self.running():
                tensors = self._tensors([self.arguments[i].value for i in self.active])
                found, pull = self._transforms.adjoint(
                    body.on(self.active, self.output_numbers, self.values()), *tensors
                )
                pull(found)
                wanted = self._caller.run(self.values())
                same = all(_close(f, wanted[n]) for f, n in zip(found, self.output_numbers, strict=True))
        except (Exception, SystemExit):
            return None
        return body if same else None

    def _map(self, caller: ArrayCaller, order: int) -> ArrayMap:
        program = self._program(caller, order)

        def value(point: Arrays) -> Sequence[NDArray[Any]]:
            self.counters.forward += 1
            self.counters.backward += order - 1
            return self._arrays(program.value(self._tensors(point)))

        def pull_back(point: Arrays, rows: Sequence[Arrays]) -> Sequence[Sequence[NDArray[Any]]]:
            self.counters.forward += 1
            self.counters.backward += len(rows)
            pulled = program.pull_back(self._tensors(point), [self._tensors(row) for row in rows])
            return [self._arrays(gradients) for gradients in pulled]

        derivatives = Derivatives(
            value=value,
            pull_back=pull_back,
            trips=lambda point: program.trips(self._tensors(point)),
        )
        lower = self._map(caller, order - 1) if order > 1 else None
        return self.map_of(derivatives, order, lower)

    def _program(self, caller: ArrayCaller, order: int) -> Program:
        """The function of an order: compiled at most once for all subjects that differ in their active inputs alone."""
        own = caller is self._caller, order
        if own not in self._programs:
            key = (*own, self._is_wide, self.output_numbers, signature(self.arguments, self.active))
            known = self._known_programs.get(key)
            if known is None:
                plain = caller.on(self.active, self.output_numbers, self.values())
                function = of_order(self._transforms, order, plain, len(self.active), len(self.output_numbers))
                known = Program(self._transforms, function, compiled=bool(self._loops) or not self._is_wide)
            else:
                known.confirm_again()
            self._programs[own] = self._known_programs[key] = known
        return self._programs[own]

    @cached_property
    def _loops(self) -> list[int]:
        plain = self._caller.on(self.active, self.output_numbers, self.values())
        with self.running():
            return self._transforms.loops_of(plain, *self._tensors([self.arguments[i].value for i in self.active]))

    def _pulling(self, values: dict[int, NDArray[Any]]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        function = self._caller.on(self.active, self.output_numbers, values)
        return self._transforms.adjoint(function, *self._tensors([values[i] for i in self.active]))[1]

    def _tensors(self, arrays: Sequence[NDArray[Any]]) -> list[Any]:
        return [self.framework.from_array(array) for array in arrays]

    def _arrays(self, tensors: Sequence[Any]) -> tuple[NDArray[Any], ...]:
        return tuple(self.framework.to_array(tensor) for tensor in tensors)

    def _require_the_rules_forward(self, rule: Rule) -> None:
        """Compare what the rule computes for the output with what the function does. Raises UserCodeError."""
        if not self.active or not self.output_numbers:
            return
        try:
            with self.running():
                tensors = self._tensors([self.arguments[i].value for i in self.active])
                own = self._caller.run(self.values())
                found, _ = self._transforms.adjoint(
                    self._caller.on(self.active, self.output_numbers, self.values()), *tensors
                )
                wrong = [n for f, n in zip(found, self.output_numbers, strict=True) if not _close(f, own[n])]
        except (Exception, SystemExit):  # the checks will run into it, and say in which phase
            return
        if wrong:
            code = getattr(inspect.unwrap(rule.forward), "__code__", None)
            raise UserCodeError(
                f"output {wrong[0]} of the rule's own forward pass (fwd in JAX) differs from output {wrong[0]} of "
                f"{self.info.name} at the same inputs, so the rule gives the gradient of another function: make "
                "both compute the same outputs",
                phase="forward",
                file=None if code is None else code.co_filename,
                line=None if code is None else code.co_firstlineno,
            )

    def _call_rule(self, rule: Rule, backward: Callable[..., Any], cotangents: Sequence[Any]) -> RawBackward:
        given = self._caller.given(self.values())
        whole = assembled(self.arguments, given, self._transforms)
        positional = [value for argument, value in whole if not argument.keyword]
        keywords = {argument.name: value for argument, value in whole if argument.keyword}
        bound = inspect.signature(rule.primal).bind(*positional, **keywords)
        bound.apply_defaults()
        output, residuals = rule.forward(*bound.args)
        seeds = dict(zip(self.output_numbers, cotangents, strict=True))
        leaves = [leaf for _, leaf in self._transforms.leaves(output)]
        rows = [self._transforms.cotangent(leaf, seeds.get(n)) for n, leaf in enumerate(leaves)]
        fixed = [bound.args[i] for i in rule.fixed]
        returned = backward(*fixed, residuals, self._transforms.rebuilt(output, rows))
        if not isinstance(returned, tuple | list):
            kind = "a bare array" if self.framework.is_tensor(returned) else f"a {type(returned).__name__}"
            return RawBackward(container=kind, sums_down=False)
        differentiated = [value for i, value in enumerate(bound.args) if i not in rule.fixed]
        if len(returned) != len(differentiated):
            return RawBackward(
                container=f"{counted(len(returned), 'gradient')} for {counted(len(differentiated), 'argument')}",
                sums_down=False,
            )
        owners = [next((a for a, v in whole if v is value), None) for value in differentiated]
        pairs = [(owner, g) for owner, g in zip(owners, returned, strict=True) if owner is not None]
        by_name = spread(self.arguments, pairs, self._transforms)
        if isinstance(by_name, str):
            return RawBackward(nested_unlike=by_name, sums_down=False)
        return RawBackward(gradients=tuple(self._raw(a, by_name.get(a.name)) for a in self.arguments), sums_down=False)

    def _raw(self, argument: Argument, returned: object) -> RawGradient:
        if returned is None or not argument.is_tensor or argument.value.dtype.kind not in "fc":
            return _NOTHING
        kind = type(returned).__name__
        array = np.asarray(returned)
        if array.dtype.kind not in "biufcV":
            return RawGradient(is_none=False, is_tensor=False, shape=None, dtype=None, value=None, type_name=kind)
        value = np.conj(self.framework.to_array(returned))
        return RawGradient(
            is_none=False, is_tensor=True, shape=value.shape, dtype=str(value.dtype), value=value, type_name=kind
        )


def _close(found: Any, wanted: Any) -> bool:
    """Whether two arrays have the same shape and, but for rounding, the same values."""
    one, other = np.asarray(found), np.asarray(wanted)
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=_AGREES, atol=0.0, equal_nan=True))
