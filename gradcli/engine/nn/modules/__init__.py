"""The namespace `nn.modules`: `Module`, and the module `module`, as programs import them from PyTorch."""

from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.modules import module as module

__all__ = ["Module", "module"]
