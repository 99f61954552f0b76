"""Saving objects to files and loading them again, by pickle."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import IO, Any, ClassVar

__all__ = ["load", "save"]


def save(obj: Any, f: str | Path | IO[bytes], pickle_protocol: int = 4) -> None:
    """Write an object (tensors, modules, dicts of them) to a file.

    Args:
        obj: what to write.
        f: a path, or a file that is open for writing bytes.
        pickle_protocol: the version of the format.
    """
    if isinstance(f, (str, Path)):
        with Path(f).open("wb") as file:
            pickle.dump(obj, file, protocol=pickle_protocol)
    else:
        pickle.dump(obj, f, protocol=pickle_protocol)


def load(f: str | Path | IO[bytes], map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Read an object that `save` has written.

    Args:
        f: a path, or a file that is open for reading bytes.
        map_location: has no effect: everything is on the CPU.
        weights_only: read only tensors, numbers, text and containers of them. Without this, reading a file may run any
            code that whoever wrote it chose.

    Raises:
        pickle.UnpicklingError: there is something else in the file, and `weights_only` holds.
    """
    del map_location
    if isinstance(f, (str, Path)):
        with Path(f).open("rb") as file:
            return load(file, weights_only=weights_only)
    return _Weights(f).load() if weights_only else pickle.load(f)  # noqa: S301  (the docstring says what it may do)


class _Weights(pickle.Unpickler):
    """Reads tensors and plain data, and nothing that could run code."""

    _known: ClassVar[frozenset[tuple[str, str]]] = frozenset(
        [
            ("collections", "OrderedDict"),
            ("gradcli.engine.tensor", "_rebuild"),
            ("gradcli.engine.tensor", "Tensor"),
            ("gradcli.engine.nn.parameter", "Parameter"),
            ("gradcli.engine.dtypes", "dtype_named"),
            ("gradcli.engine.dtypes", "Size"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "scalar"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy.core.multiarray", "scalar"),
            ("numpy._core.numeric", "_frombuffer"),
            ("numpy.core.numeric", "_frombuffer"),
            ("builtins", "set"),
            ("builtins", "complex"),
        ]
    )

    def find_class(self, module: str, name: str) -> Any:
        """Return a class or function that the file names, where it is one of those known."""
        if (module, name) not in self._known:
            raise pickle.UnpicklingError(
                f"Weights only load failed: the file holds a {module}.{name}, and reading such objects may run code. "
                "If you trust whoever wrote the file, use load(..., weights_only=False)"
            )
        return super().find_class(module, name)
