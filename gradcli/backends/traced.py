"""Backends whose framework records no graph, and that can show one of a backward pass all the same."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from gradcli.backends.base import Backend
from gradcli.cases import Argument
from gradcli.traces import MOST_CHECKED, SourceSite, TraceGraph


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """A call whose derivative can be checked alone: `target` at `values`, the node of it, and where its rule is."""

    name: str
    target: Any
    values: tuple[Any, ...]
    site: SourceSite | None
    rule: SourceSite | None
    node: int | None = None


@final
@dataclass(slots=True)
class TracedCalls:
    """The calls of the user's own rules in a trace, and of `every` other operation on request: the first 500."""

    every: bool = False
    found: list[TracedCall] = field(default_factory=list)
    left_out: int = 0

    def add(self, call: TracedCall) -> None:
        """Keep a call, or count it."""
        if len(self.found) < MOST_CHECKED:
            self.found.append(call)
        else:
            self.left_out += 1


class TracedBackend(Backend):
    """A framework that transforms a function as a whole."""

    @abstractmethod
    def traced(
        self,
        target: object,
        arguments: Sequence[Argument],
        cotangent: Callable[[Any], Any],
        calls: TracedCalls | None = None,
    ) -> TraceGraph:
        """The graph of a backward pass from `cotangent` of each result; calls to be checked are put into `calls`.

        Raises:
            TargetError: the function cannot be traced.
            UserCodeError: it raised.
        """
