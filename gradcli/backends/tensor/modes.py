"""Forward mode and batching: a Function's own jvp, and its rule for vmap, run on arrays."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Batched
from gradcli.backends.guard import users_code
from gradcli.backends.spaces import SpacedSubject
from gradcli.backends.tensor.call_records import Exchange, all_entered
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.framework import Framework


def pushed(
    caller: Caller, active: Sequence[int], outputs: Sequence[int], tangents: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any] | None, ...]:
    """The tangents of the outputs for those of the active inputs, through the framework's forward mode.

    An output that gets none, which the framework takes for zeros, has None.
    """
    framework = caller.framework
    forward_mode = framework.namespace.autograd.forward_ad
    with warnings.catch_warnings(), forward_mode.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)  # what a framework deprecates inside of itself
        leaves, directions = caller.leaves(active), framework.tensors(tangents)
        duals = [forward_mode.make_dual(leaves[i], tangent) for i, tangent in zip(active, directions, strict=True)]
        call = caller.run(dict(zip(active, duals, strict=True)))
        found = [forward_mode.unpack_dual(call.outputs[n]).tangent for n in outputs]
        return tuple(None if tangent is None else framework.to_array(tangent) for tangent in found)


def batched(
    caller: Caller,
    active: Sequence[int],
    outputs: Sequence[int],
    stacked: Sequence[NDArray[Any]],
    places: Sequence[int | None],
    cotangents: Sequence[NDArray[Any]],
) -> Batched:
    """The function mapped over the axes `places` of its active inputs, None for those without a batch."""
    framework = caller.framework
    exchanges: list[Exchange] = []

    def function(*tensors: Any) -> tuple[Any, ...]:
        call = caller.run(dict(zip(active, tensors, strict=True)))
        exchanges.extend(call.exchanges)
        return tuple(call.outputs[number] for number in outputs)

    leaves = framework.leaves(stacked)
    found = framework.mapped(function, tuple(places))(*leaves)
    seeds = framework.tensors(cotangents)
    with all_entered(exchanges):
        gradients = framework.namespace.autograd.grad(list(found), leaves, seeds, allow_unused=True)
    return Batched(
        outputs=tuple(framework.to_array(output) for output in found),
        gradients=framework.to_arrays(gradients),
    )


class TransformedFunction(SpacedSubject):
    """A Function with a caller, whose rules for forward mode and vmap can be run."""

    framework: Framework
    _caller: Caller
    _asked: bool

    def pushed(self, tangents: Sequence[NDArray[Any]]) -> tuple[NDArray[Any] | None, ...] | None:
        """Through the framework's forward mode, which calls jvp."""
        with self._transformed("jvp"):
            return pushed(self._caller, self.active, self._numbers, tangents)

    def batched(
        self,
        stacked: Sequence[NDArray[Any]],
        places: Sequence[int | None],
        cotangents: Sequence[NDArray[Any]],
    ) -> Batched | None:
        """Through the framework's vmap, which calls the rule."""
        with self._transformed("vmap"):
            self.counters.backward += 1
            return batched(self._caller, self.active, self._numbers, stacked, places, cotangents)

    @contextmanager
    def _transformed(self, phase: str) -> Iterator[None]:
        """Run the user's code inside, which calls a rule of that name."""
        try:
            with users_code(self.framework, silent=True, recording=True, asked=self._asked):
                self.counters.forward += 1
                yield
        except (Exception, SystemExit) as error:
            raise user_code_error(error, phase) from error
