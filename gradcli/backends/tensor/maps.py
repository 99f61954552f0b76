"""The maps whose derivatives are checked: forward, backward as a function of input and cotangent, and so on."""

from collections.abc import Sequence
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Counters
from gradcli.backends.effort import lines_run
from gradcli.backends.guard import UsersCode, user_code_error, users_code
from gradcli.backends.home import Home
from gradcli.backends.tensor.call import Caller, pullback
from gradcli.backends.tensor.framework import Framework
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import Effort, VectorMap
from gradcli.numerics.sampling.directions import entry_scales

FloatArray = NDArray[np.float64]
_ROUNDING = 2.0**-53
_ROWS_ASKED = 64
_ALIKE = 2.0**10
"""Where neither the outputs' errors nor the inputs' sizes differ by more, none of them can drown another."""


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
        self.domain = domain
        self.codomain = codomain
        self.has_jvp = False
        self.framework: Framework = caller.framework
        self._caller = caller
        self._active = tuple(active)
        self._shared = len(self._active)
        """Leaves that may share the memory of a point, since forward gets clones of them; backward gets cotangents."""
        self._outputs = tuple(outputs)
        self._order = order
        self._counters = counters
        self._lower = lower
        self._retainable = True
        self._tracked = order > 1

    @property
    def is_costly(self) -> bool:
        """Whether the user's code runs kernels in an interpreter."""
        return self.framework.kernels_run() > 0

    def value(self, x: FloatArray) -> FloatArray:
        """The map at `x`, shape (codomain.size,). Raises UserCodeError."""
        return self.values_at([x])[0]

    def values_at(self, points: Sequence[FloatArray]) -> list[FloatArray]:
        """The map at each point, shapes (codomain.size,). Raises UserCodeError."""
        try:
            with self._running(points):
                return [self._flat(self._values(x)) for x in points]
        except (Exception, SystemExit) as error:
            raise user_code_error(error, "forward" if self._order == 1 else "backward") from error

    def _running(
        self, points: Sequence[FloatArray], *, recording: bool = False, forward: int | None = None
    ) -> UsersCode:
        """The context of calls at these points. The first call for gradients is at the user's own inputs."""
        asked = recording and self._home is not None and not self._has_claimed
        self._has_claimed = self._has_claimed or recording
        distance = None if self._home is None else partial(self._home.farthest, points)
        runs = len(points) if forward is None else forward
        return users_code(
            self.framework, silent=True, recording=recording, asked=asked, distance=distance, forward=runs
        )

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
            grad, ones_like = (
                self.framework.namespace.autograd.grad,
                self.framework.namespace.ones_like,
            )
            rows = [
                [
                    g is not None
                    for g in grad([output], tensors, [ones_like(output)], retain_graph=True, allow_unused=True)
                ]
                if output.requires_grad
                else [False] * len(tensors)
                for output in outputs
            ]
        return np.array(rows)

    def effort(self, x: FloatArray) -> Effort:
        """The lines of the user's code that the map runs at `x`, and how often."""
        return lines_run(lambda: self.value(x))

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """The claimed gradient of <cotangent, map> at `x`, shape (domain.size,)."""
        rows = self._gradients(x, np.asarray(cotangent, dtype=np.float64)[None], with_value=False)[1]
        row: FloatArray = rows[0]
        return row

    def vjp_many(self, x: FloatArray, cotangents: FloatArray) -> FloatArray:
        """The claimed gradients for several cotangents (k, m), shape (k, n), from one forward where it can be kept."""
        return self._from_one_forward(x, cotangents, with_value=False)[1]

    def value_and_vjps(self, x: FloatArray, cotangents: FloatArray) -> tuple[FloatArray | None, FloatArray]:
        """As `vjp_many`, and at order 1 the value from the same forward."""
        return self._from_one_forward(x, cotangents, with_value=True)

    def _from_one_forward(
        self, x: FloatArray, cotangents: FloatArray, *, with_value: bool
    ) -> tuple[FloatArray | None, FloatArray]:
        """From one forward, or from one for each cotangent where its graph cannot be kept."""
        if self._retainable:
            try:
                return self._gradients(x, cotangents, with_value=with_value)
            except UserCodeError:
                if len(cotangents) == 1:
                    raise
                self._retainable = False
        rows = [self._gradients(x, row[None], with_value=False)[1] for row in cotangents]
        return None, np.concatenate(rows)

    def _gradients(
        self, x: FloatArray, cotangents: FloatArray, *, with_value: bool
    ) -> tuple[FloatArray | None, FloatArray]:
        framework = self.framework
        try:
            with self._running([x], recording=True):
                tensors = self.framework.leaves(self.domain.views(x), shared=self._shared)
                outputs = self._evaluate(self._order, tensors, create_graph=True)
                value = self._flat(outputs) if with_value and self._order == 1 else None
                last = len(cotangents) - 1
                rows = np.empty((len(cotangents), self.domain.size))
                for number, cotangent in enumerate(cotangents):
                    seeds = framework.tensors(self.codomain.views(cotangent))
                    found = pullback(
                        framework, self._counters, outputs, tensors, seeds, retain=number < last, zeros=True
                    )
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
            ours, theirs = (
                self.framework.leaves(self.domain.views(x), shared=self._shared),
                other.framework.leaves(other.domain.views(x), shared=other._shared),
            )
            outputs, beside = self._evaluate(1, ours), other._evaluate(1, theirs)
            value = self._flat(outputs)
            seeds = self.framework.tensors(self.codomain.views(cotangent))
            tensors = ours + theirs
            found = pullback(self.framework, self._counters, outputs + beside, tensors, seeds + seeds, zeros=True)
            self._counters.backward += 1
            arrays = self.framework.as_arrays(found)
        half = len(ours)
        return value, self.domain.flatten(arrays[:half])[None], self.domain.flatten(arrays[half:])[None]

    def _flat(self, outputs: list[Any]) -> FloatArray:
        return self.codomain.flatten(self.framework.as_arrays(outputs))

    def _evaluate(self, order: int, tensors: list[Any], *, create_graph: bool = False) -> list[Any]:
        """The map of `order` on tensors, one tensor per block of its codomain."""
        if order == 1:
            self._counters.forward += 1
            outputs = self._caller.run(dict(zip(self._active, tensors, strict=True))).outputs
            return [outputs[number] for number in self._outputs]
        split = len(tensors) - self._blocks(order - 1)[1]
        inputs, cotangents = tensors[:split], tensors[split:]
        with self.framework.namespace.enable_grad():
            lower = self._evaluate(order - 1, inputs, create_graph=True)
            return pullback(
                self.framework, self._counters, lower, inputs, cotangents, create_graph=create_graph, zeros=True
            )

    def _blocks(self, order: int) -> tuple[int, int]:
        """The numbers of blocks in the domain and the codomain of the map of `order`."""
        domain, codomain = len(self._active), len(self._outputs)
        for _ in range(order - 1):
            domain, codomain = domain + codomain, domain
        return domain, codomain


