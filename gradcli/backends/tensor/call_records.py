"""What is known of a call: its tensors, its results at other arguments, and what a deleted result left."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import chain
from time import perf_counter
from typing import Any, final

from numpy.typing import NDArray

from gradcli.cases import Argument
from gradcli.frozen import dataclass

Outputs = tuple[NDArray[Any], ...]
Seeds = Callable[[Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]
"""Makes a cotangent for each of the differentiable outputs."""
Values = Mapping[int, NDArray[Any]]
"""Of active inputs, by position."""
Exchange = Callable[[], AbstractContextManager[None]]
"""Makes a context in which a module holds the tensors of a call again."""

_QUICK = 0.05
"""Seconds that the repeats of one other call may take."""


@contextmanager
def all_entered(exchanges: Iterable[Exchange]) -> Iterator[None]:
    """All of these contexts at once."""
    with ExitStack() as entered:
        for exchange in exchanges:
            entered.enter_context(exchange())
        yield


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The tensors of one call: leaves (by position), what was passed, and all outputs as a tuple.

    `returned` are the outputs as the user's code returned them: on its device, sparse where they are. `exchanges` are
    to be entered while cotangents are passed back: backward may read a module's parameters, or call the module again.
    """

    leaves: Mapping[int, Any]
    passed: tuple[Any, ...]
    outputs: tuple[Any, ...]
    returned: tuple[Any, ...]
    exchanges: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call at other arguments.

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
    """Candidates for one other call of forward, to be tried in order: `bold` ones, then one `near` the given inputs.

    Calls to be made `before` that one, whatever comes of them, each the first of its candidates that forward accepts.
    The call is repeated up to `times` in all, as long as that is quick.
    """

    bold: Iterable[Sequence[Argument]]
    near: Sequence[Argument]
    before: Sequence[Iterable[Sequence[Argument]]] = ()
    times: int = 1

    def run_one(self, run: Callable[[Sequence[Argument]], object]) -> bool:
        """Call `run` with each of them until one does not raise; returns whether one did not."""
        for candidates in self.before:
            _accepted(run, candidates)
        found = _accepted(run, chain(self.bold, (self.near,)))
        if found is not None:
            end = perf_counter() + _QUICK
            for _ in range(self.times - 1):
                if perf_counter() > end or _accepted(run, (found,)) is None:
                    break
        return found is not None


def _accepted(
    run: Callable[[Sequence[Argument]], object], candidates: Iterable[Sequence[Argument]]
) -> Sequence[Argument] | None:
    """The first of the candidates for which `run` does not raise; None if it raises for all."""
    for arguments in candidates:
        with suppress(Exception, SystemExit):
            run(arguments)
            return arguments
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakedGraph:
    """A graph that still existed after its result was deleted.

    `attribute` is the one of ctx through which the graph holds an output of its own, None where none does; `collected`
    says that the garbage collector freed it. Where it did not, something outside the call holds it.
    """

    attribute: str | None
    collected: bool
