"""Which rule a target tests: how its node is recognised, and forward's body for the framework to differentiate."""

from collections.abc import Callable
from typing import Any

from gradcli.backends.tensor.body import body_of
from gradcli.backends.tensor.framework import Framework
from gradcli.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The rule that a target tests.

    `owns` tells whether a Function class of the graph is the target's own; `body` gives forward's body for what
    ctx.needs_input_grad says of each argument, and is None where there is none.
    """

    owns: Callable[[type], bool]
    body: Callable[[tuple[bool, ...]], Callable[..., Any]] | None = None


def function_origin(framework: Framework, function_class: type, *, splits_setup: bool) -> Origin:
    """The origin of a Function class."""

    def body(needs_input_grad: tuple[bool, ...]) -> Callable[..., Any]:
        return body_of(framework, function_class, splits_setup=splits_setup, needs_input_grad=needs_input_grad)

    return Origin(owns=lambda owner: owner is function_class, body=body)
