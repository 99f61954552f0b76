"""The names that programs import from `autograd.function`."""

from gradcli.engine.function import BackwardCFunction as BackwardCFunction
from gradcli.engine.function import Function as Function
from gradcli.engine.function import FunctionCtx as FunctionCtx
from gradcli.engine.function import once_differentiable as once_differentiable
