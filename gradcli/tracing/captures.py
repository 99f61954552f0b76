"""Calls kept with copies of their arguments, so that each node's backward can be checked against its own forward."""

from collections.abc import Callable
from dataclasses import field
from types import FrameType
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.traces import MOST_CHECKED, ArraySummary, SourceSite
from gradcli.tracing.reading import Lens
from gradcli.tracing.sites import site_of_frame, users_frame

_NO_NODES = ("setitem", "Parameter", "deepcopy")
_RANDOM = ("dropout", "rand", "bernoulli", "normal", "multinomial", "uniform", "poisson", "exponential", "rrelu")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One call that recorded a node: of a custom Function (`function`), or of the framework's own `call`.

    `outputs` are summaries of what it returned.
    """

    name: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    function: Any
    site: SourceSite | None
    module: str | None
    sequence: int
    outputs: tuple[ArraySummary | None, ...] = ()


@final
@dataclass(slots=True)
class Captures:
    """The calls of a trace that are to be checked, the first 500; `left_out` counts the others.

    `received` are copies of the gradients that their nodes received in the last pass.
    """

    every: bool = False
    found: list[Capture] = field(default_factory=list)
    left_out: int = 0
    received: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def keep_received(self, lens: Lens, sequence: int, gradients: tuple[Any, ...]) -> None:
        """Keep copies of what a node received, if its call is to be checked."""
        if any(capture.sequence == sequence for capture in self.found):
            self.received[sequence] = tuple(g.detach().clone() if lens.is_tensor(g) else g for g in gradients)

    def wants(self, name: str, function: Any) -> bool:
        """Whether a call of this name can be checked: a custom Function, or on request a deterministic operation."""
        if function is None and (not self.every or name.endswith("_") or name in _NO_NODES or _is_random(name)):
            return False
        if len(self.found) >= MOST_CHECKED:
            self.left_out += 1
            return False
        return True

    def add(
        self,
        name: str,
        call: Callable[..., Any],
        given: tuple[tuple[Any, ...], dict[str, Any]],
        function: Any,
        frame: FrameType | None,
        module: str | None,
        sequence: int,
        outputs: tuple[ArraySummary | None, ...] = (),
    ) -> None:
        """Keep a call that recorded a node; `given` are copies of its arguments."""
        self.found.append(
            Capture(
                name=name,
                call=call,
                args=given[0],
                keywords=given[1],
                function=function,
                site=site_of_frame(users_frame(frame)),
                module=module,
                sequence=sequence,
                outputs=outputs,
            )
        )


def copied(lens: Lens, value: Any) -> Any:
    """A value with copies of its tensors, each a leaf that requires a gradient where the tensor did."""
    if lens.is_tensor(value):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (tuple, list):
        return type(value)(copied(lens, each) for each in value)
    if type(value) is dict:
        return {key: copied(lens, each) for key, each in value.items()}
    return value


def _is_random(name: str) -> bool:
    return any(word in name for word in _RANDOM)
