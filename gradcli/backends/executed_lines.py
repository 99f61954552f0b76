"""How many lines of the user's code a call runs, which shows whether an iteration stops earlier at other inputs."""

import contextlib
import dis
import functools
import gc
import sys
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from gradcli.backends.attribution import is_users_file
from gradcli.cases import Argument
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.vector_map import Effort

_is_users_file = functools.cache(is_users_file)


class EffortExceededError(Exception):
    """The user's code ran more lines than allowed."""


Line = tuple[CodeType, int]
_GENERATED = "<string>"
"""The file of `python -c`, and of what libraries generate, such as the methods of named tuples, which JAX makes many
of."""
_BACKWARD = frozenset(number for name, number in dis.opmap.items() if "JUMP_BACKWARD" in name)
"""The operations that only loops end with: all other jumps lead forward. Every second byte of code is an operation."""

_ADDING = frozenset({"LIST_APPEND", "SET_ADD", "MAP_ADD"})
"""What comprehensions add with, to something below the top of the stack; `[1, *x, 2]` adds to the top."""


def lines_run(call: Callable[[], Vector]) -> Effort:
    """Run `call` and count the executed lines of the user's own code, and of libraries other than the frameworks.

    A tracer that is set already, such as a debugger's, is restored afterwards and does not see the call.
    """
    runs: dict[Line, int] = defaultdict(int)

    def line(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            runs[frame.f_code, frame.f_lineno] += 1
        return line

    with _tracing(line, _is_users_file):
        value = call()
    repeats = any(times > 1 for times in runs.values()) or any(map(_may_repeat, {code for code, _ in runs}))
    return Effort(lines=runs, may_repeat=repeats, value=value)


def _may_repeat(code: CodeType) -> bool:
    """Whether a function has a loop, or looks up its own name and so may call itself."""
    if code.co_name in code.co_freevars or not _BACKWARD.isdisjoint(code.co_code[::2]):
        return True
    operations = dis.get_instructions(code) if code.co_name in code.co_names else ()
    return any(one.argval == code.co_name for one in operations if one.opname == "LOAD_GLOBAL")


def _comprehensions(code: CodeType) -> dict[int, int]:
    """The lines of the comprehensions that are part of a function's code, each with its comprehension's number."""
    if code.co_name.startswith("<"):
        return {}
    steps = list(dis.get_instructions(code))
    loops = [(step.argval, step.offset) for step in steps if step.opcode in _BACKWARD]
    lines: dict[int, int] = {}
    for adding in (step.offset for step in steps if step.opname in _ADDING and (step.arg or 0) > 1):
        around = [loop for loop in loops if loop[0] <= adding < loop[1]]
        first, last = min(around, key=lambda loop: loop[1] - loop[0], default=(1, 0))
        places = [step.positions for step in steps if first <= step.offset <= last]
        lines |= {place.lineno: adding for place in places if place is not None and place.lineno is not None}
    return lines


@functools.cache
def _counted_loops(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The counting loops of a function, as `for _ in range(50)`: the line of the head, and the first of the body.

    A loop whose body uses the number is left out: it may search a list.
    """
    steps = list(dis.get_instructions(code))
    found = []
    for place, step in enumerate(steps[:-1]):
        stored, head = steps[place + 1], _line_of(step)
        if step.opname != "FOR_ITER" or not stored.opname.startswith("STORE"):
            continue
        inside = [each for each in steps[place + 2 :] if each.offset < step.argval]
        uses_number = any(each.opname.startswith("LOAD") and each.argval == stored.argval for each in inside)
        body = next((line for each in inside if (line := _line_of(each)) not in (None, head)), None)
        if head is not None and body is not None and not uses_number:
            found.append((head, body))
    return tuple(found)


def _line_of(step: dis.Instruction) -> int | None:
    return None if step.positions is None else step.positions.lineno


@dataclass(slots=True)
class LineCounts:
    """How often each line of some code was run, in how many calls of a function: JAX traces it more than once."""

    runs: Counter[Line] = field(default_factory=Counter)
    calls: int = 0
    compiled: Mapping[str, int] = field(default_factory=dict)
    """The trips through loops of the framework's, which run no line of Python each time."""

    def loops_alike(self, other: "LineCounts") -> bool:
        """Whether each function that ran in both calls ran its most frequent line equally often.

        Branches change which lines are run, but only the number of an iteration's steps changes that.
        """
        ours, theirs = self._loops(), other._loops()
        return all(ours[code] == theirs[code] for code in ours.keys() & theirs.keys())

    def runs_out(self, other: "LineCounts", least: int) -> bool:
        """Whether a counting loop ran to its end here, in `least` steps or more, and was left early in `other`.

        Where a loop runs to its end, its head runs once more than its body; where it is left early, as by an iteration
        that has converged, both run equally often.
        """
        for code in {code for code, _ in self.runs}:
            for head, body in _counted_loops(code):
                steps = other.runs[code, body]
                left_there = steps > 0 and other.runs[code, head] == steps
                if left_there and least <= self.runs[code, body] < self.runs[code, head]:
                    return True
        return False

    def longest_loop(self, left_out: Collection[int] = (), as_in: Iterable["LineCounts"] = ()) -> int:
        """How often some function went over the line that it went over most.

        Args:
            left_out: numbers that do not count.
            as_in: other calls; what a function did another number of times there does not count.
        """
        others = [other._loops() for other in as_in]
        same = ((c, n) for c, n in self._loops().items() if n not in left_out)
        return max((n for c, n in same if all(other.get(c) == n for other in others)), default=0)

    def _loops(self) -> dict[object, int]:
        """How often each function, or comprehension, went over the line that it went over most, in each of the calls.

        A comprehension is told from its function: from Python 3.12 its code is part of the function's.
        """
        comprehensions = {code: _comprehensions(code) for code in {code for code, _ in self.runs}}
        longest: dict[object, int] = {}
        for (code, line), times in self.runs.items():
            part = code, comprehensions[code].get(line)
            longest[part] = max(times, longest.get(part, 0))
        loops = {part: times // max(self.calls, 1) for part, times in longest.items()}
        loops.update(self.compiled)
        return loops


class Counted(ABC):
    """Something that can be called, and can count the lines of the user's code that a call runs."""

    @abstractmethod
    def call(self) -> object:
        """Run the user's code once. Raises UserCodeError."""

    def line_counts(self) -> LineCounts:
        """How often a call runs each line of the user's code, the framework's loops unrolled. Raises UserCodeError."""
        seen = LineCounts()

        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            if event == "line":
                seen.runs[frame.f_code, frame.f_lineno] += 1
            return line

        with _tracing(line, _is_users_file):
            self.call()
        return seen

    def loops_at(self, arguments: Sequence[Argument]) -> Mapping[str, int]:  # noqa: ARG002 - for those that override it
        """The trips through loops of the framework's that a call at these arguments runs. Raises UserCodeError."""
        return {}


@contextlib.contextmanager
def at_most(lines: int, function: Callable[..., Any] | None) -> Iterator[LineCounts]:
    """Count the lines of code imported from where `function` is, and stop it with EffortExceededError after so many.

    An iteration that ends at one input may go on for ever at another. Installed packages are not counted, nor are the
    bodies of modules: what is imported on first use must not be left half imported. With None, nothing is counted.
    """
    seen, left = LineCounts(), lines
    code = getattr(function, "__code__", None)
    if code is None:
        yield seen
        return
    home = _home(code.co_filename)

    def line(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if event == "call" and frame.f_code is code:
            seen.calls += 1
        if event == "line":
            left -= 1
            seen.runs[frame.f_code, frame.f_lineno] += 1
        if left < 0:
            raise EffortExceededError(
                f"gradcli stopped the call after {lines:,} executed lines: a loop may never end at these inputs"
            )
        return line

    with _tracing(line, lambda filename: _home(filename) == home):
        yield seen


@functools.cache
def _home(filename: str) -> Path:
    """The folder from which a user's file is imported; of an installed package its topmost folder or its one file."""
    path = Path(filename)
    for number, part in enumerate(path.parts):
        if part in ("site-packages", "dist-packages"):
            return Path(*path.parts[: number + 2])
    folder = path.parent
    while _is_users_file(filename) and (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


@contextlib.contextmanager
def _tracing(line: Callable[[FrameType, str, Any], Any], chosen: Callable[[str], bool]) -> Iterator[None]:
    """Call `line` in frames of functions in the files that are `chosen`; the tracer set before is restored."""
    known: dict[str, bool] = {}  # a framework enters hundreds of frames a call

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        inside = known.get(code.co_filename)
        if inside is None:
            inside = known[code.co_filename] = chosen(code.co_filename)
        if code.co_filename == _GENERATED and frame.f_globals.get("__name__") != "__main__":
            inside = False
        return line(frame, event, argument) if inside and code.co_name != "<module>" else None

    before, collecting = sys.gettrace(), gc.isenabled()
    gc.disable()  # a collection may call Python code of anybody's
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)
        if collecting:
            gc.enable()
