"""A Function of PyTorch's shape bound to arguments: the Subject of the engine's and PyTorch's backends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import (
    Counters,
    ForwardCall,
    Gradients,
    Layout,
    Pass,
    RawBackward,
)
from gradcli.backends.given_inputs import Home
from gradcli.backends.guard import Session, generators_restored, has_drawn, seed_every_call, seeds_lazily, users_code
from gradcli.backends.orders import space_of, spaces_of_order
from gradcli.backends.origin import Origin
from gradcli.backends.tensor.body import stands_for
from gradcli.backends.tensor.call_records import Call, CallResult, LeakedGraph, OtherCalls, Seeds, Values
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.captured_tensors import OwnCall
from gradcli.backends.tensor.framework import Framework, all_same, same_values
from gradcli.backends.tensor.graph_lifetime import leaked_graph
from gradcli.backends.tensor.inspection import Inspector, with_called
from gradcli.backends.tensor.maps import ReturnedGradients, TensorMap, carries_gradient, gradients_of
from gradcli.backends.tensor.modes import TransformedFunction
from gradcli.backends.tensor.other_calls import called_at, sharing
from gradcli.backends.tensor.precision_and_layout import in_64_bits
from gradcli.backends.tensor.raw_backward import called_directly
from gradcli.cases import Argument
from gradcli.errors import OverrunError, UsageError, UserCodeError
from gradcli.targets import TargetInfo


@final
class BoundFunction(TransformedFunction):
    """A callable at arguments; `origin` is the one Function or operator that it tests, None for a plain callable.

    Inputs of a lower precision are converted to 64 bits, except in `in_given_precision`.
    """

    has_graph = True

    def __init__(
        self,
        framework: Framework,
        info: TargetInfo,
        function: Any,
        origin: Origin | None,
        arguments: Sequence[Argument],
        *,
        casts: Mapping[int, str] | None = None,
        insists: bool = False,
        layout: Layout = Layout.CONTIGUOUS,
        asked: bool = True,
    ) -> None:
        self.framework, self._asked = framework, asked
        self.info = info
        self.given = tuple(arguments)
        self.arguments, self.low = in_64_bits(arguments)
        self.counters = Counters()
        self._function, self._origin, self._layout = function, origin, layout
        self.moved_in_place = function.names if isinstance(function, OwnCall) else ()
        self._casts, self._insists, self._protected = casts or {}, insists, False
        self.active = tuple(i for i, a in enumerate(self.arguments) if a.is_tensor and a.requires_grad)
        self._inspector = Inspector(framework, origin)
        self._maps: dict[int, TensorMap] = {}
        self._body_maps: dict[int, TensorMap] = {}
        self._caller, self._call = self._first_call()
        self._unused: Call | None = self._call
        self._latest: Call | None = None
        self._direct: Call | None = None
        self._is_freed: bool | None = None
        self._returned = ReturnedGradients()
        self.overwritten = self._returned.overwritten
        self._again: tuple[NDArray[Any], ...] | None = None
        called = [framework.called(owner) for owner in self._inspector.owners(self._call)]
        self.info = with_called(info, called, inner=origin is None)
        self._numbers = tuple(n for n, output in enumerate(self._call.outputs) if carries_gradient(framework, output))
        self._domain = space_of(
            [self.arguments[i].name for i in self.active], [self.arguments[i].value for i in self.active]
        )
        self._first = self._arrays_of(self._call)
        names = [f"output{n}" if n else "output" for n in self._numbers]
        self._codomain = space_of(names, [self._first[n] for n in self._numbers])

    @cached_property
    def is_random(self) -> bool:
        """Whether another seed gives other outputs."""
        seed_every_call(self.framework)
        try:
            with users_code(self.framework, silent=True, seed=1, recording=True, asked=self._asked):
                self.counters.forward += 1
                other = self._caller.run(self._caller.leaves(self.active)).outputs
        except (Exception, SystemExit):
            return False
        return any(not same_values(self.framework.to_array(other[n]), self._first[n]) for n in self._numbers)

    def session(self, *, lazy: bool = False) -> AbstractContextManager[Session]:
        """Keep the random generators over many calls."""
        return generators_restored(self.framework, lazy=lazy)

    def derivative_map(self, order: int) -> TensorMap:
        """The map whose derivative is checked at `order`."""
        if order not in self._maps:
            lower = self.derivative_map(order - 1) if order > 1 else None
            self._maps[order] = self._map(self._caller, order, lower)
        return self._maps[order]

    def body_map(self, order: int) -> TensorMap | None:
        """The framework's own derivative of forward's body; None where it cannot stand for forward."""
        if self._body is not None and order not in self._body_maps:
            self._body_maps[order] = self._map(self._body, order, None)
        return self._body_maps.get(order)

    def _map(self, caller: Caller, order: int, lower: TensorMap | None) -> TensorMap:
        domain, codomain = spaces_of_order(order, self._domain, self._codomain)
        home = Home.of(self) if self._asked else None
        return TensorMap(caller, self.active, self._numbers, order, domain, codomain, self.counters, lower, home)

    @cached_property
    def _body(self) -> Caller | None:
        """Forward's body, where it gives the same values and carries a gradient."""
        if self._origin is None or self._origin.body is None or self._insists:
            return None
        body = self._origin.body(tuple(a.is_tensor and a.requires_grad for a in self.arguments))
        caller = self._calling(body, self.arguments)
        self.counters.forward += 1
        alike = stands_for(caller, caller.leaves(self.active), self._first, self._numbers, asked=self._asked)
        return caller if alike else None

    def call(self) -> ForwardCall:
        """Run forward once through the Function on the arguments as they are."""
        call = self._latest = self._run(self._caller)
        return self._inspector.described(self._caller, call, self._arrays_of(call), self._numbers)

    def called_again(self) -> tuple[NDArray[Any], ...]:
        """The outputs alone."""
        if (again := self._again) is not None:
            self._again = None
            return again
        self._latest = self._run(self._caller)
        return self._arrays_of(self._latest)

    def is_alike_while(self, moved: AbstractContextManager[None]) -> bool:
        """The first call against another, whose outputs `called_again` gives if they are alike."""
        self._unused, outputs = None, self.first_call.outputs  # described before backward can change anything
        ones = [np.ones_like(outputs[number]) for number in self._numbers]
        before = self._gradients(self._call, ones, retain=True)
        try:
            with moved:
                call = self._run(self._caller)
                after = self._gradients(call, ones, retain=True)
        except OverrunError:
            raise
        except UserCodeError:
            return False
        again = self._arrays_of(call)
        alike = all_same((*outputs, *before), (*again, *after))
        self._again = again if alike else None
        return alike

    @cached_property
    def first_call(self) -> ForwardCall:
        """The call that bound the arguments."""
        return self._inspector.described(self._caller, self._call, self._first, self._numbers)

    def _arrays_of(self, call: Call) -> tuple[NDArray[Any], ...]:
        to_array, is_tensor = self.framework.to_array, self.framework.is_tensor
        return tuple(to_array(o) if is_tensor(o) else np.asarray(o, dtype=object) for o in call.outputs)

    def backward(self, cotangents: Sequence[NDArray[Any] | None]) -> Gradients:
        """Gradients of the active inputs through the framework's own backward pass."""
        return self._passed_back(self._caller, self.active, cotangents)[1]

    def backward_tracking(self, positions: Sequence[int], cotangents: Sequence[NDArray[Any]]) -> Gradients | None:
        """The same for some of the inputs, the others as plain values."""
        call, gradients = self._passed_back(self._caller, positions, cotangents)
        carried = tuple(n for n, output in enumerate(call.outputs) if carries_gradient(self.framework, output))
        return gradients if carried == self._numbers else None

    def _passed_back(
        self,
        caller: Caller,
        positions: Sequence[int],
        cotangents: Sequence[NDArray[Any] | None],
        layout: Layout = Layout.CONTIGUOUS,
    ) -> tuple[Call, Gradients]:
        """One forward and one backward for the inputs at `positions`, with the generators set once for both."""
        phase = "forward"
        self.counters.forward += 1
        try:
            with users_code(self.framework, silent=True, recording=True, asked=self._asked, passed=cotangents):
                call = caller.run(caller.leaves(positions))
                phase = "backward"
                return call, gradients_of(self.framework, self.counters, call, self._numbers, cotangents, layout=layout)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, phase) from error

    def backward_interleaved(
        self, cotangents: Sequence[NDArray[Any] | None], sets: Sequence[OtherCalls]
    ) -> Iterator[Gradients | None]:
        """Gradients, with other calls between forward and each backward pass, through the first call's graph."""
        call, self._unused = self._unused or self._run(self._caller), None
        for number, others in enumerate(sets, 1):
            ran = others.run_one(self._run_between)
            yield self._gradients(call, cotangents, retain=number < len(sets)) if ran else None

    def _run_between(self, arguments: Sequence[Argument]) -> None:
        caller = self._calling(self._function, arguments)
        self.counters.forward += 1
        away = Home.of(self).to([arguments[i].value for i in self.active])

        def made() -> Call:
            with users_code(self.framework, silent=True, seed=1, recording=True, distance=away):
                return caller.run(caller.leaves(self.active))

        if self._is_freed is None:
            self._is_freed = self._left_of(made) is None
        else:
            made()

    def backward_twice(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[Gradients, Gradients]:
        """Gradients of two backward passes through one graph."""
        call = self._run(self._caller)
        return self._gradients(call, cotangents, retain=True), self._gradients(call, cotangents)

    def backward_reseeded(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[Gradients, Gradients] | None:
        """Gradients of two passes through one graph, the second under another seed; None if no numbers were drawn."""
        if seeds_lazily(self.framework):
            return None
        call = self._run(self._caller)
        return self._gradients(call, cotangents, retain=True), self._gradients(call, cotangents, seed=1)

    def backward_further(self, passes: Sequence[Pass]) -> tuple[Gradients, ...] | None:
        """Several passes through the graph that the last direct call of backward used; the graph is free after that."""
        call, self._direct = self._direct or self._run(self._caller), None
        last = len(passes) - 1
        found = []
        for number, each in enumerate(passes):
            if each.after is not None and not each.after.run_one(self._run_between):
                return None
            found.append(self._gradients(call, each.cotangents, retain=number < last, layout=each.layout))
        return tuple(found)

    def _gradients(
        self,
        call: Call,
        cotangents: Sequence[NDArray[Any] | None],
        *,
        retain: bool = False,
        layout: Layout = Layout.CONTIGUOUS,
        seed: int = 0,
    ) -> Gradients:
        try:
            with users_code(self.framework, silent=True, seed=seed, asked=self._asked, forward=0, passed=cotangents):
                gradients = partial(gradients_of, self.framework, self.counters, call, self._numbers, cotangents)
                return gradients(retain=retain, layout=layout, returned=self._returned)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "backward") from error

    def backward_laid_out(
        self, cotangents: Sequence[NDArray[Any] | None], *, inputs: Layout, outputs: Layout
    ) -> Gradients:
        """Gradients, with inputs and cotangents laid out in memory as asked."""
        caller = self._calling(self._function, self.arguments, inputs)
        return self._passed_back(caller, self.active, cotangents, outputs)[1]

    def laid_out(self, inputs: Layout) -> "BoundFunction":
        """The same Function with active inputs in this memory layout."""
        return self._elsewhere(self.arguments, inputs, asked=self._asked)

    def raw_backward(self, cotangents: Sequence[NDArray[Any] | None], *, again: bool = False) -> RawBackward:
        """Call the user's backward directly; `again` for what is saved already, not looking at what it changes."""
        if not again or self._direct is None:
            self._direct, self._latest = self._latest or self._run(self._caller), None
        self.counters.backward += 1
        call_backward = partial(called_directly, self.framework, self._inspector, self._direct, self.arguments)
        return call_backward(dict(zip(self._numbers, cotangents, strict=True)), asked=self._asked, watching=not again)

    def rebind(self, arguments: Sequence[Argument]) -> "BoundFunction":
        """The same Function at other arguments."""
        return self._elsewhere(arguments, Layout.CONTIGUOUS, asked=False)

    def _elsewhere(self, arguments: Sequence[Argument], layout: Layout, *, asked: bool) -> "BoundFunction":
        """The same at other arguments, in the precision that forward insists on where it does."""
        bind = partial(BoundFunction, self.framework, self.info, self._function, self._origin, arguments)
        casts = self._casts if self._insists else None
        other = bind(layout=layout, casts=casts, insists=self._insists, asked=asked)
        other.counters, other.is_wrong_in_64_bits = self.counters, self.is_wrong_in_64_bits
        return other.protect_saved() if self._protected else other

    def protect_saved(self) -> "BoundFunction":
        """Itself, with a call of forward whose graph hands out copies in place of those made so far."""
        self._protected = True
        self._caller = self._calling(self._function, self.arguments, self._layout)
        self._unused = self._latest = self._direct = None
        self._maps.clear()
        return self

    def leaked_graph(self) -> LeakedGraph | None:
        """What is left of a call's graph when its result is gone."""
        return None if self._is_freed else self._left_of(partial(self._run, self._caller))

    def _left_of(self, made: Callable[[], Call]) -> LeakedGraph | None:
        return leaked_graph(self.framework, self._inspector, made, is_own=self._origin is not None)

    def call_at(
        self, arguments: Sequence[Argument], seeds: Seeds | None = None, beside: Values | None = None
    ) -> CallResult:
        """One call at other arguments, and one pass through its graph."""
        return called_at(self._calling(self._function, arguments), self.active, self.counters, seeds, beside)

    def call_sharing(self, arguments: Sequence[Argument], first: int, second: int, seeds: Seeds) -> CallResult | None:
        """The same with one tensor in two places, where both are positional."""
        if any(argument.keyword for argument in arguments[: max(first, second) + 1]):
            return None
        shared = self._calling(sharing(self._function, first, second), arguments)
        return called_at(shared, [i for i in self.active if i != second], self.counters, seeds)

    def _calling(self, function: Any, arguments: Sequence[Argument], layout: Layout = Layout.CONTIGUOUS) -> Caller:
        held = [name for name, _ in self.info.held]
        own = partial(Caller, casts=self._casts, held=held, protected=self._protected)
        return own(self.framework, function, arguments, layout=layout)

    def in_given_precision(self, dtype: str = "", *, throughout: bool = False) -> "BoundFunction | None":
        """The same Function in the lower precision of what was given, or in `dtype` where it has 64 bits; else None."""
        real = [i for i, a in enumerate(self.arguments) if a.is_tensor and a.value.dtype.kind == "f"]
        casts = self.low or (dict.fromkeys(real, dtype) if dtype else {})
        if not casts or self._casts:
            return None
        bind = partial(BoundFunction, self.framework, self.info, self._function, self._origin, self.given)
        lower = bind(casts=casts, asked=self._asked, insists=throughout)
        lower.is_wrong_in_64_bits = throughout
        return lower

    def _first_call(self) -> tuple[Caller, Call]:
        """The first call; where 64 bits are refused, and the inputs have fewer, one in their own precision.

        The cast to that precision is then part of the graph, and of everything that is compared.
        """
        try:
            return self._tried()
        except UserCodeError as error:
            if not self.low or self._casts:
                raise
            self._casts, self._insists = self.low, True
            try:
                return self._tried()
            except UserCodeError:
                raise error from error.__cause__

    def _tried(self) -> tuple[Caller, Call]:
        caller = self._calling(self._function, self.arguments, self._layout)
        try:
            call = self._run(caller, silent=False)
        except UserCodeError:
            if not has_drawn(self.framework):
                raise
            return caller, self._run(caller, silent=True)
        return caller, self._run(caller, silent=True) if has_drawn(self.framework) else call

    def _run(self, caller: Caller, *, silent: bool = True) -> Call:
        self.counters.forward += 1
        try:
            with users_code(self.framework, silent=silent, recording=True, asked=self._asked):
                return caller.run(caller.leaves(self.active))
        except (UserCodeError, UsageError):
            raise
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "forward") from error

    @property
    def first_order_only(self) -> str | None:
        """The mark of once_differentiable, or a sparse input."""
        if any(argument.sparsity is not None for argument in self.arguments):
            return f"an input is sparse, and {self.framework.name} does not differentiate its sparse tensors twice"
        return super().first_order_only

    @property
    def insists_on(self) -> str | None:
        """The lower precision in which forward runs, if it does not run in 64 bits; else None."""
        return next(iter(self._casts.values()), None) if self._insists else None

    @property
    def low_dtypes(self) -> tuple[str, ...]:
        """The dtypes of tensors that were given in a lower precision than 64 bits."""
        return tuple(self.low.values())
