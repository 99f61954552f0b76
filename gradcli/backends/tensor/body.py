"""Forward's own body as an ordinary function, for the framework to differentiate by itself.

Run outside the Function, with gradients on and a stand-in for ctx, a forward that is made of differentiable operations
gives its gradient without the backward under test: an independent reference for every entry.
"""

from collections.abc import Callable, Sequence
from typing import Any, final

from numpy.typing import NDArray

from gradcli.backends.guard import users_code
from gradcli.backends.tensor.caller import Caller
from gradcli.backends.tensor.framework import Framework, same_values


@final
class StandInContext:
    """A replacement for ctx: it accepts what forward may do with ctx, and refuses what the real one refuses."""

    def __init__(self, framework: Framework, needs_input_grad: tuple[bool, ...]) -> None:
        self._framework = framework
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors; raises TypeError for anything that is neither a tensor nor None."""
        for number, tensor in enumerate(tensors):
            if tensor is not None and not self._framework.is_tensor(tensor):
                raise TypeError(
                    f"save_for_backward can only save tensors, but argument {number} has type {type(tensor).__name__}: "
                    "set it as an attribute of ctx"
                )
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Accepted: forward mode is not used here."""

    def mark_dirty(self, *tensors: Any) -> None:
        """Accepted: the inputs passed are clones."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Accepted: only the differentiable outputs are looked at."""

    def set_materialize_grads(self, value: bool) -> None:
        """Accepted: backward is not run through this ctx."""


def body_of(
    framework: Framework, function_class: Any, *, splits_setup: bool, needs_input_grad: tuple[bool, ...]
) -> Callable[..., Any]:
    """Forward's body as a callable of forward's arguments.

    Args:
        framework: where the tensors come from.
        function_class: the Function.
        splits_setup: whether forward leaves ctx to setup_context.
        needs_input_grad: what the stand-in ctx says of each argument.
    """

    def body(*arguments: Any, **keywords: Any) -> Any:
        context = StandInContext(framework, needs_input_grad)
        if not splits_setup:
            return function_class.forward(context, *arguments, **keywords)
        output = function_class.forward(*arguments, **keywords)
        function_class.setup_context(context, arguments, output)
        return output

    return body


def stands_for(
    body: Caller,
    leaves: dict[int, Any],
    outputs: Sequence[NDArray[Any]],
    differentiable: Sequence[int],
    *,
    asked: bool,
) -> bool:
    """Whether a body gives the same values as forward, carries a gradient, and runs no kernels.

    Args:
        body: calls it.
        leaves: the tensors to call it with, by position.
        outputs: what forward gave.
        differentiable: the outputs that count.
        asked: whether these inputs were asked for.
    """
    framework = body.framework
    kernels = framework.kernels_run()
    try:
        with users_code(framework, silent=True, recording=True, asked=asked):
            found = body.run(leaves).outputs
            return (
                framework.kernels_run() == kernels  # the graph does not see what they write
                and len(found) == len(outputs)
                and all(same_values(framework.as_array(found[n]), outputs[n]) for n in differentiable)
                and any(bool(found[n].requires_grad) for n in differentiable)
            )
    except (Exception, SystemExit):
        return False
