"""What a specimen is, and how Functions become one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.autograd import Function

from benchmarks.correct.draws import Draw

Formula = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """A right Function with its inputs and the means to prove that it is right.

    `reference` is a differentiable body of the same mathematics, `formula` the function of one entry in mpmath;
    `unproved` says why neither applies at these inputs. `tolerance` is relative to the largest entry of the gradient.
    The proof covers `order`; no check beyond the order `limit` is asked for; `seeds` is for the slow ones.
    """

    name: str
    group: str
    target: Any
    draws: tuple[Draw, ...]
    witnessed: bool
    order: int = 2
    limit: int = 2
    seeds: int = 5
    reference: Callable[..., Any] | None = None
    formula: Formula | None = None
    tolerance: float = 1e-9
    unproved: str | None = None
    grad: Any = None

    def inputs(self, seed: int) -> tuple[Any, ...]:
        """The arguments of forward for a seed."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        return tuple(draw(rng) for draw in self.draws)


@dataclass(slots=True)
class Collection:
    """The specimens of one group, in the order in which they were written."""

    group: str
    found: list[Specimen] = field(default_factory=list)

    def __iter__(self) -> Iterator[Specimen]:
        return iter(self.found)

    def add(self, target: Any, *draws: Draw, name: str | None = None, witnessed: bool = True, **more: Any) -> Any:
        """Take in a target; what is not said otherwise is proved by its own body."""
        told = name or words(target.__name__)
        proved = {"reference", "formula", "unproved"} & more.keys()
        if not proved:
            more["reference"] = functools.partial(run_body, target)
        self.found.append(
            Specimen(name=told, group=self.group, target=target, draws=draws, witnessed=witnessed, **more)
        )
        return target

    def __call__(self, *draws: Draw, **more: Any) -> Callable[[Any], Any]:
        """Decorate a target with its draws."""
        return lambda target: self.add(target, *draws, **more)


def words(name: str) -> str:
    """`LogOfSum` and `log_of_sum` as "log of sum"."""
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in name)
    return spaced.replace("_", " ").strip()


class Scratch:
    """A ctx that takes everything and forgets it."""

    needs_input_grad = (True,) * 20

    def save_for_backward(self, *tensors: Any) -> None:
        """Forget."""

    mark_dirty = mark_non_differentiable = set_materialize_grads = save_for_backward


def run_body(function: type[Function], *inputs: Any) -> Any:
    """Forward's body outside the Function, for autograd to differentiate."""
    splits = "setup_context" in dir(function) and function.setup_context is not Function.setup_context
    return function.forward(*inputs) if splits else function.forward(Scratch(), *inputs)


def hidden(specimen: Specimen) -> Specimen:
    """The same Function with no_grad inside forward: its body has no derivative to offer."""
    base = specimen.target

    class Hidden(base):  # type: ignore[misc]
        @staticmethod
        @functools.wraps(base.forward)
        def forward(*arguments: Any) -> Any:
            with torch.no_grad():
                return base.forward(*arguments)

    Hidden.__name__ = Hidden.__qualname__ = f"Hidden{base.__name__}"
    return Specimen(
        name=specimen.name,
        group=specimen.group,
        target=Hidden,
        draws=specimen.draws,
        witnessed=False,
        order=specimen.order,
        limit=specimen.limit,
        unproved="as the one that it hides",
    )


def can_hide(specimen: Specimen) -> bool:
    """Whether the specimen has a body to hide."""
    return specimen.witnessed and isinstance(specimen.target, type) and issubclass(specimen.target, Function)
