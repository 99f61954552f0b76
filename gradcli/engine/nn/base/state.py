"""Saving and loading the state of modules: parameters and buffers under dotted names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gradcli.engine.grad_mode import no_grad
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.nn.base.hooks import Hooks
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.hooks import RemovableHandle, add_hook

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """The names that a state_dict lacks, and those that the module does not have."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class StatefulModule:
    """The part of Module that saves and loads state."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_hooks: dict[str, Hooks]

    # --- what a subclass may define
    def get_extra_state(self) -> Any:
        """Return further state for `state_dict`; subclasses define it together with `set_extra_state`."""
        raise RuntimeError("get_extra_state has no state to return: a subclass gives it")

    def set_extra_state(self, state: Any) -> None:
        """Set the state that `get_extra_state` returned."""
        raise RuntimeError(f"set_extra_state has no place for {state!r}: a subclass gives it")

    # --- hooks
    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self._state_hooks.setdefault(kind, OrderedDict()), hook)

    def _hooks_of_state(self, kind: str) -> list[Callable[..., Any]]:
        return list(self._state_hooks.get(kind, {}).values())

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict` reads this module."""
        return self._add_state_hook("before saving", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, {})` after `state_dict` has read this module and its children."""
        return self._add_state_hook("after saving", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return self._add_state_hook("before loading", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after this module and its children are loaded."""
        return self._add_state_hook("after loading", hook)

    # --- saving
    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return parameters and buffers under dotted names.

        Args:
            destination: a dict to add them to; a new one unless given.
            prefix: a prefix of all names.
            keep_vars: return the tensors themselves; else detached ones, which share their memory.
        """
        result: dict[str, Any] = OrderedDict() if destination is None else destination
        for hook in self._hooks_of_state("before saving"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(result, prefix, keep_vars)
        for name, child in self._modules.items():
            if child is not None:
                child.state_dict(destination=result, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._hooks_of_state("after saving"):
            hook(self, result, prefix, {})
        return result

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not StatefulModule.get_extra_state

    def _own_state(self) -> dict[str, Any]:
        entries = {**self._parameters, **self._buffers}
        passing = self._non_persistent_buffers_set
        return {name: value for name, value in entries.items() if value is not None and name not in passing}

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add the state of this module without its children; subclasses may override it."""
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    # --- loading
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy values into parameters and buffers; return the missing and the unexpected names.

        Args:
            state_dict: values by dotted names, as `state_dict` returns them.
            strict: raise for missing and unexpected names.
            assign: use the given tensors, without copying them.

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: a shape differs; with `strict`, also: a name is missing or unexpected.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        given: dict[str, Any] = OrderedDict(state_dict)
        keys, errors = IncompatibleKeys([], []), list[str]()
        with no_grad():
            self._load_all(given, "", strict, keys, errors, assign)
        if strict:
            if keys.missing_keys:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(keys.missing_keys)}. ")
            if keys.unexpected_keys:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(keys.unexpected_keys)}. ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return keys

    def _load_all(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        strict: bool,
        keys: IncompatibleKeys,
        errors: list[str],
        assign: bool,
    ) -> None:
        metadata = {"assign_to_params_buffers": assign}
        self._load_from_state_dict(state_dict, prefix, metadata, True, keys.missing_keys, keys.unexpected_keys, errors)
        for name, child in self._modules.items():
            if child is not None:
                start = prefix + name + "."
                part = {key: value for key, value in state_dict.items() if key.startswith(start)}
                child._load_all(part, start, strict, keys, errors, assign)
        for hook in self._hooks_of_state("after loading"):
            hook(self, keys)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the state of this module without its children; subclasses may override it."""
        for hook in self._hooks_of_state("before loading"):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_state()
        for name, value in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            problem = self._load_one(name, key, value, state_dict[key], bool(local_metadata.get(_ASSIGN)))
            if problem:
                error_msgs.append(problem)
        extra = prefix + EXTRA_STATE
        if self._has_extra_state() and extra in state_dict:
            self.set_extra_state(state_dict[extra])
        elif self._has_extra_state():
            missing_keys.append(extra)
        for key in state_dict:
            if key.startswith(prefix) and not (key == extra and self._has_extra_state()):
                name = key[len(prefix) :]
                if name.split(".", 1)[0] not in self._modules and name not in own:
                    unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, value: Tensor, given: Any, assign: bool) -> str:
        """Load one tensor; return the reason why it cannot be loaded, or an empty string."""
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected {PRINTED_MODULE}.Tensor or Tensor-like object '
                f"from checkpoint but received {type(given)}"
            )
        if value._data.ndim == 0 and given._data.shape == (1,):
            given = given[0]
        if given._data.shape != value._data.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {value.shape}."
            )
        if assign:
            if name in self._parameters:
                given = given if isinstance(given, Parameter) else Parameter(given)
                given.requires_grad_(value.requires_grad)
            setattr(self, name, given)
        else:
            value.copy_(given)
        return ""


_ASSIGN = "assign_to_params_buffers"


def _quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
