"""Backends whose framework records no graph, and that can show one of a backward pass all the same."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.backends.base import Backend
from gradcli.cases import Argument
from gradcli.traces import TraceGraph


class TracedBackend(Backend):
    """A framework that transforms a function as a whole."""

    @abstractmethod
    def traced(self, target: object, arguments: Sequence[Argument], cotangent: Callable[[Any], Any]) -> TraceGraph:
        """The graph of a backward pass from `cotangent` of each result. Raises TargetError, UserCodeError."""
