"""A function that returns its value and gradients of it: which of the returned values are what."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from gradcli.backends.numpy.claims import is_number
from gradcli.backends.numpy.layers import names_of_partners
from gradcli.backends.numpy.names import (
    argument_meant,
    names_returned,
    scalars_documented,
    seems_gradient,
    seems_no_gradient,
    seems_number,
    speaks_of_gradients,
)
from gradcli.errors import WithoutDerivativeError
from gradcli.frozen import dataclass

HOW = (
    "give its derivative with --grad module:attr (grad=... in Python, grad: in a spec), or let it return a number and "
    "its gradients, as SciPy's jac=True expects: an array, a tuple of them, or a dict with the arguments' names"
)
NO_GRADIENT = "{name} is a plain NumPy function without a derivative to check: " + HOW
_SEVERAL = (
    "{name} has more than one derivative by its name, {found}: say which one to check, as with --grad {first} "
    "(grad=... in Python, grad: in a spec)"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAndGradients:
    """What a function returned: the value, the gradients as a derivative would return them, and names of these."""

    value: Any
    gradients: Any
    names: tuple[str | None, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def note(self) -> str | None:
        """What was not read, for the report."""
        if not self.left_out:
            return None
        return f"{' and '.join(self.left_out)}, which the function returns as well, was read as no gradient"


@final
class ValueReader:
    """Tells the value of a function from its gradients: by names in the source, then by what was returned.

    (loss, grad) may be a value with its gradient or two outputs. It is the former if the names, the function's name or
    its documentation say so, or if the first is a number and nothing says that the others are none: `cache`, `probs`.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._names = names_returned(function)
        self._speaks = speaks_of_gradients(function)
        self._scalars = scalars_documented(function)

    def read(
        self, returned: object, arguments: Sequence[str], shapes: Mapping[str, tuple[int, ...]] | None = None
    ) -> ValueAndGradients:
        """The value and its gradients, for arguments with these names and shapes.

        Raises:
            WithoutDerivativeError: there are no gradients among what was returned.
            TypeError: the value has axes, and the gradients do not have the shapes of its derivatives.
        """
        if not isinstance(returned, tuple) or len(returned) < 2:
            raise WithoutDerivativeError(self._without())
        names = self._names.of(len(returned))
        found = self._by_names(returned, names, arguments)
        if found is None and self._is_plain(returned, names):
            found = _parts(returned, names, list(range(1, len(returned))), 0)
        if (
            found is None
            and len(returned) == 2
            and isinstance(returned[0], np.ndarray)
            and _may_follow(returned, names)
        ):
            found = _parts(returned, names, [1], 0)
        if found is None:
            raise WithoutDerivativeError(self._refusal(returned, names))
        is_number_meant = seems_number(self._name) or any(seems_number(name) for name in names if name)
        if not is_single(found.value) and (is_number_meant or not _is_derivative_of(found, shapes or {})):
            shape = np.shape(found.value)
            raise TypeError(
                f"expected {self._name} to return a number with its gradients, or an array with an elementwise "
                f"derivative or a Jacobian, got a value of shape {shape}"
            )
        return found

    def _by_names(
        self, returned: Sequence[Any], names: Sequence[str | None], arguments: Sequence[str]
    ) -> ValueAndGradients | None:
        """The values that are named as gradients, and dicts; the value is the first of the others."""
        places = [
            place
            for place, (value, name) in enumerate(zip(returned, names, strict=True))
            if _is_gradients(value) and _is_named(value, name, arguments)
        ]
        if places and is_single(returned[0]) and 0 not in places:  # the others may be expressions, without names
            places = [
                place
                for place in range(1, len(returned))
                if place in places or (names[place] is None and _is_gradients(returned[place]))
            ]
        others = [place for place in range(len(returned)) if place not in places]
        if not places or not others:
            return None
        first = next((place for place in others if is_single(returned[place])), others[0])
        if not isinstance(returned[first], np.ndarray) and not is_number(returned[first]):
            return None
        return _parts(returned, names, places, first)

    def _is_plain(self, returned: Sequence[Any], names: Sequence[str | None]) -> bool:
        """Whether a number comes first, and what nothing says to be no gradients follows."""
        if not is_single(returned[0]) and not (self._speaks and isinstance(returned[0], np.ndarray)):
            return False
        rest, called = returned[1:], names[1:]
        if not all(map(_is_gradients, rest)):
            return False
        if any(map(seems_no_gradient, called)) and not (self._speaks and len(rest) == 1):
            return False
        is_told = self._speaks or len(rest) in (1, self._scalars)  # one number for each scalar argument
        return is_told or not any(map(is_number, rest))

    def _without(self) -> str:
        """Why there is nothing to check: no derivative was found, or more than one."""
        found = names_of_partners(self._function)
        if len(found) < 2:
            return NO_GRADIENT.format(name=self._name)
        return _SEVERAL.format(name=self._name, found=" and ".join(found), first=found[0])

    def _refusal(self, returned: Sequence[Any], names: Sequence[str | None]) -> str:
        shown = ", ".join(name or _described(value) for name, value in zip(names, returned, strict=True))
        kinds = ", ".join(map(_described, returned))
        return (
            f"{self._name} returns ({shown}), which gradcli does not read as a value and its gradients (got {kinds}): "
            + HOW
        )


def _may_follow(returned: Sequence[Any], names: Sequence[str | None]) -> bool:
    """Whether what comes second may be a gradient."""
    return _is_gradients(returned[1]) and not seems_no_gradient(names[1])


def _is_derivative_of(found: ValueAndGradients, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the gradients have the shape of an elementwise derivative of an array, or of a Jacobian."""
    several = found.gradients if isinstance(found.gradients, tuple) else (found.gradients,)
    own = np.shape(found.value)
    for name, each in zip(found.names, several, strict=True):
        meant = argument_meant(name, shapes)
        inputs = list(shapes.values()) if meant is None else [shapes[meant]]
        if np.shape(each) not in [own + shape for shape in inputs] + [own for shape in inputs if shape == own]:
            return False
    return True


def is_single(value: object) -> bool:
    """Whether a value is one number, in an array or not."""
    return is_number(value) or (isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "fc")


def _parts(
    returned: Sequence[Any], names: Sequence[str | None], places: Sequence[int], value: int
) -> ValueAndGradients:
    """The value at one place, and as gradients those at others: one alone, or a tuple."""
    chosen = tuple(returned[place] for place in places)
    left = [place for place in range(len(returned)) if place not in places and place != value]
    return ValueAndGradients(
        value=returned[value],
        gradients=chosen[0] if len(chosen) == 1 else chosen,
        names=tuple(names[place] for place in places),
        left_out=tuple(names[place] or f"value {place}" for place in left),
    )


def _is_gradients(value: object) -> bool:
    """Whether a value may be a gradient, or a container of them."""
    if isinstance(value, Mapping):
        return bool(value)
    if isinstance(value, tuple | list):
        return bool(value) and all(map(_is_gradients, value))
    return is_number(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "fciu")


def _is_named(value: object, name: str | None, arguments: Sequence[str]) -> bool:
    """Whether a value is named as a gradient is; or it is a dict without the name of something else."""
    if seems_gradient(name) or argument_meant(name, arguments) is not None:
        return True
    return isinstance(value, Mapping) and not seems_no_gradient(name)


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return "a number" if is_number(value) else f"a {type(value).__name__}"
