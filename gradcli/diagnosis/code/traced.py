"""What a traced run of backward shows: the line that last wrote an entry, and the first that rounds."""

import contextlib
import linecache
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.attribution import is_users_file
from gradcli.backends.base import Subject
from gradcli.errors import UserCodeError
from gradcli.frozen import dataclass
from gradcli.results import Entry, Location

_MOST = 20_000_000
"""Entries that are compared in all, one array after each line; longer runs are not followed to their end."""
_ROUNDS = re.compile(r"\.(float|half|bfloat16)\(\)|\b(float32|float16|bfloat16|complex64|single)\b")
_ONLY_ASKS = re.compile(r"^\s*(if|elif|while|assert)\b|[=!]=")


def traced(
    subject: Subject, follow: Callable[[FrameType, str, Any], Any], seed: int | None = None, *, forward: bool = False
) -> bool:
    """Run backward or forward under a trace function; False if one is set already, and nothing ran.

    grad_output is ones, or random numbers if there is a seed. What ran counts, even if the framework then refuses what
    backward returned.
    """
    if sys.gettrace() is not None:
        return False
    generator = None if seed is None else np.random.default_rng(seed)
    blocks = subject.codomain.blocks
    cotangents = [
        np.ones(b.shape, dtype=b.dtype)
        if generator is None
        else np.asarray(1 + generator.random(b.shape), dtype=b.dtype)
        for b in blocks
    ]
    sys.settrace(follow)
    try:
        with contextlib.suppress(UserCodeError):
            if forward:
                subject.call()
            else:
                (subject.backward if subject.info.inner else subject.raw_backward)(cotangents)
    finally:
        sys.settrace(None)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The line that wrote most of some wrong entries last, and those lines that wrote right entries alone."""

    line: int
    of_right: frozenset[int]


def last_written(
    subject: Subject,
    name: str,
    shape: tuple[int, ...],
    entries: Sequence[Entry],
    wrong: NDArray[np.bool_] | None = None,
) -> Written | None:
    """The line of backward that wrote most of some entries of an array last; None if none did after it was made.

    `name` is the array's name in backward. It may be a whole Jacobian, with the input's `shape` as its last axes. None
    also for entries of an input of another shape: a check may have found them at other sizes. With all `wrong` entries,
    a line that also wrote right ones, which are not zero, is named only if every line did.
    """
    code = getattr(subject.info.backward, "__code__", None)
    if not isinstance(code, CodeType) or not entries or not all(_lies_in(entry.index, shape) for entry in entries):
        return None
    filling = _Filling(code, name)
    if not traced(subject, filling.follow, seed=0) or filling.lines is None:
        return None
    lines, rank = filling.lines, len(shape)
    if lines.shape[lines.ndim - rank :] != shape:
        if lines.size != np.prod(shape):
            return None
        lines = lines.reshape(shape)
    found: Counter[int] = Counter()
    for entry in entries:
        if any(n >= size for n, size in zip(entry.index, shape, strict=False)):
            continue  # it was measured at inputs of other sizes
        at: Any = (..., *entry.index)
        found.update(int(n) for n in np.unique(lines[at]) if n)
    known = wrong is not None and wrong.shape == shape
    of_right = {int(n) for n in np.unique(lines[..., ~wrong]) if n} if known and wrong is not None else set()
    of_wrong = {int(n) for n in np.unique(lines[..., wrong])} if known else set()
    suspects = set(found) - of_right or set(found)
    line = max(suspects, key=lambda line: (found[line], line), default=None)
    return None if line is None else Written(line=line, of_right=frozenset(of_right - of_wrong))


def _lies_in(index: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return len(index) == len(shape) and all(0 <= i < size for i, size in zip(index, shape, strict=True))


@final
class _Filling:
    """A trace function that keeps, for each entry of one array, the last line that changed it, 0 for none."""

    def __init__(self, code: CodeType, name: str) -> None:
        self.lines: NDArray[np.intp] | None = None
        self._code, self._name = code, name
        self._value: NDArray[Any] | None = None
        self._previous: int | None = None
        self._left = _MOST

    def follow(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not self._code:
            return None
        if event == "call":
            self._value = self._previous = None
        if event in ("line", "return") and self._previous is not None and self._left > 0:
            self._compare(frame.f_locals.get(self._name), self._previous)
        if event == "line":
            self._previous = frame.f_lineno
        return self.follow

    def _compare(self, tensor: Any, line: int) -> None:
        value = _stacked(tensor) if isinstance(tensor, list) else array_of(tensor)
        if value is None:
            return
        self._left -= value.size
        before = self._value
        if before is None or before.shape != value.shape or self.lines is None:
            if "empty" in linecache.getline(self._code.co_filename, line) and value.dtype.kind in "fc":
                value[...] = np.nan  # its values are arbitrary, and may be those that are written later
            self.lines = np.where((value == 0) | (value != value), 0, line)  # noqa: PLR0124 - true for NaN
        else:
            same = before == value
            if value.dtype.kind in "fc":
                same |= np.isnan(before) & np.isnan(value)
            self.lines = np.where(same, self.lines, line)
        self._value = np.array(value)


def _stacked(tensors: list[Any]) -> NDArray[Any] | None:
    """The stacked values of a list, NaN for elements that are not tensors; None unless all tensors have one shape."""
    found = [array_of(each) for each in tensors]
    shapes = {each.shape for each in found if each is not None}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    empty = np.full(shape, np.nan)
    return np.stack([empty if each is None else each for each in found])


def array_of(tensor: Any) -> NDArray[Any] | None:
    """The values of an array or a tensor, in its own memory where it can be; None for other objects."""
    if isinstance(tensor, np.ndarray):
        return tensor
    try:
        found = tensor.detach().numpy()
    except Exception:  # whatever the user's object raises: it is not a tensor with values
        return None
    return found if isinstance(found, np.ndarray) else None


def first_rounded(subject: Subject, name: str) -> int | None:
    """The line of backward after which a local array has fewer than 64 bits; None if it never has."""
    code = getattr(subject.info.backward, "__code__", None)
    found: list[int] = []
    previous: int | None = None

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal previous
        if frame.f_code is not code:
            return None
        if previous is not None and not found and _has_few_digits(frame.f_locals.get(name)):
            found.append(previous)
        previous = frame.f_lineno if event == "line" else previous
        return follow

    traced(subject, follow)
    return found[0] if found else None


def _has_few_digits(value: Any) -> bool:
    """Whether an array or a tensor has real or complex numbers of fewer digits than float64."""
    return bool(_ROUNDS.search(str(getattr(value, "dtype", ""))))


def first_rounding(subject: Subject) -> Location | None:
    """The first line of the user's that ran in backward, or in a function that it calls, and names a low precision."""
    code = getattr(subject.info.backward, "__code__", None)
    found: list[Location] = []
    depth = 0

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal depth
        own = frame.f_code is code
        if not own and not (depth and is_users_file(frame.f_code.co_filename)):
            return None
        depth += own * ((event == "call") - (event == "return"))
        if event == "line" and not found:
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
            if _ROUNDS.search(text) and not _ONLY_ASKS.search(text):
                found.append(Location(file=frame.f_code.co_filename, line=frame.f_lineno))
        return follow

    traced(subject, follow)
    return found[0] if found else None
