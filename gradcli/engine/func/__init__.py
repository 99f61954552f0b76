"""The namespace `func`: functions that make derivatives, and batched forms, of functions."""

from gradcli.engine.func.batching import vmap
from gradcli.engine.func.forward import jacfwd, jvp, linearize
from gradcli.engine.func.modules import functional_call, stack_module_state
from gradcli.engine.func.reverse import grad, grad_and_value, hessian, jacrev, vjp

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
