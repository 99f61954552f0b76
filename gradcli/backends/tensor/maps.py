"""Passes back through the graphs of calls, and the derivative maps made of calls and passes.

Two primitives: `Caller.run` calls forward on tensors, and `pullback` passes cotangents back through the graph.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Counters, Gradients, Layout
from gradcli.backends.executed_lines import lines_run
from gradcli.backends.given_inputs import Home
from gradcli.backends.guard import UsersCode, users_code
from gradcli.backends.orders import noise_of_gradient
from gradcli.backends.tensor.call_records import Call, Exchange, all_entered
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.framework import Framework
from gradcli.backends.tensor.precision_and_layout import laid_out
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.space import Space
from gradcli.numerics.maps.vector_map import Effort, VectorMap

FloatArray = NDArray[np.float64]


def pullback(
    framework: Framework,
    counters: Counters,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    *,
    retain: bool = False,
    create_graph: bool = False,
    zeros: bool = False,
    exchanges: Sequence[Exchange] = (),
) -> list[Any]:
    """Gradients of the inputs for cotangents of the outputs, by the framework's own backward pass; all are tensors.

    None where no gradient arrives. To be run as the user's code.

    Args:
        framework: whose tensors they are.
        counters: where the pass is booked, if there is anything to pass back.
        outputs: where the pass begins; those that require no gradient are left out.
        inputs: where it ends.
        cotangents: one for each output.
        retain: keep the graph for another pass.
        create_graph: make a graph of the pass itself, and keep that of forward.
        zeros: give zeros in place of None.
        exchanges: those of the calls that the pass goes through.
    """
    if exchanges:
        with all_entered(exchanges):
            return pullback(
                framework, counters, outputs, inputs, cotangents, retain=retain, create_graph=create_graph, zeros=zeros
            )
    tracked = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    found = [None] * len(inputs)
    if tracked:
        counters.backward += 1
        found = framework.grad(
            [o for o, _ in tracked],
            inputs,
            [c for _, c in tracked],
            retain_graph=retain or create_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    zeros_like = framework.namespace.zeros_like
    return [zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)] if zeros else found


@final
class ReturnedGradients:
    """The gradients that one backward pass returned, looked at after the next: it may write into the same memory.

    `overwritten` are the places, among the inputs, of those that did not keep their values.
    """

    def __init__(self) -> None:
        self.overwritten: set[int] = set()
        self._kept: Sequence[tuple[Any, NDArray[Any] | None]] = ()

    def followed_by(
        self,
        tensors: Sequence[Any],
        arrays: Sequence[NDArray[Any] | None],
        holds: Callable[[Any, NDArray[Any]], bool],
        *,
        keep: bool,
    ) -> None:
        """Look at what was kept after the pass that returned these tensors; `keep` them for the next.

        Args:
            tensors: one for each input, None where no gradient arrived.
            arrays: copies of their values.
            holds: whether a tensor has the values of a copy.
            keep: whether there may be another pass.
        """
        for place, (tensor, array) in enumerate(self._kept):
            if array is not None and not holds(tensor, array):
                self.overwritten.add(place)
        self._kept = list(zip(tensors, arrays, strict=True)) if keep else ()


def gradients_of(
    framework: Framework,
    counters: Counters,
    call: Call,
    numbers: Sequence[int],
    cotangents: Sequence[NDArray[Any] | None],
    *,
    retain: bool = False,
    layout: Layout = Layout.CONTIGUOUS,
    returned: ReturnedGradients | None = None,
) -> Gradients:
    """Gradients of the leaves of a call, in the order of their positions, as arrays; to be run as the user's code.

    Args:
        framework: whose tensors they are.
        counters: where the pass is booked, if there is anything to pass back.
        call: the call, whose graph is there still.
        numbers: the outputs that the cotangents are for; those that do not exist, or carry no gradient, are left out.
        cotangents: one for each of these outputs; None leaves it out.
        retain: keep the graph for another pass.
        layout: how the cotangents lie in memory.
        returned: what earlier passes returned, to be looked at after this one.
    """
    given = [
        (call.outputs[n], seed_of(framework, call.outputs[n], np.asarray(c), layout))
        for n, c in zip(numbers, cotangents, strict=True)
        if c is not None and n < len(call.outputs) and carries_gradient(framework, call.outputs[n])
    ]
    seeds = [seed for _, seed in given]
    inputs = list(call.leaves.values())
    outputs = [o for o, _ in given]
    found = pullback(framework, counters, outputs, inputs, seeds, retain=retain, exchanges=call.exchanges)
    arrays = framework.to_arrays(found)
    if returned is not None:
        returned.followed_by(found, arrays, framework.holds, keep=retain)
    return arrays


def seed_of(framework: Framework, output: Any, cotangent: NDArray[Any], layout: Layout) -> Any:
    """A cotangent of an output as a tensor that lies in memory as asked."""
    if layout is Layout.EXPANDED and cotangent.ndim and cotangent.size:
        return framework.like(output, cotangent[(slice(0, 1),) * cotangent.ndim]).reshape(-1)[0].expand(cotangent.shape)
    seed = framework.like(output, cotangent)
    return seed if layout is Layout.CONTIGUOUS else laid_out(framework, seed, layout)


def carries_gradient(framework: Framework, output: object) -> bool:
    """Whether an output of forward is a tensor that a gradient can be passed back from."""
    return framework.is_tensor(output) and bool(output.requires_grad)  # type: ignore[attr-defined]


@final
class TensorMap(VectorMap):
    """A derivative of some order of a Function, as a map on flat vectors.

    Order 1 is x -> f(x). Order k+1 is (point of order k, cotangent of order k) -> the gradient of order k, which is
    what backward returns for k = 1. The vjp of each is the framework's gradient through it: the claim.
    """

    def __init__(
        self,
        caller: Caller,
        active: Sequence[int],
        outputs: Sequence[int],
        order: int,
        domain: Space,
        codomain: Space,
        counters: Counters,
        lower: "TensorMap | None" = None,
        home: Home | None = None,
    ) -> None:
        self._home = home
        self._has_claimed = False
        self._exchanges: tuple[Exchange, ...] = ()
        self.domain = domain
        self.codomain = codomain
        self.framework: Framework = caller.framework
        self._caller = caller
        self._active = tuple(active)
        self._shared = len(self._active)
        """Leaves that may share the memory of a point, since forward gets clones of them; backward gets cotangents."""
        self._outputs = tuple(outputs)
        self._order = order
        self._counters = counters
        self._lower = self.below = lower
        self._tracked = order > 1 or caller.asks_for_grad

    @property
    def is_costly(self) -> bool:
        """Whether the user's code runs kernels in an interpreter."""
        return self.framework.kernels_run() > 0

    def value(self, x: FloatArray) -> FloatArray:
        """The map at `x`, shape (codomain.size,). Raises UserCodeError."""
        return self.values_at([x])[0]

    def values_at(self, points: Sequence[FloatArray]) -> list[FloatArray]:
        """The map at each point, shapes (codomain.size,). Raises UserCodeError."""
        return self._evaluated_at(points, self.codomain.flatten)

    def seen_at(self, x: FloatArray) -> FloatArray:
        """The map at `x`, in the memory of the output where it is a single one. Raises UserCodeError."""
        return self._evaluated_at([x], self.codomain.joined)[0]

    def _evaluated_at(
        self, points: Sequence[FloatArray], put: Callable[[Sequence[NDArray[Any]]], FloatArray]
    ) -> list[FloatArray]:
        try:
            with self._running(points):
                return [put(self.framework.as_arrays(self._values(x))) for x in points]
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "forward" if self._order == 1 else "backward") from error

    def _running(
        self, points: Sequence[FloatArray], *, recording: bool = False, forward: int | None = None
    ) -> UsersCode:
        """The context of calls at these points. The first call for gradients is at the user's own inputs."""
        asked = recording and self._home is not None and not self._has_claimed
        self._has_claimed = self._has_claimed or recording
        distance = None if self._home is None else partial(self._home.farthest, points)
        runs, own = len(points) if forward is None else forward, self.framework
        return users_code(own, silent=True, recording=recording, asked=asked, distance=distance, forward=runs)

    def _values(self, x: FloatArray) -> list[Any]:
        """The outputs at `x`, without recording a graph unless the user's code needs one.

        Code that registers a hook on an intermediate, or asks for a gradient itself, raises where nothing is recorded:
        what raises there alone says nothing of the point.
        """
        if self._tracked:
            return self._evaluated(x)
        try:
            with self.framework.namespace.no_grad():
                leaves = self.framework.leaves(self.domain.views(x), shared=self._shared, tracked=False)
                return self._evaluate(1, leaves)
        except (Exception, SystemExit):
            found = self._evaluated(x)
        self._tracked = True
        return found

    def _evaluated(self, x: FloatArray) -> list[Any]:
        with self.framework.namespace.enable_grad():
            return self._evaluate(self._order, self.framework.leaves(self.domain.views(x), shared=self._shared))

    def value_noise(self, x: FloatArray) -> FloatArray | None:
        """The rounding error of a gradient that comes from the values of the order below, None at order 1.

        The gradient of <u, f> has an error of at least about 16 eps |u f| / s, where s is the scale of x. It matters
        if the terms of a gradient cancel, as in a saturated softmax.
        """
        return super().value_noise(x) if self._lower is None else noise_of_gradient(self._lower, x)

    def depends(self, x: FloatArray) -> NDArray[np.bool_]:
        """Whether the graph leads from each input block to each output block, shape (outputs, inputs)."""
        with self._running([x], recording=True):
            tensors = self.framework.leaves(self.domain.views(x), shared=self._shared)
            outputs = self._evaluate(self._order, tensors, create_graph=True)
            ones = self.framework.namespace.ones_like
            rows = [
                pullback(self.framework, Counters(), [o], tensors, [ones(o)], retain=True, exchanges=self._exchanges)
                for o in outputs
            ]
        return np.array([[gradient is not None for gradient in row] for row in rows])

    def effort(self, x: FloatArray) -> Effort:
        """The lines of the user's code that the map runs at `x`, and how often."""
        return lines_run(lambda: self.value(x))

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """The claimed gradient of <cotangent, map> at `x`, shape (domain.size,)."""
        _, rows = self._gradients(x, np.asarray(cotangent, dtype=np.float64)[None], with_value=False)
        return rows.reshape(-1)

    def vjp_many(self, x: FloatArray, cotangents: FloatArray) -> FloatArray:
        """The claimed gradients for several cotangents (k, m), shape (k, n), from one forward where it can be kept."""
        return self.value_and_vjps(x, cotangents)[1]

    def value_and_vjps(self, x: FloatArray, cotangents: FloatArray) -> tuple[FloatArray | None, FloatArray]:
        """As `vjp_many`, and at order 1 the value from the same forward; one forward each where its graph is lost."""
        if self.retains:
            try:
                return self._gradients(x, cotangents, with_value=True)
            except UserCodeError:
                if len(cotangents) == 1:
                    raise
                self.retains = False
        rows = [self._gradients(x, row[None], with_value=False)[1] for row in cotangents]
        return None, np.concatenate(rows)

    def _gradients(
        self, x: FloatArray, cotangents: FloatArray, *, with_value: bool
    ) -> tuple[FloatArray | None, FloatArray]:
        framework = self.framework
        try:
            with self._running([x], recording=True):
                tensors = framework.leaves(self.domain.views(x), shared=self._shared)
                outputs = self._evaluate(self._order, tensors, create_graph=True)
                value = self.codomain.flatten(framework.as_arrays(outputs)) if with_value and self._order == 1 else None
                last = len(cotangents) - 1
                rows = np.empty((len(cotangents), self.domain.size))
                for number, cotangent in enumerate(cotangents):
                    seeds = framework.tensors(self.codomain.views(cotangent))
                    found = pullback(
                        framework, self._counters, outputs, tensors, seeds, retain=number < last, zeros=True,
                        exchanges=self._exchanges,
                    )  # fmt: skip
                    self.domain.flatten(framework.as_arrays(found), rows[number])
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "backward") from error
        return value, rows

    def value_and_vjps_beside(
        self, other: VectorMap, x: FloatArray, cotangents: FloatArray
    ) -> tuple[FloatArray | None, FloatArray, FloatArray | None]:
        """As two calls of `value_and_vjps`, but in one backward pass through both graphs if that works."""
        if isinstance(other, TensorMap) and len(cotangents) == 1 and self._order == other._order == 1:
            try:
                return self._together(other, x, cotangents[0])
            except (Exception, SystemExit):  # alone, each answers for itself
                return super().value_and_vjps_beside(other, x, cotangents)
        return super().value_and_vjps_beside(other, x, cotangents)

    def _together(
        self, other: "TensorMap", x: FloatArray, cotangent: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The value, and both gradients of one cotangent."""
        with self._running([x], recording=True, forward=2):
            ours, theirs = (m.framework.leaves(m.domain.views(x), shared=m._shared) for m in (self, other))
            outputs, beside = self._evaluate(1, ours), other._evaluate(1, theirs)
            value = self.codomain.flatten(self.framework.as_arrays(outputs))
            seeds = self.framework.tensors(self.codomain.views(cotangent))
            tensors = ours + theirs
            found = pullback(
                self.framework, self._counters, outputs + beside, tensors, seeds + seeds, zeros=True,
                exchanges=(*self._exchanges, *other._exchanges),
            )  # fmt: skip
            self._counters.backward += 1
            arrays = self.framework.as_arrays(found)
        own, other_rows = (self.domain.flatten(part)[None] for part in (arrays[: len(ours)], arrays[len(ours) :]))
        return value, own, other_rows

    def _evaluate(self, order: int, tensors: list[Any], *, create_graph: bool = False) -> list[Any]:
        """The map of `order` on tensors, one tensor per block of its codomain."""
        if order == 1:
            self._counters.forward += 1
            call = self._caller.run(dict(zip(self._active, tensors, strict=True)))
            self._exchanges = call.exchanges
            return [call.outputs[number] for number in self._outputs]
        split = len(tensors) - self._blocks(order - 1)[1]
        inputs, cotangents = tensors[:split], tensors[split:]
        with self.framework.namespace.enable_grad():
            lower = self._evaluate(order - 1, inputs, create_graph=True)
            return pullback(
                self.framework, self._counters, lower, inputs, cotangents, create_graph=create_graph, zeros=True,
                exchanges=self._exchanges,
            )  # fmt: skip

    def _blocks(self, order: int) -> tuple[int, int]:
        """The numbers of blocks in the domain and the codomain of the map of `order`."""
        domain, codomain = len(self._active), len(self._outputs)
        for _ in range(order - 1):
            domain, codomain = domain + codomain, domain
        return domain, codomain
