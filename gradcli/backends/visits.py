"""What calls beside those at the given arguments were like: at others, and after their result was released."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from gradcli.cases import Argument

Outputs = tuple[NDArray[Any], ...]
Seeds = Callable[[Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]
"""Makes a cotangent for each of the differentiable outputs."""
Values = Mapping[int, NDArray[Any]]
"""Of active inputs, by position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a call at other arguments gave.

    `numbers` are the differentiable ones of `outputs`; `gradients` those of the `active` inputs, None where none were
    asked for; `beside` the differentiable outputs at the values close by that were asked for, None where forward raised
    there. `in_place` says that forward returned one of its inputs, written to.
    """

    outputs: Outputs
    numbers: tuple[int, ...]
    active: tuple[int, ...]
    gradients: tuple[NDArray[Any] | None, ...] | None
    beside: Outputs | None = None
    in_place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCalls:
    """Calls of forward, of which the first that it accepts is made: `bold` ones, then one `near` the given inputs."""

    bold: Iterable[Sequence[Argument]]
    near: Sequence[Argument]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lingering:
    """A graph that was there still when its result was gone.

    `attribute` is the one of ctx through which the graph holds an output of its own, None where none does; `collected`
    says that the garbage collector freed it. Where it did not, something outside the call holds it.
    """

    attribute: str | None
    collected: bool
