"""Hints for exceptions of the user's code: a similar name, the import line to add, the right call."""

import builtins
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import getattr_static
from types import FrameType, FunctionType, ModuleType

from gradcli.errors import message_of
from gradcli.spec.kernel_hints import explain_kernel_error

IMPORT_LINES: Mapping[str, str] = {
    "Function": "from torch.autograd import Function (without PyTorch: from gradcli.engine.autograd import Function)",
    "torch": "import torch (or, without PyTorch, from gradcli import engine as torch)",
    "nn": "from torch import nn",
    "F": "import torch.nn.functional as F",
    "Tensor": "from torch import Tensor",
    "Variable": "from torch.autograd import Variable",
    "autograd": "from torch import autograd",
    "gradcheck": "from torch.autograd import gradcheck",
    "once_differentiable": "from torch.autograd.function import once_differentiable",
    "np": "import numpy as np",
    "numpy": "import numpy",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "math": "import math",
}
_CONTEXT_NAMES = (
    "save_for_backward", "saved_tensors", "save_for_forward", "mark_dirty", "mark_non_differentiable",
    "set_materialize_grads", "needs_input_grad",
)  # fmt: skip
_KNOWN_SLIPS: Mapping[tuple[str, str], str] = {
    ("nn", "Function"): "nn.functional",
    ("nn", "Functional"): "nn.functional",
    ("autograd", "function"): "autograd.Function",
}
_LONG_LINE = 120


def explain_exception(error: BaseException) -> str | None:
    """A hint for an exception that the user's code raised, or None.

    Python's own "Did you mean" is printed by the interpreter's top level only (until 3.12), so it is computed here.

    Args:
        error: the exception, with its traceback.

    Returns:
        One line without a full stop, such as `did you mean 'super'?`.
    """
    return explain_kernel_error(error) or _explained_by_type(error)


def _explained_by_type(error: BaseException) -> str | None:
    if isinstance(error, SyntaxError):
        return _syntax(error)
    if isinstance(error, UnboundLocalError):
        return None
    if isinstance(error, NameError):
        return _name(error)
    if isinstance(error, AttributeError):
        return _attribute(error)
    if isinstance(error, ImportError):
        return _import(error)
    return _saved_number(error)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The name of `known` most like `word`, upper and lower case taken as equal, or None."""
    by_lower = {name.lower(): name for name in sorted(known, reverse=True) if name != word}
    matches = get_close_matches(word.lower(), list(by_lower), 1, 0.7)
    return by_lower[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` for the name of `known` most like `word`, or nothing."""
    close = closest(word, known)
    return f" (did you mean {close!r}?)" if close else ""


def _name(error: NameError) -> str | None:
    name = error.name or _quoted(message_of(error))
    if name is None:
        return None
    if name in IMPORT_LINES:
        return f"add the line: {IMPORT_LINES[name]}"
    close = closest(name, _names_in_scope(error))
    if close is not None:
        return f"did you mean {close!r}?"
    return f"{name!r} is defined nowhere in the file: is a part of the code missing?"


def _names_in_scope(error: BaseException) -> set[str]:
    frame = _innermost(error)
    if frame is None:
        return set(dir(builtins))
    return {*frame.f_locals, *frame.f_globals, *dir(builtins)}


def _innermost(error: BaseException) -> FrameType | None:
    frame, traceback = None, error.__traceback__
    while traceback is not None:
        frame, traceback = traceback.tb_frame, traceback.tb_next
    return frame


def _attribute(error: AttributeError) -> str | None:
    match = re.search(r"(?:module|type object)? ?'([\w.]+)'(?: object)? has no attribute '(\w+)'", message_of(error))
    name = error.name or (match[2] if match else None)
    if name is None:
        return None
    owner = _owner(error.obj, match[1] if match else "")
    if (old := _old_style(error.obj, name)) is not None:
        return old
    if isinstance(error.obj, ModuleType) and (moved := _moved(error.obj, name)) is not None:
        return f"did you mean {moved!r}?"
    if (owner, name) in _KNOWN_SLIPS:
        return f"did you mean {_KNOWN_SLIPS[owner, name]!r}?"
    close = closest(name, [*_attributes(error.obj), *_CONTEXT_NAMES])
    return f"did you mean {close!r}?" if close else None


def _old_style(target: object, name: str) -> str | None:
    """A hint where the methods of a Function of PyTorch's are not static: `self` is then the context of the call."""
    function = getattr(type(target), "_forward_cls", None)
    if function is None or not isinstance(getattr_static(function, "forward", None), FunctionType):
        return None
    called = function.__name__
    return (
        f"{called} is written in the old style of PyTorch's Functions, with instance methods, which PyTorch deprecated "
        "in 1.3 and no longer runs: `self` is the context of a call here, not the instance that __init__ made. Make "
        f"forward and backward static methods of a context (ctx, ...), give {name} to forward as an argument, for "
        f"which backward returns None, and call {called}.apply"
    )


def _moved(module: ModuleType, name: str) -> str | None:
    """The same name in a module inside `module`, as `fft.rfft` is for PyTorch's former `torch.rfft`."""
    inner = [(key, part) for key, part in vars(module).items() if isinstance(part, ModuleType)]
    own = [(key, part) for key, part in inner if part.__name__ == f"{module.__name__}.{key}" and key[0] != "_"]
    return next((f"{key}.{name}" for key, part in own if name in vars(part)), None)


def _owner(target: object, said: str) -> str:
    return (target.__name__ if isinstance(target, ModuleType) else said).rpartition(".")[2]


def _attributes(target: object) -> list[str]:
    # dir() runs the object's own __dir__, which is the user's code and may raise anything.
    try:
        return [name for name in dir(target) if isinstance(name, str)]
    except Exception:
        return []


def _import(error: ImportError) -> str | None:
    match = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", message_of(error))
    if match:
        import sys

        close = closest(match[1], _attributes(sys.modules.get(match[2])))
        return f"did you mean {close!r}?" if close else None
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        extra = {"torch": "gradcli[torch]", "jax": "gradcli[jax]"}.get(top)
        return f"install it: pip install '{extra}'" if extra else f"the module {error.name!r} is not installed here"
    return None


def _saved_number(error: BaseException) -> str | None:
    text = message_of(error)
    if "save_for_backward" not in text and "save_for_forward" not in text:
        return None
    match = re.search(r"argument (\d+) is of type (\w+)", text)
    what = f"argument {match[1]} (counted from 0) is of type {match[2]}" if match else "this value is not a tensor"
    return f"{what}: set it as an attribute, ctx.name = value, and read ctx.name in backward"


def _syntax(error: SyntaxError) -> str | None:
    line = (error.text or "").strip()
    packed = len(line) > _LONG_LINE and len(re.findall(r"\b(def|return|class|import)\b|@", line)) > 1
    if packed:
        return f"line {error.lineno} holds several statements: the code's line breaks were lost"
    if isinstance(error, IndentationError):
        return f"the indentation before line {error.lineno} was lost or mixed: check tabs and spaces"
    return None


def _quoted(text: str) -> str | None:
    match = re.search(r"'([^']+)'", text)
    return match[1] if match else None
