"""What a row of the catalogue is: how an operation is called, on what, and where it is not smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from gradcli.engine.dtypes import Array


class Domain(Enum):
    """Where the elements of a sample are drawn from; the value says so in words."""

    REAL = "normal numbers"
    POSITIVE = "numbers between 0.5 and 2.5"
    UNIT = "numbers between -0.9 and 0.9"
    PROBABILITY = "numbers between 0.1 and 0.9"
    ABOVE_ONE = "numbers between 1.1 and 3"
    APART = "distinct numbers, none nearer than 0.1 to another or to 0"
    DEFINITE = "symmetric positive definite matrices"
    REGULAR = "matrices far from singular"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One input: its shape, and where its elements come from."""

    shape: tuple[int, ...]
    domain: Domain = Domain.REAL

    def draw(self, source: np.random.Generator) -> Array:
        """Return an array of this sample, in float64."""
        if self.domain is Domain.APART:
            count = int(np.prod(self.shape, dtype=np.int64))
            steps = source.permutation(count) - (count // 2)
            return np.asarray((steps + 0.5) * 0.3 + source.uniform(-0.05, 0.05, count)).reshape(self.shape)
        if self.domain in (Domain.DEFINITE, Domain.REGULAR):
            root = source.normal(size=self.shape)
            size = self.shape[-1]
            if self.domain is Domain.REGULAR:
                return np.asarray(root + 3 * np.eye(size))
            return np.asarray(root @ np.swapaxes(root, -1, -2) + size * np.eye(size))
        bounds = _BOUNDS.get(self.domain)
        return source.normal(size=self.shape) if bounds is None else source.uniform(*bounds, self.shape)


_BOUNDS = {
    Domain.POSITIVE: (0.5, 2.5),
    Domain.UNIT: (-0.9, 0.9),
    Domain.PROBABILITY: (0.1, 0.9),
    Domain.ABOVE_ONE: (1.1, 3.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One row.

    Args:
        name: the operation's name, with a suffix for a variant.
        call: `call(namespace, *tensors)` returns a tensor, or a tuple of them.
        samples: one tuple of inputs for each way it is called.
        kinks: where it is not differentiable, in words; empty when smooth on its samples' domains.
    """

    name: str
    call: Callable[..., Any]
    samples: tuple[tuple[Sample, ...], ...]
    kinks: str = ""


def _sample(given: Any, domain: Domain) -> Sample:
    return given if isinstance(given, Sample) else Sample(shape=tuple(given), domain=domain)


def row(name: str, call: Callable[..., Any], *calls: Any, domain: Domain = Domain.REAL, kinks: str = "") -> Operation:
    """Return a row from the shapes it is called with."""
    samples = tuple(tuple(_sample(entry, domain) for entry in shapes) for shapes in calls)
    return Operation(name=name, call=call, samples=samples, kinks=kinks)
