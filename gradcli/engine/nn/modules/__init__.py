"""The package that programs import the module of modules from."""

from gradcli.engine.nn.base.module import Module
from gradcli.engine.nn.modules import module as module

__all__ = ["Module", "module"]
