"""Calling a NumPy function and its hand-written derivative on arrays, and reading what they return."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.arrays.subject import Arrays, Gradients
from gradcli.backends.arrays.trees import assembled
from gradcli.backends.numpy.binding import DerivativeBinding
from gradcli.backends.numpy.claims import (
    Claim,
    GradientPair,
    floating_positions,
    needed_positions,
    pulled_back,
)
from gradcli.backends.numpy.names import Names, data_documented, is_offset, name_returned, names_returned
from gradcli.backends.numpy.placements import TREES, left_out_note, order_note, placed, units_of
from gradcli.backends.numpy.values import ValueAndGradients, ValueReader
from gradcli.backends.owners import tensors_framework
from gradcli.cases import Argument, InputSpec
from gradcli.errors import OtherFrameworkError, counted

_MOST_COMBINATIONS = 1_000
"""So many choices of inputs are compared with the shapes of what was returned for fewer inputs than there are."""


class UnfitGradientError(ValueError):
    """A gradient of another shape than its input; `lacks_a_sum` if it is that of an offset, not summed over a batch."""

    def __init__(self, name: str, position: int, got: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        super().__init__(
            f"the derivative returned an invalid gradient at index {position} - got {list(got)} but expected shape "
            f"compatible with {list(wanted)}"
        )
        is_longer = len(got) > len(wanted) > 0 and got[len(got) - len(wanted) :] == wanted
        self.lacks_a_sum = is_longer and is_offset(name)


@final
class PairCaller:
    """Calls a function and its derivative on arrays, and reads what they return.

    `needed` are the positions of the arrays for which the derivative may return a gradient each, and no others.
    """

    def __init__(
        self, pair: GradientPair, name: str, arguments: Sequence[Argument], needed: Sequence[int] | None = None
    ) -> None:
        self._pair = pair
        self._name = name
        self._arguments = tuple(arguments)
        self.needed = tuple(needed_positions(arguments) if needed is None else needed)
        self._units = units_of(self._arguments)
        keywords = [argument.name for argument in arguments if argument.keyword]
        positional = len(self._units) - len(keywords)
        own = pair.gradient
        self._reader = ValueReader(pair.function, name) if own is None else None
        self._names = names_returned(own) if own is not None else Names()
        self._single = None if own is None else name_returned(own)
        self._data = frozenset() if own is None else data_documented(pair.function, {unit.name for unit in self._units})
        self._binding = None if own is None else DerivativeBinding(pair.function, own, positional, keywords)
        self.is_vjp = self._binding is not None and self._binding.takes_cotangent

    def run(self, values: dict[int, NDArray[Any]]) -> object:
        """Call the function on these arrays, and the arguments' own values elsewhere."""
        positional, keywords = self._given(values)
        return self._pair.function(*positional, **keywords)

    def outputs(self, returned: object) -> tuple[NDArray[Any], ...]:
        """What the function returned as arrays; a tuple is several outputs."""
        if self._pair.gradient is None:
            returned = self._split(returned).value
        several = returned if isinstance(returned, tuple) else (returned,)
        arrays = tuple(np.array(value) for value in several)
        for value, array in zip(several, arrays, strict=True):
            if array.dtype.kind not in "biufc":
                raise TypeError(f"{self._name} returned {type(value).__name__}, expected numbers or arrays of numbers")
        return arrays

    def derivative(self, values: dict[int, NDArray[Any]], outputs: Sequence[Any], cotangents: Arrays) -> object:
        """Call the derivative; as a vjp with the cotangent, a tuple of them for several outputs."""
        gradient = self._pair.gradient
        if gradient is None:
            return self._split(self.run(values))
        if not self.is_vjp:
            if len(outputs) > 1:
                raise TypeError(
                    f"{self._name} returns {len(outputs)} outputs: its derivative must be a vjp, which takes a tuple "
                    "of cotangents as its last argument"
                )
            return self._derived(gradient, values)
        floating = iter(cotangents)
        given = tuple(next(floating) if o.dtype.kind in "fc" else np.zeros(o.shape) for o in outputs)
        return self._derived(gradient, values, given if len(given) > 1 else given[0])

    def tried(self, outputs: Sequence[NDArray[Any]], values: dict[int, NDArray[Any]]) -> Gradients:
        """The gradients that are claimed, for cotangents of ones; None for one whose shape is no derivative's.

        Raises:
            ValueError: another number of values than of arguments, a pulled back cotangent of other sizes than its
                input, or a derivative that is read as elementwise where the function is not: these inputs are hardly
                the ones that the pair was written for.
        """
        floating = [output for output in outputs if output.dtype.kind in "fc"]
        ones = [np.ones_like(output) for output in floating]
        found = self.placed(self.derivative(values, outputs, ones))
        made: list[NDArray[Any] | None] = []
        for position in (i for i, a in enumerate(self._arguments) if a.is_tensor and a.requires_grad and i in found):
            returned = found[position]
            claim = None if returned is None else self.claim(returned, position, floating, ones)
            tells = self.is_vjp or (self._pair.gradient is None and floating[0].size == 1)
            if tells and claim is not None and not claim.fits:
                got, wanted = np.asarray(returned).shape, values[position].shape
                raise UnfitGradientError(self._arguments[position].name, position, got, wanted)
            made.append(claim.value if claim is not None and (claim.fits or self.is_vjp) else None)
            if not self.is_vjp and not self._is_read_well(returned, position, values, floating[0]):
                name = self._arguments[position].name
                raise ValueError(
                    f"the derivative with respect to {name} has the shape of {name}, as for an elementwise function, "
                    "but this function is not elementwise: return a Jacobian, or give a vjp"
                )
        return tuple(made)

    def _is_read_well(
        self, returned: object, position: int, values: dict[int, NDArray[Any]], output: NDArray[Any]
    ) -> bool:
        """Whether a derivative is not taken for an elementwise one, or the function is elementwise indeed."""
        x = values[position]
        if returned is None or output.ndim == 0 or not np.asarray(returned).shape == x.shape == output.shape:
            return True
        return x.size > 1 and self._is_elementwise(position, values, output)

    def _is_elementwise(self, position: int, values: dict[int, NDArray[Any]], output: NDArray[Any]) -> bool:
        """Whether changing every other entry of an input changes no further entry of the output."""
        x = np.array(values[position])
        moved = np.arange(x.size).reshape(x.shape) % 2 == 0
        other = self.outputs(self.run({**values, position: np.where(moved, x * 1.25 + 0.125, x)}))
        return other[0].shape == output.shape and bool(np.array_equal(other[0][~moved], output[~moved], equal_nan=True))

    def placed(self, returned: object) -> dict[int, object]:
        """What the derivative returned for each argument. Raises ValueError for another number of values."""
        found = self.read(returned)
        if isinstance(found, int):
            raise ValueError(
                f"the derivative returned {counted(found, 'value')} for "
                f"{counted(len(self._arguments), 'argument')}: return one for each"
            )
        return found

    def read(self, returned: object) -> dict[int, object] | int:
        """What the derivative returned for each argument; the number of values if it fits no arguments."""
        if isinstance(returned, ValueAndGradients):
            return placed(returned.gradients, self._arguments, self.needed, names=returned.names, by_name=True)
        names = self._names.of(len(returned)) if isinstance(returned, tuple) else (self._single,)
        by_name = self._pair.is_layer
        return placed(returned, self._arguments, self.needed, names=names, by_name=by_name, data=self._data)

    def readings_of(self, returned: object) -> tuple[str, ...]:
        """How what the derivative returned was read, where that is not plain."""
        whole = returned.gradients if isinstance(returned, ValueAndGradients) else returned
        left = returned.note if isinstance(returned, ValueAndGradients) else None
        found = self.read(returned)
        read = order_note(found, self._arguments, whole), left_out_note(found, self._arguments, whole)
        notes = (self._pair.note, left, *read)
        return tuple(note for note in notes if note)

    def advice(self, returned: object, outputs: Sequence[NDArray[Any]], cotangents: Arrays) -> str | None:
        """How to declare inputs that need no gradient, if fewer values were returned than there are floating arrays.

        Named are the inputs left if each returned value is the derivative by an input of its shape, in order.
        """
        floating = floating_positions(self._arguments)
        returned = returned.gradients if isinstance(returned, ValueAndGradients) else returned
        if not isinstance(returned, tuple | list) or not 0 < len(returned) < len(floating):
            return None
        found = itertools.islice(itertools.combinations(floating, len(returned)), _MOST_COMBINATIONS)
        fitting = (chosen for chosen in found if self._fit(chosen, returned, outputs, cotangents))
        if (chosen := next(fitting, None)) is None:
            return "inputs that need no gradient can be declared with -i NAME=SHAPE,grad=false"
        left = [self._arguments[i] for i in floating if i not in chosen]
        flags = " ".join(InputSpec(name=a.name, shape=a.shape, requires_grad=False).as_flag() for a in left)
        names, one = " and ".join(a.name for a in left), len(left) == 1
        verb, object_ = ("needs", "it") if one else ("need", "them")
        return f"if {names} {verb} no gradient, declare {object_} with {flags}"

    def _fit(
        self, chosen: Sequence[int], returned: Sequence[object], outputs: Sequence[NDArray[Any]], cotangents: Arrays
    ) -> bool:
        """Whether each returned value has a shape of the derivative by the chosen input in its place."""
        pairs = zip(chosen, returned, strict=True)
        return all(value is not None and self.claim(value, i, outputs, cotangents).fits for i, value in pairs)

    def gradient(
        self, found: dict[int, object], position: int, outputs: Sequence[NDArray[Any]], cotangents: Arrays
    ) -> NDArray[Any] | None:
        """The gradient of one input. Raises ValueError where its shape is none that a derivative can have."""
        returned = found.get(position)
        if returned is None:
            return None
        claim = self.claim(returned, position, outputs, cotangents)
        if not claim.fits:
            name, shape = self._arguments[position].name, self._arguments[position].value.shape
            raise ValueError(
                f"the derivative with respect to {name} has shape {np.asarray(returned).shape}, expected {shape} or a "
                f"Jacobian of shape {outputs[0].shape + shape}"
            )
        return claim.value.real if self._arguments[position].value.dtype.kind == "f" else claim.value

    def claim(self, returned: object, position: int, outputs: Sequence[NDArray[Any]], cotangents: Arrays) -> Claim:
        """What was returned for one input, pulled back along the cotangents."""
        x = np.asarray(self._arguments[position].value)
        return pulled_back(np.asarray(returned), x, outputs[0], cotangents[0], is_vjp=self.is_vjp)

    def _split(self, returned: object) -> ValueAndGradients:
        if (framework := tensors_framework(returned)) is not None:
            raise OtherFrameworkError(
                f"{self._name} was called with NumPy arrays and returned a tensor of {framework}: expected NumPy "
                "arrays or numbers",
                framework,
            )
        if self._reader is None:
            raise TypeError(f"{self._name} has a derivative of its own")
        shapes = {a.name: a.value.shape for a in self._arguments if a.is_tensor and a.value.dtype.kind in "fc"}
        return self._reader.read(returned, [unit.name for unit in self._units], shapes)

    def _derived(self, gradient: Callable[..., Any], values: dict[int, NDArray[Any]], *cotangent: object) -> object:
        positional, keywords = self._given(values)
        if self._binding is None:
            return gradient(*positional, *cotangent, **keywords)
        return self._binding.call(gradient, positional, keywords, *cotangent)

    def _given(self, values: dict[int, NDArray[Any]]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments by position, and those by keyword; containers are put together."""
        own = {i: values.get(i, a.value) for i, a in enumerate(self._arguments) if a.is_tensor}
        whole = assembled(self._arguments, own, TREES)
        return [v for a, v in whole if not a.keyword], {a.name: v for a, v in whole if a.keyword}
