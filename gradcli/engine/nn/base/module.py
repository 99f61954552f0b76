"""The class `Module`."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Self

from gradcli.engine.dtypes import dtype as ElementType  # noqa: N812  (arguments are named dtype)
from gradcli.engine.nn.base.attributes import Registry
from gradcli.engine.nn.base.calls import EVERYWHERE, MIXED, AlwaysCalled, call_with_hooks
from gradcli.engine.nn.base.hooks import registered
from gradcli.engine.nn.base.state import StatefulModule
from gradcli.engine.nn.parameter import Parameter
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.hooks import RemovableHandle


class Module(Registry, StatefulModule):
    """The base class of layers and networks: subclasses call `super().__init__()` and define `forward`."""

    training: bool
    _is_full_backward_hook: bool | None

    def __init__(self) -> None:
        Registry.__init__(self)
        put = functools.partial(object.__setattr__, self)
        put("training", True)
        put("_state_hooks", {})
        put("_forward_hooks", OrderedDict())
        put("_forward_pre_hooks", OrderedDict())
        put("_forward_hooks_with_kwargs", OrderedDict())
        put("_forward_pre_hooks_with_kwargs", OrderedDict())
        put("_backward_hooks", OrderedDict())
        put("_backward_pre_hooks", OrderedDict())
        put("_is_full_backward_hook", None)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; subclasses define it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # --- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward with the hooks."""
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVERYWHERE.any
        ):
            return self.forward(*args, **kwargs)
        return call_with_hooks(self, args, kwargs)

    # --- hooks
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)`, with_kwargs `hook(module, args, kwargs)`; what it returns replaces these."""
        return registered(self._forward_pre_hooks, hook, prepend, self._forward_pre_hooks_with_kwargs, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; what it returns replaces the output.

        Args:
            hook: the hook.
            prepend: call it before the present hooks.
            with_kwargs: call `hook(module, args, kwargs, output)`.
            always_call: also call it, with None for the output, when forward or another hook raises.
        """
        if always_call:
            hook = AlwaysCalled(hook)
        return registered(self._forward_hooks, hook, prepend, self._forward_hooks_with_kwargs, with_kwargs)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when both are known; a tuple it returns replaces grad_input."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(MIXED)
        self._is_full_backward_hook = True
        return registered(self._backward_hooks, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the module's backward; a tuple it returns replaces grad_output."""
        return registered(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Attach a non-full (deprecated) hook to the last operation of forward: it sees its gradients only."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(MIXED)
        self._is_full_backward_hook = False
        return registered(self._backward_hooks, hook, False)

    # --- walking
    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yield (dotted name, module) of this module and all its descendants, each once by default."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def get_submodule(self, target: str) -> Any:
        """Return the descendant with a dotted name, or this module for "".

        Raises:
            AttributeError: there is none.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            if not isinstance(found, Module) or not hasattr(found, name):
                raise AttributeError(f"{type(found).__name__} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module in the place of the descendant with a dotted name; unless `strict`, also where there is none.

        Raises:
            ValueError: the name is empty, or no module is given.
            AttributeError: there is no such descendant, or it is not a module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """Return the parameter with a dotted name; raises AttributeError if there is none."""
        return self._entry("_parameters", target, "parameter")

    def get_buffer(self, target: str) -> Any:
        """Return the buffer with a dotted name; raises AttributeError if there is none."""
        return self._entry("_buffers", target, "buffer")

    def _entry(self, store: str, target: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in vars(module)[store]:
            raise AttributeError(f"{type(module).__name__} has no {what} `{name}`")
        return vars(module)[store][name]

    def modules(self) -> Iterator[Module]:
        """Yield this module and all its descendants, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yield (name, module) of the children, each once."""
        seen: set[int] = set()
        for name, child in self._modules.items():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Module]:
        """Yield the children, each once."""
        return (child for _, child in self.named_children())

    def _named(self, store: str, prefix: str, recurse: bool, once: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=once) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in module.__dict__[store].items():
                if value is not None and id(value) not in seen:
                    if once:
                        seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (dotted name, parameter), each parameter once by default; with `recurse`, those of descendants too."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield all parameters."""
        return (value for _, value in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (dotted name, buffer), each buffer once by default; with `recurse`, those of descendants too."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield all buffers."""
        return (value for _, value in self.named_buffers(recurse=recurse))

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call a function on all descendants, children first, then on this module; return this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    # --- converting
    def _converted(self, convert: Callable[[Tensor], Tensor]) -> Self:
        for module in self.modules():
            for parameter in module._parameters.values():
                if parameter is not None:
                    parameter.data = convert(parameter.data)
                    if parameter._grad is not None:
                        parameter._grad = convert(parameter._grad.detach())
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = convert(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating point and complex parameters and buffers in place; return this module."""
        kinds = [value for value in (*args, kwargs.get("dtype")) if isinstance(value, ElementType)]
        if kinds and not (kinds[0].is_floating_point or kinds[0].is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={kinds[0]}"
            )
        return self._converted(lambda tensor: tensor.to(*args, **kwargs) if tensor._data.dtype.kind in "fc" else tensor)

    def _floating(self, method: str) -> Self:
        return self._converted(lambda tensor: getattr(tensor, method)() if tensor._data.dtype.kind == "f" else tensor)

    def double(self) -> Self:
        """Convert real floating point parameters and buffers to float64."""
        return self._floating("double")

    def float(self) -> Self:
        """Convert real floating point parameters and buffers to float32."""
        return self._floating("float")

    def half(self) -> Self:
        """Convert real floating point parameters and buffers to float16."""
        return self._floating("half")

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to an element type."""
        return self._converted(lambda tensor: tensor.to(dst_type))

    def cpu(self) -> Self:
        """Return this module: it is always on the CPU."""
        return self

    def cuda(self, device: Any = None) -> Self:
        """Raise RuntimeError: the engine runs on the CPU only."""
        return self.to("cuda" if device is None else device)

    def train(self, mode: bool = True) -> Self:
        """Set `training` of this module and all its descendants; raises ValueError for a mode that is not a bool."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set `training` to False; see `train`."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for parameter in self.parameters():
            if parameter._grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter._grad.detach_()
                    parameter._grad.zero_()

    # --- printing
    def extra_repr(self) -> str:
        """Return the options that are printed in the parentheses; subclasses define it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        head = type(self).__name__ + "("
        if not children and len(lines) <= 1:
            return head + extra + ")"
        return head + "\n  " + "\n  ".join(lines + children) + "\n)"
