"""Differentiation: custom Functions, gradients and their checks, recording modes, and the graph."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gradcli.engine.autograd import forward_ad as forward_ad
from gradcli.engine.autograd import function as function
from gradcli.engine.autograd import functional as functional
from gradcli.engine.autograd import graph as graph
from gradcli.engine.autograd.anomaly import detect_anomaly as detect_anomaly
from gradcli.engine.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from gradcli.engine.autograd.variable import Variable as Variable
from gradcli.engine.backward.api import grad as grad
from gradcli.engine.backward.api import run_backward as backward
from gradcli.engine.function import Function as Function
from gradcli.engine.grad_mode import enable_grad as enable_grad
from gradcli.engine.grad_mode import inference_mode as inference_mode
from gradcli.engine.grad_mode import no_grad as no_grad
from gradcli.engine.grad_mode import set_grad_enabled as set_grad_enabled
from gradcli.engine.module_name import PRINTED_MODULE

if TYPE_CHECKING:
    from gradcli.tolerance.as_torch import GradcheckError as GradcheckError
    from gradcli.tolerance.as_torch import gradcheck as gradcheck
    from gradcli.tolerance.as_torch import gradgradcheck as gradgradcheck

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


class _Autograd(ModuleType):
    """This package, where `gradcheck` stays the function when the module of that name has been imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "gradcheck" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Autograd


def __getattr__(name: str) -> Any:
    """Fetch the checks that answer as PyTorch's do; they live above the engine, and programs call them here."""
    if name in ("gradcheck", "gradgradcheck", "GradcheckError"):
        value = vars(importlib.import_module("gradcli.tolerance.as_torch"))[name]
        globals()[name] = value
        return value
    raise AttributeError(f"module '{PRINTED_MODULE}.autograd' has no attribute '{name}'")
