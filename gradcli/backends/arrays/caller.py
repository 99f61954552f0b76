"""Calls of a function of arrays: inputs are put into their places, and containers (pytrees) put together again."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.arrays.subject import Gradients
from gradcli.backends.arrays.trees import assembled
from gradcli.cases import Argument

if TYPE_CHECKING:
    from gradcli.backends.arrays.transforms import Transforms

KEYS = ("key", "typed-key")
"""The domains of random keys."""


@final
class ArrayCaller:
    """Calls a function with arrays in the places of its inputs; every method has to be called inside `running`.

    Arrays in the places of `constants` are never traced: a rule is given them as they are.
    """

    def __init__(
        self,
        transforms: "Transforms",
        function: Any,
        arguments: Sequence[Argument],
        *,
        constants: frozenset[int] = frozenset(),
    ) -> None:
        self._constants = constants
        self.framework = transforms.framework
        self._transforms = transforms
        self._function = function
        self._arguments = tuple(arguments)

    def run(self, values: dict[int, Any]) -> list[Any]:
        """The leaves of what the function returns."""
        given = {i: self._given(i, v) if isinstance(v, np.ndarray) else v for i, v in values.items()}
        whole = assembled(self._arguments, given, self._transforms)
        positional = [value for argument, value in whole if not argument.keyword]
        keywords = {argument.name: value for argument, value in whole if argument.keyword}
        leaves = [leaf for _, leaf in self._transforms.leaves(self._function(*positional, **keywords))]
        return [self.framework.namespace.asarray(x) if isinstance(x, int | float | complex) else x for x in leaves]

    def rehearse(self, values: dict[int, NDArray[Any]]) -> bool:
        """Run the function on shapes only, so that errors appear early; false for one that needs values."""
        return self._transforms.rehearse(lambda given: self.run({**values, **given}), self.traced(values))

    def traced(self, values: dict[int, NDArray[Any]]) -> dict[int, Any]:
        """Those of the tensors that a trace may replace."""
        fixed = self._constants | {i for i, a in enumerate(self._arguments) if a.domain in KEYS}
        return {i: self.framework.from_array(v) for i, v in values.items() if i not in fixed}

    def on(self, active: Sequence[int], outputs: Sequence[int], values: dict[int, Any]) -> Callable[..., Any]:
        """The function of its active inputs alone, returning the tuple of its differentiable outputs."""

        def function(*tensors: Any) -> tuple[Any, ...]:
            found = self.run({**values, **dict(zip(active, tensors, strict=True))})
            return tuple(found[number] for number in outputs)

        return function

    def gradients_of_sum(self, values: dict[int, NDArray[Any]], tracked: Sequence[int]) -> Gradients:
        """The gradients for cotangents of ones; None where only zeros arrive."""
        kinds = [np.dtype(o.dtype).kind if self.framework.is_tensor(o) else "O" for o in self.run(values)]
        outputs = [number for number, kind in enumerate(kinds) if kind in "fcV"]
        function = self.on(tracked, outputs, values)
        found, pull = self._transforms.adjoint(function, *(self.framework.from_array(values[i]) for i in tracked))
        like = self.framework
        gradients = pull(tuple(like.from_array(np.ones(o.shape), like.dtype_name(o)) for o in found))
        arrays = [self.framework.to_array(g) for g in gradients]
        return tuple(a if np.any(a) else None for a in arrays)

    def given(self, values: dict[int, NDArray[Any]]) -> dict[int, Any]:
        """These values as the function takes them."""
        return {i: self._given(i, v) for i, v in values.items()}

    def _given(self, position: int, array: NDArray[Any]) -> Any:
        domain = self._arguments[position].domain
        if domain in KEYS:
            return self._transforms.key(array, typed=domain == "typed-key")
        return self._transforms.constant(array) if position in self._constants else self.framework.from_array(array)
