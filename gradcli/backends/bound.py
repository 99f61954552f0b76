"""A Function of PyTorch's shape bound to arguments: the Subject of the engine's and PyTorch's backends."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Batched, Counters, FloatArray, ForwardCall, Layout, RawBackward, Subject
from gradcli.backends.by_hand import called_by_hand
from gradcli.backends.call import Call, Caller, in_64_bits, laid_out
from gradcli.backends.framework import Framework, same_values, unit_roundoff
from gradcli.backends.guard import generators_kept, user_code_error, users_code
from gradcli.backends.inspection import Inspector, with_rules
from gradcli.backends.modes import batched, pushed
from gradcli.backends.origin import Origin
from gradcli.backends.tensor_maps import TensorMap, space_of, spaces_of_order
from gradcli.cases import Argument
from gradcli.errors import UsageError, UserCodeError
from gradcli.numerics.space import Space
from gradcli.targets import TargetInfo


@final
class BoundFunction(Subject):
    """A callable at arguments; `origin` tells whose claim it makes, where that is one Function's or operator's.

    Inputs of a lower precision are raised to 64 bits for everything but `in_given_precision`.
    """

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
    ) -> None:
        self.framework = framework
        self.info = info
        self.given = tuple(arguments)
        self.arguments, self.low = in_64_bits(arguments)
        self.counters = Counters()
        self._function = function
        self._origin = origin
        self._casts = casts or {}
        self._insists = insists
        self._layout = layout
        self.active = tuple(i for i, a in enumerate(self.arguments) if a.is_tensor and a.requires_grad)
        self._inspector = Inspector(framework, origin)
        self._maps: dict[int, TensorMap] = {}
        self._caller, self._call = self._first_call()
        rules = [framework.rule_of(owner) for owner in self._inspector.owners(self._call)]
        self.info = with_rules(info, rules, inner=origin is None)
        self._numbers = tuple(
            number for number, output in enumerate(self._call.outputs) if self._carries_gradient(output)
        )
        self._domain = space_of(
            [self.arguments[i].name for i in self.active], [self.arguments[i].value for i in self.active]
        )
        self._codomain = space_of(
            [f"output{n}" if n else "output" for n in self._numbers],
            [framework.to_array(self._call.outputs[n]) for n in self._numbers],
        )

    @property
    def domain(self) -> Space:
        """One block for each active input."""
        return self._domain

    @property
    def codomain(self) -> Space:
        """One block for each differentiable output."""
        return self._codomain

    @property
    def output_numbers(self) -> tuple[int, ...]:
        """Positions of the differentiable outputs."""
        return self._numbers

    @property
    def output_count(self) -> int:
        """How many values forward returns, differentiable or not."""
        return len(self._call.outputs)

    @property
    def point(self) -> FloatArray:
        """The active inputs, flat."""
        return self._domain.flatten([self.arguments[i].value for i in self.active])

    @cached_property
    def is_random(self) -> bool:
        """Whether another seed gives other outputs."""
        try:
            with users_code(self.framework, silent=True, seed=1), self.framework.namespace.enable_grad():
                self.counters.forward += 1
                other = self._caller.run(self._leaves()).outputs
        except (Exception, SystemExit):
            return False
        to_array = self.framework.to_array
        return any(not same_values(to_array(other[n]), to_array(self._call.outputs[n])) for n in self._numbers)

    def session(self) -> AbstractContextManager[None]:
        """Keep the random generators over many calls."""
        return generators_kept(self.framework)

    def derivative_map(self, order: int) -> TensorMap:
        """The map whose derivative is checked at `order`."""
        if order not in self._maps:
            domain, codomain = spaces_of_order(order, self._domain, self._codomain)
            lower = self.derivative_map(order - 1) if order > 1 else None
            self._maps[order] = TensorMap(
                self._caller, self.active, self._numbers, order, domain, codomain, self.counters, lower
            )
        return self._maps[order]

    def body_map(self, order: int) -> TensorMap | None:
        """The framework's own derivative of forward's body; None where it cannot stand for forward."""
        body = self._body
        if body is None:
            return None
        domain, codomain = spaces_of_order(order, self._domain, self._codomain)
        return TensorMap(body, self.active, self._numbers, order, domain, codomain, self.counters)

    @cached_property
    def _body(self) -> Caller | None:
        """Forward's body, where it gives the same values and carries a gradient."""
        if self._origin is None or self._origin.body is None or self._insists:
            return None
        body = self._origin.body(tuple(a.is_tensor and a.requires_grad for a in self.arguments))
        caller = self._calling(body, self.arguments)
        try:
            with users_code(self.framework, silent=True), self.framework.namespace.enable_grad():
                self.counters.forward += 1
                outputs = caller.run(self._leaves()).outputs
                same = len(outputs) == len(self._call.outputs) and all(
                    same_values(self.framework.to_array(outputs[n]), self.framework.to_array(self._call.outputs[n]))
                    for n in self._numbers
                )
                carried = any(bool(outputs[n].requires_grad) for n in self._numbers) if same else False
        except (Exception, SystemExit):
            return None
        return caller if same and carried else None

    def base_point(self, order: int, seed: int) -> FloatArray:
        """The inputs, followed by signed cotangents of magnitude in [1/2, 1)."""
        domain, _ = spaces_of_order(order, self._domain, self._codomain)
        generator = np.random.default_rng([seed, order])
        free = domain.size - self._domain.size
        cotangents = generator.choice([-1.0, 1.0], free) * (0.5 + 0.5 * generator.random(free))
        return np.concatenate([self.point, cotangents])

    def call(self) -> ForwardCall:
        """Run forward once through the Function on the arguments as they are."""
        call = self._track("forward")
        node = self._inspector.node(call)
        to_array = self.framework.to_array
        outputs = tuple(
            to_array(o) if self.framework.is_tensor(o) else np.asarray(o, dtype=object) for o in call.outputs
        )
        return ForwardCall(
            outputs=outputs,
            differentiable=tuple(self._carries_gradient(o) for o in call.outputs),
            changed_inputs=self._caller.changed(call, node),
            saved_strangers=self._inspector.strangers(call, node),
            context_tensors=self._inspector.context_tensors(call, node),
            unit_roundoff=max(
                (unit_roundoff(self.framework.dtype_name(call.outputs[n])) for n in self._numbers), default=2.0**-53
            ),
        )

    def backward(self, cotangents: Sequence[NDArray[Any] | None]) -> tuple[NDArray[Any] | None, ...]:
        """Gradients of the active inputs through the framework's own backward pass."""
        return self._passed_back(self._caller, self.active, cotangents)[1]

    def backward_tracking(
        self, positions: Sequence[int], cotangents: Sequence[NDArray[Any]]
    ) -> tuple[NDArray[Any] | None, ...] | None:
        """The same for some of the inputs, the others as plain values."""
        call, gradients = self._passed_back(self._caller, positions, cotangents)
        carried = tuple(n for n, output in enumerate(call.outputs) if self._carries_gradient(output))
        return gradients if carried == self._numbers else None

    def _passed_back(
        self,
        caller: Caller,
        positions: Sequence[int],
        cotangents: Sequence[NDArray[Any] | None],
        layout: Layout = Layout.CONTIGUOUS,
    ) -> tuple[Call, tuple[NDArray[Any] | None, ...]]:
        """One forward and one backward for the inputs at `positions`, with the generators set once for both."""
        phase = "forward"
        self.counters.forward += 1
        leaves = {i: self._caller.leaf(self.arguments[i].value, True) for i in positions}
        try:
            with users_code(self.framework, silent=True):
                with self.framework.namespace.enable_grad():
                    call = caller.run(leaves)
                phase = "backward"
                return call, self._pulled_back(call, cotangents, layout=layout)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, phase) from error

    def backward_interleaved(
        self, cotangents: Sequence[NDArray[Any] | None], other: Sequence[Argument]
    ) -> tuple[NDArray[Any] | None, ...] | None:
        """Gradients, with another forward between forward and backward."""
        call = self._track("forward")
        between = self._calling(self._function, other)
        try:
            with users_code(self.framework, silent=True, seed=1), self.framework.namespace.enable_grad():
                between.run({i: between.leaf(other[i].value, True) for i in self.active})
        except (Exception, SystemExit):
            return None
        return self._gradients(call, cotangents)

    def backward_twice(
        self, cotangents: Sequence[NDArray[Any] | None]
    ) -> tuple[tuple[NDArray[Any] | None, ...], tuple[NDArray[Any] | None, ...]]:
        """Gradients of two backward passes through one graph."""
        call = self._track("forward")
        return self._gradients(call, cotangents, retain=True), self._gradients(call, cotangents)

    def _gradients(
        self, call: Call, cotangents: Sequence[NDArray[Any] | None], *, retain: bool = False
    ) -> tuple[NDArray[Any] | None, ...]:
        try:
            with users_code(self.framework, silent=True):
                return self._pulled_back(call, cotangents, retain=retain)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "backward") from error

    def _pulled_back(
        self,
        call: Call,
        cotangents: Sequence[NDArray[Any] | None],
        *,
        retain: bool = False,
        layout: Layout = Layout.CONTIGUOUS,
    ) -> tuple[NDArray[Any] | None, ...]:
        """Gradients of the leaves of a call, in the order of their positions; to run as the user's code."""
        pairs = [
            (call.outputs[n], laid_out(self.framework, self._cotangent(call.outputs[n], c), layout))
            for n, c in zip(self._numbers, cotangents, strict=True)
            if c is not None and n < len(call.outputs) and self._carries_gradient(call.outputs[n])
        ]
        leaves = list(call.leaves.values())
        if not pairs:
            return tuple(None for _ in leaves)
        self.counters.backward += 1
        gradients = self.framework.namespace.autograd.grad(
            [o for o, _ in pairs], leaves, [c for _, c in pairs], allow_unused=True, retain_graph=retain
        )
        return tuple(None if g is None else self.framework.to_array(g) for g in gradients)

    def backward_laid_out(
        self, cotangents: Sequence[NDArray[Any] | None], *, inputs: Layout, outputs: Layout
    ) -> tuple[NDArray[Any] | None, ...]:
        """Gradients, with inputs and cotangents laid out in memory as asked."""
        caller = self._calling(self._function, self.arguments, inputs)
        return self._passed_back(caller, self.active, cotangents, outputs)[1]

    def laid_out(self, inputs: Layout) -> "BoundFunction":
        """The same Function called on active inputs that lie in memory so."""
        return self._elsewhere(self.arguments, inputs)

    def pushed(self, tangents: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...] | None:
        """Through the framework's forward mode, which calls jvp."""
        try:
            with users_code(self.framework, silent=True), self.framework.namespace.enable_grad():
                self.counters.forward += 1
                return pushed(self._caller, self.active, self._numbers, tangents)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "jvp") from error

    def batched(
        self,
        stacked: Sequence[NDArray[Any]],
        places: Sequence[int | None],
        cotangents: Sequence[NDArray[Any]],
    ) -> Batched | None:
        """Through the framework's vmap, which calls the rule."""
        try:
            with users_code(self.framework, silent=True), self.framework.namespace.enable_grad():
                self.counters.forward += 1
                self.counters.backward += 1
                return batched(self._caller, self.active, self._numbers, stacked, places, cotangents)
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "vmap") from error

    def raw_backward(self, cotangents: Sequence[NDArray[Any] | None]) -> RawBackward:
        """Call the user's backward by hand, and say what it returned and what it changed."""
        call = self._track("forward")
        self.counters.backward += 1
        given = dict(zip(self._numbers, cotangents, strict=True))
        return called_by_hand(self.framework, self._inspector, call, self.arguments, given)

    def rebind(self, arguments: Sequence[Argument]) -> "BoundFunction":
        """The same Function at other arguments."""
        return self._elsewhere(arguments, Layout.CONTIGUOUS)

    def _elsewhere(self, arguments: Sequence[Argument], layout: Layout) -> "BoundFunction":
        """The same at other arguments, in the precision that forward insists on where it does."""
        other = BoundFunction(
            self.framework,
            self.info,
            self._function,
            self._origin,
            arguments,
            layout=layout,
            casts=self._casts if self._insists else None,
            insists=self._insists,
        )
        other.counters = self.counters
        return other

    def _calling(self, function: Any, arguments: Sequence[Argument], layout: Layout = Layout.CONTIGUOUS) -> Caller:
        held = [name for name, _ in self.info.held]
        return Caller(self.framework, function, arguments, layout=layout, casts=self._casts, held=held)

    def in_given_precision(self) -> "BoundFunction | None":
        """The same Function at the arguments as given, in their lower precision; None where nothing was raised."""
        if not self.low or self._casts:
            return None
        return BoundFunction(self.framework, self.info, self._function, self._origin, self.given, casts=self.low)

    def _first_call(self) -> tuple[Caller, Call]:
        """The first call; where 64 bits are refused, and the inputs have fewer, one in their own precision.

        The cast is part of the graph then, so that everything is judged through it.
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
        leaves = {i: caller.leaf(self.arguments[i].value, True) for i in self.active}
        try:
            with users_code(self.framework, silent=False), self.framework.namespace.enable_grad():
                self.counters.forward += 1
                return caller, caller.run(leaves)
        except (UserCodeError, UsageError):
            raise
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "forward") from error

    @property
    def first_order_only(self) -> str | None:
        """The mark of once_differentiable, or a sparse input."""
        if any(argument.sparsity is not None for argument in self.arguments):
            return f"sparse input: {self.framework.name} does not differentiate its own sparse tensors twice"
        return super().first_order_only

    @property
    def insists_on(self) -> str | None:
        """The lower precision that forward insists on, refusing 64 bits; None where it takes them."""
        return next(iter(self._casts.values()), None) if self._insists else None

    @property
    def low_dtypes(self) -> tuple[str, ...]:
        """The dtypes of tensors that were given in a lower precision than 64 bits."""
        return tuple(self.low.values())

    def _track(self, phase: str) -> Call:
        self.counters.forward += 1
        try:
            with users_code(self.framework, silent=True), self.framework.namespace.enable_grad():
                return self._caller.run(self._leaves())
        except (Exception, SystemExit) as error:
            raise user_code_error(error, phase) from error

    def _leaves(self) -> dict[int, Any]:
        return {i: self._caller.leaf(self.arguments[i].value, True) for i in self.active}

    def _carries_gradient(self, output: object) -> bool:
        if not self.framework.is_tensor(output):
            return False
        tensor: Any = output
        return self.framework.is_differentiable(tensor) and bool(tensor.requires_grad)

    def _cotangent(self, output: Any, value: NDArray[Any]) -> Any:
        """A cotangent in the output's own dtype."""
        return self.framework.from_array(np.asarray(value), self.framework.dtype_name(output))
