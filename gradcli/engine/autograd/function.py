"""The names that programs import from `autograd.function`."""

from gradcli.engine.function import BackwardCFunction, Function, FunctionCtx, InplaceFunction
from gradcli.engine.once import once_differentiable

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
