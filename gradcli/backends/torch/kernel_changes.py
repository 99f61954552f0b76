"""What is changed in Triton's interpreter while a case is checked: its memory watched, its gaps filled."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from gradcli.backends.torch.kernel_bfloat16 import OPERATIONS, computed, converted
from gradcli.backends.torch.kernel_gaps import (
    Number,
    elementwise,
    is_of_library,
    library,
    library_modules,
    untimed,
)
from gradcli.backends.torch.kernel_memory import KernelMemory


def _put(undo: ExitStack, owner: Any, name: str, value: object) -> Any:
    """Put a value in place of another until the end, and return the other."""
    before = vars(owner)[name]
    undo.callback(setattr, owner, name, before)
    setattr(owner, name, value)
    return before


def watch(interpreter: Any, memory: KernelMemory, undo: ExitStack) -> None:
    """Hold every launch, pointer and access against the memory of the tensors."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def launch(executor: Any, arguments: Any, keywords: Any) -> Any:
        on_host, named = init(executor, arguments, keywords)
        memory.launched(executor.fn.__name__, executor.arg_names, on_host, named)
        return on_host, named

    def convert(argument: Any) -> Any:
        if type(argument) is float:
            return Number(argument)
        converted = implicit(argument)
        return memory.marked(argument, converted) if hasattr(argument, "data_ptr") else converted

    def masked_load(self: Any, pointers: Any, mask: Any, other: Any, *rest: Any) -> Any:
        out = memory.outside(pointers, mask, writes=False)
        if out is not None:
            kind = pointers.get_element_ty()
            values = memory.filled(out, other, kind, interpreter._get_np_dtype(kind))
            mask, other = handle(mask.data & ~out, mask.dtype), handle(values, kind)
        return load(self, pointers, mask, other, *rest)

    def masked_store(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        return store(self, pointers, value, allowed(pointers, mask), *rest)

    def change(self: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        if value.dtype.scalar == interpreter.tl.bfloat16:  # it would add the bits
            raise NotImplementedError("atomic operations on bfloat16 are not supported in interpreter mode")
        return rmw(self, operation, pointers, value, allowed(pointers, mask), *rest)

    def allowed(pointers: Any, mask: Any) -> Any:
        """The mask of a write without what lies outside."""
        out = memory.outside(pointers, mask, writes=True)
        return mask if out is None else handle(mask.data & ~out, mask.dtype)

    init = _put(undo, interpreter.GridExecutor, "_init_args_hst", launch)
    implicit = _put(undo, interpreter, "_implicit_cvt", convert)
    load = _put(undo, builder, "create_masked_load", masked_load)
    store = _put(undo, builder, "create_masked_store", masked_store)
    rmw = _put(undo, builder, "create_atomic_rmw", change)


def fill(interpreter: Any, undo: ExitStack) -> None:
    """Give numbers the methods of tensors, compute the device library with NumPy, and time no configurations."""
    Number.interpreter = interpreter
    builder = interpreter.interpreter_builder
    seen: set[int] = set()
    functions = library(interpreter)

    def substitute(names: dict[str, Any]) -> None:
        """Put the library in place of the names of a user's module that stand for it."""
        if id(names) in seen:
            return
        seen.add(id(names))
        for name, value in tuple(names.items()):
            if is_of_library(value) and value.__name__ in functions:
                undo.callback(names.__setitem__, name, value)
                names[name] = functions[value.__name__]

    def prepared(rewrite: Callable[..., Any]) -> Callable[..., Any]:
        def rewritten(self: Any) -> Any:
            substitute(self.fn.__globals__)
            return rewrite(self)

        return rewritten

    def extern(self: Any, library: Any, path: Any, symbol: str, arguments: Any, returned: Any, pure: Any) -> Any:
        found = elementwise(interpreter, symbol, arguments, returned)
        return original(self, library, path, symbol, arguments, returned, pure) if found is None else found

    # Triton compiles kernels without this check of integers; it would take a third of the time.
    _put(undo, builder, "options", replace(builder.options, sanitize_overflow=False))
    kernel = interpreter.InterpretedFunction
    _put(undo, kernel, "rewrite", prepared(vars(kernel)["rewrite"]))
    original = _put(undo, interpreter.InterpreterBuilder, "create_extern_elementwise", extern)
    for module in library_modules():
        for name in functions:
            if name in vars(module):
                _put(undo, module, name, functions[name])

    def cast(self: Any, source: Any, wanted: Any) -> Any:
        return converted(interpreter, cast_before, self, source, wanted)

    cast_before = _put(undo, interpreter.InterpreterBuilder, "cast_impl", cast)
    for name in OPERATIONS:
        operation = vars(interpreter.InterpreterBuilder)[name]
        _put(undo, interpreter.InterpreterBuilder, name, computed(interpreter, operation))
    tuner = sys.modules.get("triton.runtime.autotuner")
    if tuner is not None:
        _put(undo, tuner.Autotuner, "do_bench", property(lambda self: self._do_bench or untimed))
