"""The names that programs import from `autograd.function`."""

from gradcli.engine.function import BackwardCFunction, Function, FunctionCtx, InplaceFunction, once_differentiable

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]
