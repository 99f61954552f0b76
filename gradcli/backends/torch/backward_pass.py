"""PyTorch's backward pass without the import of sympy, which `torch.autograd.grad` makes at its first use."""

from collections.abc import Callable, Sequence
from typing import Any

Tensors = Sequence[Any]


def pass_of(torch: Any) -> Callable[..., Tensors]:
    """`torch.autograd.grad` for tensors, or the function in which it ends, where that one works as it is known here.

    `torch.autograd.grad` compares the shapes of outputs and grad_outputs by symbols, and imports sympy for it: 0.3 s
    of processor time, a fifth of a first check. Here they are compared as they are. Whatever else it does is left to
    it: grad_outputs that do not fit, tensors that override operations.
    """
    public: Callable[..., Tensors] = torch.autograd.grad
    engine = getattr(torch.autograd.graph, "_engine_run_backward", None)
    overridden = torch.overrides.has_torch_function
    if engine is None or not _works(torch, engine):
        return public

    def grad(
        outputs: Tensors,
        inputs: Tensors,
        grad_outputs: Tensors,
        *,
        retain_graph: bool,
        create_graph: bool,
        allow_unused: bool,
    ) -> Tensors:
        fits = inputs and all(_fits(*each) for each in zip(outputs, grad_outputs, strict=True))
        if not fits or overridden((*outputs, *inputs)):
            return public(
                outputs,
                inputs,
                grad_outputs,
                retain_graph=retain_graph,
                create_graph=create_graph,
                allow_unused=allow_unused,
            )
        given = tuple(outputs), tuple(grad_outputs), retain_graph, create_graph, tuple(inputs), allow_unused
        found: Tensors = engine(*given, accumulate_grad=False)
        return found

    return grad


def _fits(output: Any, grad_output: Any) -> bool:
    """Whether an output has a single shape, and grad_output that shape and dtype."""
    return not output.is_nested and output.shape == grad_output.shape and output.dtype is grad_output.dtype


def _works(torch: Any, engine: Callable[..., Any]) -> bool:
    """Whether the function gives the gradient of x² at 3: it is undocumented, and may change with PyTorch's version."""
    try:
        with torch.enable_grad():
            x = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
            found = engine((x * x,), (torch.ones_like(x),), False, False, (x,), True, accumulate_grad=False)
    except (TypeError, AttributeError, RuntimeError):
        return False
    return len(found) == 1 and bool(found[0] == 2 * x)
