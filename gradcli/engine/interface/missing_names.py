"""What a program is told when it asks for a name that the engine does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from gradcli.engine.module_name import PRINTED_MODULE

_REASONS = {
    "fft": "take numpy.fft inside a custom Function",
    "distributions": "write the density with tensors",
    "jit": "call the function itself",
    "compile": "call the function itself",
    "fx": "graphs are watched through grad_fn and its next_functions",
    "sparse": "tensors are dense",
    "sparse_coo_tensor": "tensors are dense",
    "quantization": "tensors are not quantised",
    "bfloat16": "NumPy has no such type; take float32 or float16",
    "lr_scheduler": "set group['lr'] of optimizer.param_groups by hand",
    "distributed": "there is one process",
    "multiprocessing": "there is one process",
    "data": "there is no loading of data; take slices of tensors",
    "backends": "there is one backend, NumPy",
    "mps": "there is one device, the CPU",
    "xpu": "there is one device, the CPU",
    "profiler": "take a profiler of Python's",
    "stft": "take numpy.fft inside a custom Function",
}


def refusal(where: str, name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a name that a namespace does not have.

    Args:
        where: the namespace after the library's name: "" or ".nn", say.
        name: what was asked for.
        known: the names that are there.
    """
    text = f"module '{PRINTED_MODULE}{where}' has no attribute '{name}'"
    close = difflib.get_close_matches(name, [entry for entry in known if not entry.startswith("_")], n=3, cutoff=0.75)
    if name in _REASONS:
        text += f": gradcli.engine leaves it out: {_REASONS[name]}"
    error = AttributeError(text, name=name)
    if name not in _REASONS and not name.startswith("__"):
        note = "gradcli.engine has the part of PyTorch's names that docs/engine.md describes"
        error.add_note(note + (f"; close to this one: {', '.join(close)}" if close else ""))
    return error


def no_attribute(self: object, name: str) -> object:
    """Raise the error for a tensor's missing attribute; the `__getattr__` of tensors."""
    text = f"'{type(self).__name__}' object has no attribute '{name}'"
    if name in _REASONS:
        text += f": gradcli.engine leaves it out: {_REASONS[name]}"
    raise AttributeError(text, name=name, obj=self)
