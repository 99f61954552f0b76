"""The parameters, buffers and children of a module: attributes that keep their place when they are replaced."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.nn.base.hooks import type_text
from gradcli.engine.nn.parameter import Buffer, Parameter
from gradcli.engine.tensor import Tensor


class Registry:
    """The part of Module that registers parameters, buffers and children, in the order of their first registration."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        put = functools.partial(object.__setattr__, self)
        put("_parameters", {})
        put("_buffers", {})
        put("_modules", {})
        put("_non_persistent_buffers_set", set())

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in own:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._leave_others("_parameters", name)
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            _require_none(value, name, "parameter", "Parameter")
            self._parameters[name] = None
        elif isinstance(value, Registry):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._leave_others("_modules", name)
            self._modules[name] = value
        elif name in own.get("_modules", ()):
            _require_none(value, name, "child module", "Module")
            self._modules[name] = None
        elif isinstance(value, Buffer) or name in own.get("_buffers", ()):
            self._put_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _leave_others(self, store: str, name: str) -> None:
        """Remove a name from everything but the store in which it is about to be put, or replaced in its place."""
        for other in ("_parameters", "_buffers", "_modules"):
            if other != store:
                self.__dict__[other].pop(name, None)
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _put_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{type_text(value)}' as buffer '{name}' "
                f"({PRINTED_MODULE}.nn.Buffer, {PRINTED_MODULE}.Tensor or None expected)"
            )
        passing = name in self.__dict__.get("_non_persistent_buffers_set", ())
        self.register_buffer(name, value, value.persistent if isinstance(value, Buffer) else not passing)

    def __getattr__(self, name: str) -> Any:
        for store in ("_parameters", "_buffers", "_modules"):
            entries = self.__dict__.get(store)
            if entries is not None and name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __delattr__(self, name: str) -> None:
        for entries in (self._parameters, self._buffers, self._modules):
            if name in entries:
                del entries[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name.

        Raises:
            TypeError: it is not a Parameter.
            KeyError: the name is taken, is empty, or has a dot.
            ValueError: it is the result of an operation.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name(name, self._parameters, "parameter")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type_text(param)}' object to parameter '{name}' "
                f"({PRINTED_MODULE}.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained; it is part of `state_dict` if it is persistent."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name(name, self._buffers, "buffer")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type_text(tensor)}' object to buffer '{name}' "
                f"({PRINTED_MODULE} Tensor or None required)"
            )
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a child module, or None, which reserves the name."""
        if module is not None and not isinstance(module, Registry):
            raise TypeError(f"{type_text(module)} is not a Module subclass")
        self._check_name(name, self._modules, "module")
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name: str, store: Mapping[str, Any], what: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {type_text(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."' + (f", got: {name}" if what == "module" else ""))
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in store and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")


def _require_none(value: Any, name: str, what: str, kind: str) -> None:
    if value is not None:
        raise TypeError(
            f"cannot assign '{type_text(value)}' as {what} '{name}' ({PRINTED_MODULE}.nn.{kind} or None expected)"
        )
