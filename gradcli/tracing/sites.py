"""Where in the user's code something happened: from a stack, from a node's recorded stack, from a function."""

import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from gradcli.backends.attribution import is_users_file, readable_path, shown_path
from gradcli.traces import SourceSite

_FRAME = re.compile(r'\s*File "(?P<file>.*)", line (?P<line>\d+), in (?P<function>.*)')
_HOME = str(Path(__file__).with_name("passes.py"))
OWN_FOLDER = str(Path(__file__).parent) + os.sep
"""Where the frames of a trace itself are."""
MODULE_ENTRY = "<gradcli: in module>"
PACKED_ENTRY = "<gradcli: packed>"
of_user = is_users_file


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's code, from `frame` outwards to the trace itself."""
    while frame is not None and not of_user(frame.f_code.co_filename):
        if is_home(frame.f_code.co_filename, frame.f_code.co_name):
            return None
        frame = frame.f_back
    return frame


def steps_to(frame: FrameType, home: FrameType | None, most: int) -> int:
    """How many calls below `home` a frame is, at most one more than `most`."""
    steps = 0
    outer: FrameType | None = frame
    while outer is not None and outer is not home and steps <= most:
        outer, steps = outer.f_back, steps + 1
    return steps


def is_home(filename: str, function: str) -> bool:
    """Whether this is the call of the traced program: frames outside of it do not belong to it."""
    return function == "trace" and filename == _HOME


def called_by_user(depth: int) -> FrameType | None:
    """The frame `depth` calls above the caller, if it is the user's own; None where a library called."""
    frame = sys._getframe(depth + 1)
    return frame if of_user(frame.f_code.co_filename) else None


def site_of_frame(frame: FrameType | None) -> SourceSite | None:
    """The site of a frame."""
    return None if frame is None else _site(shown_path(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)


def site_of_line(filename: str, line: int) -> SourceSite:
    """A line outside of functions."""
    return _site(shown_path(filename), line, "<module>")


@functools.lru_cache(maxsize=4096)
def _site(file: str, line: int, function: str) -> SourceSite:
    """One object for each line of the user's code, which many nodes share."""
    return SourceSite(file=file, line=line, function=function)


def site_of_stack(stack: Sequence[str]) -> SourceSite | None:
    """The innermost line of the user's code in a formatted stack, outermost entry first."""
    for entry in reversed(stack):
        match = _FRAME.match(entry)
        if match is None:
            continue
        function = match["function"].split("\n", 1)[0]
        if is_home(match["file"], function):
            return None
        if of_user(match["file"]) and match["file"] not in (MODULE_ENTRY, PACKED_ENTRY):
            return _site(shown_path(match["file"]), int(match["line"]), function)
    return None


def module_of_stack(stack: Sequence[str]) -> str | None:
    """The path of the module that ran when the stack was recorded, None outside of all modules."""
    match = _FRAME.match(stack[0]) if stack else None
    return match["function"].strip() if match is not None and match["file"] == MODULE_ENTRY else None


def is_packed(stack: Sequence[str]) -> bool:
    """Whether tensors were saved through hooks when the stack was recorded."""
    return any(PACKED_ENTRY in entry for entry in stack[:2])


def source_line(site: SourceSite | None) -> str | None:
    """The text of the line, or None if there is no source."""
    text = "" if site is None else linecache.getline(readable_path(site.file), site.line).strip()
    return text or None


def innermost(function: object) -> object:
    """The function behind partials and bound methods; for an object with `__call__`, that method's function."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, MethodType):
            function = function.__func__
        elif isinstance(function, FunctionType) or not callable(function):
            return function
        else:
            method = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself is wanted
            return method if isinstance(method, FunctionType) else function


def code_of(function: object) -> CodeType | None:
    """The code that runs when `function` is called; None for built-in ones."""
    inner = innermost(function)
    return inner.__code__ if isinstance(inner, FunctionType) else None


def is_users_function(function: object) -> bool:
    """Whether the user wrote or chose `function`: anything but a framework's or gradcli's own Python code."""
    code = code_of(function)
    return code is None or of_user(code.co_filename)


def site_of_function(function: object) -> SourceSite | None:
    """Where a function is defined; decorators with `__wrapped__` are followed."""
    inner = innermost(function)
    while isinstance(wrapped := getattr(inner, "__wrapped__", None), FunctionType | MethodType):
        inner = innermost(wrapped)
    code = code_of(inner)
    if code is None:
        return None
    return SourceSite(file=shown_path(code.co_filename), line=code.co_firstlineno, function=code.co_name)


def name_of_function(function: Callable[..., Any]) -> str:
    """The qualified name without the functions around it (`Net.my_hook`, `double`, `<lambda>`), or the one set."""
    inner = function.func if isinstance(function, functools.partial) else function
    name = str(getattr(inner, "__qualname__", None) or type(inner).__qualname__).rsplit("<locals>.", 1)[-1]
    given = getattr(inner, "__name__", name)
    was_set = isinstance(inner, FunctionType) and given not in (inner.__code__.co_name, name.rsplit(".", 1)[-1])
    return str(given) if was_set else name
