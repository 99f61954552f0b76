"""A function of arrays as the numerics call it: compiled once, if plain calls would compile its loops every time."""

import contextlib
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument

if TYPE_CHECKING:
    from gradcli.backends.arrays.transforms import Transforms

Tensors = Sequence[Any]

_PLAIN = (bool, int, float, complex, str, type(None))

_ROUNDING = 128 * 2.0**-24
"""Relative; what the comparison of compiled calls with others allows, for computations in float32."""

_CONFIRMED = 2
"""Calls compared with plain ones; the pull-back's first is one of dense cotangents, since the gradient for a single
entry may be zero in both."""


@final
class Program:
    """A function with its pull-back, for hundreds of calls at arrays of the same shapes.

    JAX compiles a loop (`while_loop`, `scan`) again in every call if its body is defined inside the user's function,
    which takes a tenth of a second. Such a function is compiled as a whole, once. It is called without compilation
    if it cannot be compiled, or if one of the first compiled calls gives other values than a plain call.
    """

    def __init__(self, transforms: "Transforms", function: Callable[..., Any], *, compiled: bool) -> None:
        self._transforms = transforms
        self._function = function
        self._is_compiled = compiled
        self._confirmed: Counter[Callable[..., Any]] = Counter()
        self._is_counted = False
        self._trips: Callable[..., Any] | None = None
        self._value = transforms.compiled(function)
        self._pull = transforms.compiled(self._pulled)

    def value(self, tensors: Tensors) -> tuple[Any, ...]:
        """The outputs."""
        return self._called(self._value, self._function, *tensors)

    def pull_back(self, tensors: Tensors, rows: Sequence[Tensors]) -> list[tuple[Any, ...]]:
        """The gradients for several sets of cotangents."""
        if self._is_compiled and rows and not self._confirmed[self._pull]:
            self._called(self._pull, self._pulled, tuple(tensors), self._dense(rows[0]))
        if self._is_compiled:
            return [self._called(self._pull, self._pulled, tuple(tensors), tuple(row)) for row in rows]
        _, pull = self._transforms.adjoint(self._function, *tensors)
        return [pull(row) for row in rows]

    def trips(self, tensors: Tensors) -> int | None:
        """The number of iterations of the function's compiled loops; None if it has none that can be counted."""
        if not self._is_counted:
            self._is_counted = True
            self._trips = self._transforms.trips_of(self._function, *tensors)
        try:
            return None if self._trips is None else int(self._trips(*tensors))
        except Exception:  # what keeps it from being compiled; the loops run all the same
            self._trips = None
            return None

    def confirm_again(self) -> None:
        """Compare the next compiled call of each kind with a plain one: other inputs may take another branch."""
        for compiled, times in self._confirmed.items():
            self._confirmed[compiled] = min(times, _CONFIRMED - 1)

    def _dense(self, row: Tensors) -> Tensors:
        """These cotangents with every zero replaced by another number."""
        like, rng = self._transforms.framework, np.random.default_rng(0)
        return tuple(like.from_array(rng.uniform(0.5, 1.5, np.shape(c)), like.dtype_name(c)) for c in row)

    def _pulled(self, tensors: Tensors, row: Tensors) -> tuple[Any, ...]:
        return self._transforms.adjoint(self._function, *tensors)[1](row)

    def _called(self, compiled: Callable[..., Any], plain: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
        if self._is_compiled and self._confirmed[compiled] >= _CONFIRMED:
            return compiled(*arguments)  # type: ignore[no-any-return]  # as the function itself
        result: tuple[Any, ...] = plain(*arguments)
        if self._is_compiled:
            self._is_compiled = self._agrees(compiled, arguments, result)
            self._confirmed[compiled] += 1
        return result

    def _agrees(self, compiled: Callable[..., Any], arguments: Sequence[Any], wanted: tuple[Any, ...]) -> bool:
        """Whether a compiled function runs, and returns what the plain one returned, up to rounding."""
        try:
            found = compiled(*arguments)
        except Exception:  # the plain call has run, so that this is the compiler's refusal
            return False
        arrays = self._transforms.framework.to_array
        return all(_close(arrays(one), arrays(other)) for one, other in zip(found, wanted, strict=True))


def signature(arguments: Sequence[Argument], active: Sequence[int]) -> Hashable:
    """What a compiled function depends on: the arguments, except for the values of the active ones.

    A value that is neither a tensor nor a plain one is known by its identity, which no other has as long as a program
    holds on to it.
    """
    parts: list[Hashable] = []
    for position, argument in enumerate(arguments):
        value = argument.value
        what: Hashable = id(value)
        if argument.is_tensor:
            what = (value.shape, argument.dtype_name, None if position in active else value.tobytes())
        elif isinstance(value, _PLAIN):
            what = (type(value), repr(value))
        parts.append((argument.name, argument.keyword, position in active, what))
    return tuple(parts)


def _close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays are equal up to rounding; a compiler may add in another order."""
    largest = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    return bool(np.allclose(one, other, rtol=0.0, atol=_ROUNDING * largest, equal_nan=True))


Variant = Callable[[Tensors, Tensors], tuple[tuple[Any, ...], tuple[Any, ...]]]
"""A call at a point with cotangents: the outputs and the gradients."""


def compiled_variants(transforms: "Transforms", function: Callable[..., Any]) -> tuple[Variant, ...]:
    """Two ways to compile a function and its gradient: differentiate the compiled function, or compile the gradient.

    A loop whose body is a closure may run only in the second: the first takes what the rule's fwd has traced for a
    constant.
    """

    def differentiated(tensors: Tensors, seeds: Tensors) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return pulled(transforms, transforms.compiled(function), tensors, seeds)

    def whole(tensors: Tensors, seeds: Tensors) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        gradient = transforms.compiled(_gradient_of(transforms, function, len(tensors)))
        return transforms.compiled(function)(*tensors), gradient(*tensors, *seeds)

    return differentiated, whole


def pulled(
    transforms: "Transforms", function: Callable[..., Any], tensors: Tensors, seeds: Tensors
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The outputs of a function, and its gradients for these cotangents."""
    found, pull = transforms.adjoint(function, *tensors)
    return found, pull(seeds)


def first_that_runs(
    variants: Sequence[Variant], tensors: Tensors, seeds: Tensors
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The result of the first variant that does not raise. Raises the last error if all of them do."""
    for variant in variants[:-1]:
        with contextlib.suppress(Exception):  # the function runs compiled if one of them does
            return variant(tensors, seeds)
    return variants[-1](tensors, seeds)


def of_order(
    transforms: "Transforms", order: int, function: Callable[..., Any], inputs: int, outputs: int
) -> Callable[..., Any]:
    """The function whose derivative is checked at `order`: itself, then (point, cotangents) -> gradients, and so on."""
    for _ in range(order - 1):
        function = _gradient_of(transforms, function, inputs)
        inputs, outputs = inputs + outputs, inputs
    return function


def _gradient_of(transforms: "Transforms", function: Callable[..., Any], inputs: int) -> Callable[..., Any]:
    def gradient(*tensors: Any) -> tuple[Any, ...]:
        _, pull = transforms.adjoint(function, *tensors[:inputs])
        return pull(tensors[inputs:])

    return gradient
