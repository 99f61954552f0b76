"""Protection of the checking process from the target: it must not end or corrupt it, or replace functions used."""

import builtins
import json
import math
import operator
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Never

import numpy as np

from gradcli.errors import UserCodeError, is_interrupt

_ALWAYS: tuple[ModuleType | type, ...] = (
    builtins, os, os.path, json, math, re, pathlib, pathlib.Path, np, np.linalg, np.random,
)  # fmt: skip
_FRAMEWORKS = {
    "gradcli.engine": (),
    "gradcli.engine.tensor": ("Tensor",),
    "gradcli.engine.function": ("Function",),
    "gradcli.engine.autograd": (),
    "torch": ("Tensor",),
    "torch.autograd": ("Function",),
    "torch.nn.functional": (),
    "jax": (),
    "jax.numpy": (),
}
"""Modules that are looked at where they have been imported, with the classes in them that are."""
_KEPT_MODULES = ("gradcli", "numpy", "torch", "jax", "json", "os", "pathlib", "re")
_GONE = object()
_all, _map, _is, _len = all, map, operator.is_, len
"""The functions that compare names, kept since a target may replace the built-in ones."""

Own = tuple[tuple[ModuleType | type, dict[str, Any]], ...]


def spaces() -> Iterator[ModuleType | type]:
    """The modules and classes that a check computes with; the built-in names come first."""
    yield from _ALWAYS
    for name, classes in _FRAMEWORKS.items():
        module = sys.modules.get(name)
        if module is not None:
            yield module
            yield from (vars(module)[each] for each in classes if each in vars(module))


def names_of_spaces() -> Own:
    """The values under every name of the spaces now."""
    return tuple((space, dict(vars(space))) for space in spaces())


def replaced_since(own: Own, *, restore: bool) -> tuple[str, ...]:
    """The names whose values are others than in `own`, which are restored if `restore`.

    Names added to a module do not count: modules add what they import. No built-in function is called before the
    built-in names have been looked at, since they may be what was replaced.
    """
    found = []
    for space, names in own:
        now = space.__dict__
        is_class = space.__class__ is not ModuleType
        if _same(names, now, exactly=is_class):
            continue
        for name, value in names.items():
            if now.get(name, _GONE) is not value and name not in _VARYING and not _by_itself(space, now.get(name)):
                found.append((space, name))
                if restore:
                    _put(space, name, value)
        if is_class:
            for name in [name for name in now if name not in names]:
                found.append((space, name))
                if restore:
                    type.__delattr__(space, name)
    return tuple(f"{space.__name__}.{name}" for space, name in found)


def _same(names: dict[str, Any], now: Mapping[str, Any], *, exactly: bool) -> bool:
    """Whether all names have the values that they had, as the order of both dicts shows at once; more unless `exactly`.

    A False says nothing: a name that was removed and put back is the last one.
    """
    if _len(now) < _len(names) or (exactly and _len(now) != _len(names)):
        return False
    return _all(_map(_is, names.values(), now.values())) and _all(_map(_is, names, now))


def _by_itself(space: ModuleType | type, value: object) -> bool:
    """Whether a framework replaced the function itself: PyTorch wraps some functions when they are first used."""
    top = space.__name__.partition(".")[0] if space.__class__ is ModuleType else space.__module__.partition(".")[0]
    if top != "torch" and top != "jax":  # noqa: PLR1714 - nothing is called before the built-in names are restored
        return False
    folder = os.path.dirname(getattr(sys.modules.get(top), "__file__", None) or "")
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith(folder + os.sep)


_VARYING = frozenset({"__builtins__", "__dict__", "__weakref__", "__abstractmethods__", "_abc_impl", "_", "Storage"})
"""Names that a space changes by itself: `torch.Storage` is that of the default dtype."""


def _put(space: ModuleType | type, name: str, value: object) -> None:
    if space.__class__ is ModuleType:
        space.__dict__[name] = value
    else:
        type.__setattr__(space, name, value)


@contextmanager
def own_functions_restored() -> Iterator[None]:
    """Restore the functions that a check computes with, and the modules that were removed from `sys.modules`.

    Raises:
        UserCodeError: some were replaced, so that nothing which was computed since can be relied on.
    """
    if _RESTORING.get():  # in a check that belongs to another one, which looks at its end
        yield
        return
    token = _RESTORING.set(True)
    before = names_of_spaces()
    modules = dict(sys.modules)
    trouble: BaseException | None = None
    try:
        yield
    except BaseException as error:
        trouble = error
    _RESTORING.reset(token)
    replaced = replaced_since(before, restore=True)
    changed = () if _same(modules, sys.modules, exactly=False) else tuple(modules)
    removed = tuple(
        name
        for name in changed
        if sys.modules.get(name) is not modules[name] and name.partition(".")[0] in _KEPT_MODULES
    )
    sys.modules.update({name: modules[name] for name in removed})
    if trouble is not None and is_interrupt(trouble):
        raise trouble
    if replaced or removed:
        what = [*replaced, *(f"sys.modules[{name!r}]" for name in removed)]
        shown = ", ".join(what[:_SHOWN]) + (f" and {len(what) - _SHOWN} more" if len(what) > _SHOWN else "")
        raise UserCodeError(
            f"while it ran, the target replaced {shown}, which gradcli itself uses, so the result may be wrong: "
            "restore what you replace",
            phase="forward",
        ) from trouble
    if trouble is not None:
        raise trouble


_SHOWN = 5
_RESTORING: ContextVar[bool] = ContextVar("gradcli_restoring", default=False)


@contextmanager
def end_refused() -> Iterator[None]:
    """Make `os._exit` raise SystemExit in this process, which would otherwise end with the target's own exit code."""
    own, process = os._exit, os.getpid()

    def refuse(status: int) -> Never:
        if os.getpid() != process:  # a child made by fork ends like this
            own(status)
        raise SystemExit(f"os._exit({status}): outside of gradcli the process would have ended with exit code {status}")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = own


@contextmanager
def compressed_matrices_checked() -> Iterator[None]:
    """Make SciPy raise at the indices of a compressed matrix that lie outside it.

    By itself it checks their number alone, and a product with the matrix then writes outside of its memory. A SciPy
    that is not imported yet stays as it is.
    """
    sparse = sys.modules.get("scipy.sparse")
    kinds: list[Any] = [getattr(sparse, name, object) for name in ("csr_matrix", "bsr_matrix")]
    owners = {owner for kind in kinds for owner in kind.__mro__ if "check_format" in vars(owner)}
    before = {owner: vars(owner)["check_format"] for owner in owners}
    try:
        for owner, check in before.items():
            owner.check_format = _fully(check)
        yield
    finally:
        for owner, check in before.items():
            owner.check_format = check


def _fully(check: Any) -> Any:
    def check_format(matrix: Any, full_check: bool = True) -> None:
        check(matrix, full_check=full_check)
        if np.any(np.diff(matrix.indptr) < 0):  # a full check lets those pass that end with 0
            raise ValueError("indptr must be a non-decreasing sequence")
        check(matrix, full_check=True)

    return check_format