def space_of(names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> Space:
    """A space with one block for each array, in 64-bit precision."""
    blocks = tuple(
        Block(name=name, shape=array.shape, dtype="complex128" if array.dtype.kind == "c" else "float64")
        for name, array in zip(names, arrays, strict=True)
    )
    return Space(blocks=blocks)


def spaces_of_order(order: int, domain: Space, codomain: Space) -> tuple[Space, Space]:
    """The domain and codomain of the derivative map of `order`, from those of forward."""
    for level in range(1, order):
        cotangents = tuple(
            Block(
                name=f"grad_{block.name}" if level == 1 else f"grad{level}_{block.name}",
                shape=block.shape,
                dtype=block.dtype,
            )
            for block in codomain.blocks
        )
        domain, codomain = Space(blocks=domain.blocks + cotangents), domain
    return domain, codomain


def noise_of_gradient(lower: VectorMap, x: FloatArray) -> FloatArray:
    """The rounding error of the gradient of `lower` at x, a point of `lower` and a cotangent.

    The gradient of <u, f> has an error of at least about 16 eps |u f| / s, where s is the scale of x.
    """
    base, cotangent = x[: lower.domain.size], x[lower.domain.size :]
    with np.errstate(all="ignore"):
        level = 16 * _ROUNDING * np.abs(lower.value(base))
        below = lower.value_noise(base)
        level = level if below is None else level + below
        size = np.abs(cotangent) * level
        size = np.where(np.isfinite(size), size, 0.0)
    scales = entry_scales(lower.domain, base)
    alike = _spread(size) <= _ALIKE and _spread(scales) <= _ALIKE
    noise: FloatArray = (float(np.linalg.norm(size)) if alike else _reaching(lower, base, size)) / scales
    return noise


def _spread(sizes: FloatArray) -> float:
    """The ratio of the largest to the smallest of the sizes that are not zero; 1 if all are."""
    some = sizes[sizes > 0]
    return float(some.max() / some.min()) if some.size else 1.0


def _reaching(lower: VectorMap, base: FloatArray, size: FloatArray) -> FloatArray | float:
    """The norm of the errors `size` of the lower map's values that reach each entry of its gradient.

    An output that does not depend on an entry adds no error there; otherwise the error of an output of 1e8 would hide
    a gradient of 1e-8. Few outputs are differentiated one by one, many are taken together.
    """
    if size.size > _ROWS_ASKED:
        return float(np.linalg.norm(size))
    rows = lower.vjp_many(base, np.eye(size.size))
    reached: FloatArray = np.sqrt((size * size) @ (rows != 0))
    return reached
