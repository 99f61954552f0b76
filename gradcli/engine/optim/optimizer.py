"""The base class of optimisers: groups of parameters with options, a state for each parameter, and step hooks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from gradcli.engine.creation import zeros
from gradcli.engine.dtypes import float32, float64, get_default_dtype
from gradcli.engine.grad_mode import enable_grad, no_grad
from gradcli.engine.ops.complex_numbers import view_as_complex, view_as_real
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.hooks import RemovableHandle, add_hook


def implementation(given: dict[str, Any], **known: Any) -> dict[str, Any]:
    """Return the options that choose one of PyTorch's implementations of a step, and have no effect here.

    Args:
        given: the options that a program passed.
        known: the options of this optimiser, with their defaults.

    Raises:
        TypeError: an option is unknown.
        NotImplementedError: steps are to be recorded, which they are not here.
    """
    unknown = set(given) - set(known)
    if unknown:
        raise TypeError(f"optimizer got an unexpected keyword argument '{sorted(unknown)[0]}'")
    if given.get("differentiable"):
        raise NotImplementedError(
            "differentiable=True: steps are not recorded by gradcli.engine; write the step with tensors"
        )
    return {**known, **given}


def _is_complex(value: object) -> bool:
    return isinstance(value, Tensor) and value._data.dtype.kind == "c"


def no_steps() -> Tensor:
    """Return the number of steps with which a state starts: a tensor, as in PyTorch."""
    return zeros((), dtype=float64 if get_default_dtype() is float64 else float32)


def counted(state: dict[str, Any]) -> int:
    """Add one to the number of steps in a state, and return it."""
    state["step"] += 1
    return int(state["step"])


class Optimizer(ABC):
    """The base of all optimisers.

    Args:
        params: tensors, pairs (name, tensor), or dicts: groups with "params" and options of their own.
        defaults: the options of groups that do not have their own.

    Raises:
        ValueError: there are no parameters, one is not a leaf, or one is in two groups.
        TypeError: `params` is a single tensor, or an entry is not a tensor.
    """

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._before_step: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._after_step: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        entries = list(params)
        if not entries:
            raise ValueError("optimizer got an empty parameter list")
        for group in entries if isinstance(entries[0], dict) else [{"params": entries}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with "params" and options; raises as the class does."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        given = param_group["params"]
        if isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        tensors = [given] if isinstance(given, Tensor) else list(given)
        for tensor in tensors:
            if isinstance(tensor, tuple):
                continue
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(tensor).__name__}"
                )
            if not tensor.is_leaf and not tensor.retains_grad:
                raise ValueError("can't optimize a non-leaf Tensor")
        tensors = [tensor[1] if isinstance(tensor, tuple) else tensor for tensor in tensors]
        present = {id(tensor) for group in self.param_groups for tensor in group["params"]}
        if any(id(tensor) in present for tensor in tensors):
            raise ValueError("some parameters appear in more than one parameter group")
        param_group["params"] = tensors
        for name, value in self.defaults.items():
            param_group.setdefault(name, value)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for group in self.param_groups:
            for tensor in group["params"]:
                if tensor._grad is not None:
                    if set_to_none:
                        tensor.grad = None
                    else:
                        tensor._grad.detach_()
                        tensor._grad.zero_()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; what it returns is ignored."""
        return add_hook(self._before_step, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step; what it returns is ignored."""
        return add_hook(self._after_step, hook)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in place.

        Args:
            closure: called first, with recording on: it computes the gradients and returns the loss, as this does.
        """
        given = () if closure is None else (closure,)
        for hook in self._before_step.values():
            hook(self, given, {})
        loss = self._stepped(closure)
        for hook in self._after_step.values():
            hook(self, given, {})
        return loss

    def _stepped(self, closure: Callable[[], Any] | None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                for tensor in group["params"]:
                    if tensor._grad is not None:
                        self._update_any(tensor, tensor._grad.detach(), group)
        return loss

    def _update_any(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        """Update a parameter, a complex one as the real numbers that it consists of; keep a state if there is any."""
        state = self.state.get(tensor, {})
        if tensor._data.dtype.kind != "c":
            self._update(tensor, gradient, group, state)
        else:
            parts = {name: view_as_real(v) if _is_complex(v) else v for name, v in state.items()}
            self._update(view_as_real(tensor), view_as_real(gradient), group, parts)
            shape = (*tensor._data.shape, 2)
            for name, value in parts.items():
                real = isinstance(value, Tensor) and value._data.shape == shape
                state[name] = view_as_complex(value) if real else value
        if state:
            self.state[tensor] = state

    @abstractmethod
    def _update(self, tensor: Tensor, gradient: Tensor, group: dict[str, Any], state: dict[str, Any]) -> None:
        """Update one parameter in place; `gradient` is detached, `state` is its own dict."""

    def state_dict(self) -> dict[str, Any]:
        """Return {"state": ..., "param_groups": ...}, with parameters numbered in the order of the groups."""
        order = [tensor for group in self.param_groups for tensor in group["params"]]
        number = {id(tensor): place for place, tensor in enumerate(order)}
        groups = [
            {name: value for name, value in group.items() if name != "params"}
            | {"params": [number[id(tensor)] for tensor in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": {number[id(t)]: dict(values) for t, values in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Set options and state to those of `state_dict`; state tensors are shared, not copied.

        Raises:
            ValueError: the groups, or their numbers of parameters, differ.
        """
        order = [tensor for group in self.param_groups for tensor in group["params"]]
        if len(self.param_groups) != len(state_dict["param_groups"]):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for group, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            if len(group["params"]) != len(given["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            group.update({name: value for name, value in given.items() if name != "params"})
        self.state = defaultdict(dict, {order[number]: dict(values) for number, values in state_dict["state"].items()})

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for place, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {place}"] if place else [f"Parameter Group {place}"]
            lines += [f"    {name}: {value}" for name, value in sorted(group.items()) if name != "params"]
        return "\n".join([*lines, ")"])
