"""A Subject whose input and output spaces are known from its first call."""

from collections.abc import Sequence

import numpy as np

from gradcli.backends.base import FloatArray, Subject
from gradcli.backends.orders import spaces_of_order
from gradcli.backends.tensor.call_records import CallResult, Outputs, Seeds, Values
from gradcli.cases import Argument
from gradcli.errors import UserCodeError
from gradcli.numerics.maps.space import Space


class SpacedSubject(Subject):
    """A Function bound to arguments, with the shapes and dtypes of its outputs from one call."""

    _domain: Space
    _codomain: Space
    _numbers: tuple[int, ...]

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
    def point(self) -> FloatArray:
        """The active inputs, flat."""
        return self._domain.flatten([self.arguments[i].value for i in self.active])

    def base_point(self, order: int, seed: int) -> FloatArray:
        """The inputs, followed by signed cotangents of magnitude in [1/2, 1)."""
        domain, _ = spaces_of_order(order, self._domain, self._codomain)
        generator = np.random.default_rng([seed, order])
        free = domain.size - self._domain.size
        cotangents = generator.choice([-1.0, 1.0], free) * (0.5 + 0.5 * generator.random(free))
        return np.concatenate([self.point, cotangents])

    def call_at(
        self, arguments: Sequence[Argument], seeds: Seeds | None = None, beside: Values | None = None
    ) -> CallResult:
        """A call, and a pass of its own, of the same Function bound to other arguments."""
        other = self.rebind(arguments)
        outputs, numbers = other.first_call.outputs, other.output_numbers
        cotangents = None if seeds is None else seeds([outputs[n] for n in numbers])
        return CallResult(
            outputs=outputs,
            numbers=numbers,
            active=other.active,
            gradients=None if cotangents is None else other.backward(cotangents),
            beside=None if beside is None else _outputs_beside(other, beside),
        )


def _outputs_beside(subject: Subject, values: Values) -> Outputs | None:
    """The differentiable outputs at other values of the active inputs; None where forward raises there."""
    point = subject.domain.flatten([values[position] for position in subject.active])
    try:
        return tuple(subject.codomain.unflatten(subject.derivative_map(1).value(point)))
    except UserCodeError:
        return None
