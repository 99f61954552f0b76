"""A function's code with hooks around its expressions, to record their values and to substitute others."""

import ast
import sys
import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.edits.draft import Draft
from gradcli.edits.source import Definition, compiled

_MARK = "gradcli's hook"
_ENTRY = -1
_RAISES = object()
_NESTED = 8
"""An edited backward that calls itself more often, through a graph that an edit has left attached, never ends; Python
cannot interrupt the passes that PyTorch then nests. A checkpoint inside a checkpoint calls itself once for each level.
"""
_OWN_NAMES = (
    ast.FunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.JoinedStr,
)
"""Nodes whose parts are not hooked: those with a scope of their own, and f-strings."""


@contextmanager
def running(codes: Mapping[FunctionType, CodeType]) -> Iterator[None]:
    """A context in which functions run other code."""
    before = {function: function.__code__ for function in codes}
    try:
        for function, code in codes.items():
            function.__code__ = code
        yield
    finally:
        for function, code in before.items():
            function.__code__ = code


@final
class Hooks:
    """What the hooked expressions of one function do: nothing, be recorded, or have another value at one place."""

    def __init__(self, left_over: Sequence[frozenset[str]] = ()) -> None:
        """`left_over` are, for each place, the local names that are not recorded there."""
        self._left_over = left_over
        self.frame: FrameType | None = None
        self.seen: dict[int, list[tuple[Any, dict[str, Any]]]] | None = None
        self._place: int | None = None
        self._code: CodeType | None = None
        self._made: Callable[[], Any] = _nothing
        self._more: Mapping[str, Any] = {}
        self._compared: list[tuple[CodeType, list[Any]]] | None = None

    def __call__(self, place: int, value: Any) -> Any:
        """Called with the number of a place and the value of its expression; returns what the program goes on with."""
        if place == _ENTRY:
            self.frame = sys._getframe(1)
            _refuse_endless(self.frame)
        elif self.seen is not None:
            value = self._made() if place == self._place and self._code is None else value
            hidden = self._left_over[place] if self._left_over else ()
            known = {name: each for name, each in sys._getframe(1).f_locals.items() if name not in hidden}
            self.seen.setdefault(place, []).append((value, known))
        elif place == self._place:
            frame = sys._getframe(1)
            if self._compared is not None:
                for code, values in self._compared:
                    values.append(_evaluated(code, frame))
                return value
            if self._code is None:
                return self._made()
            made = eval(self._code, frame.f_globals, {**self._more, **frame.f_locals})  # noqa: S307 - an edit made here
            return made.clone() if hasattr(made, "clone") else made  # a later in-place write must not change a variable
        return value

    @contextmanager
    def recording(self) -> Iterator[dict[int, list[tuple[Any, dict[str, Any]]]]]:
        """A context in which every value at every place is kept, also one given, with the local names at that time."""
        self.seen = {}
        try:
            yield self.seen
        finally:
            self.seen = None

    @contextmanager
    def giving(self, place: int, made: Callable[[], Any]) -> Iterator[None]:
        """A context in which a place has the value that `made` returns, in the precision of the user's code."""
        self._place, self._code, self._made = place, None, made
        try:
            yield
        finally:
            self._place, self._made = None, _nothing

    @contextmanager
    def comparing(self, place: int, codes: Sequence[CodeType]) -> Iterator[list[list[Any]]]:
        """A context in which codes are evaluated at a place, whose value stays; each code has a list of its values."""
        self._place, self._compared = place, [(code, []) for code in codes]
        try:
            yield [values for _, values in self._compared]
        finally:
            self._place = self._compared = None

    @contextmanager
    def computing(self, place: int, code: CodeType, more: Mapping[str, Any]) -> Iterator[None]:
        """A context in which a place has the value of other code, which can use the local names and `more`."""
        self._place, self._code, self._more = place, code, more
        try:
            yield
        finally:
            self._place, self._code, self._more = None, None, {}


def _refuse_endless(frame: FrameType) -> None:
    """Raise RecursionError if the code of this frame runs more than `_NESTED` times at once."""
    outer, running = frame.f_back, 1
    while outer is not None:
        running += outer.f_code is frame.f_code
        outer = outer.f_back
    if running > _NESTED:
        raise RecursionError("the edited backward calls itself")


def _nothing() -> None:
    """The value of a place to which none was given."""


def _evaluated(code: CodeType, frame: FrameType) -> Any:
    try:
        return eval(code, frame.f_globals, dict(frame.f_locals))  # noqa: S307 - an edit made here
    except Exception:
        return _RAISES


def compiled_expression(node: Any) -> CodeType:
    """The code of an expression."""
    return compile(ast.fix_missing_locations(ast.Expression(body=_new_parts_copied(node))), "<slip>", "eval")


def _new_parts_copied(node: Any) -> Any:
    """Copies of the new nodes, which are then given a place in the file; nodes of the file are used as they are."""
    if isinstance(node, list):
        return [_new_parts_copied(item) for item in node]
    if not isinstance(node, ast.AST) or hasattr(node, "lineno"):
        return node
    return type(node)(**{name: _new_parts_copied(value) for name, value in ast.iter_fields(node)})


def marks_of(values: Sequence[Sequence[Any]], framework: Any) -> Hashable:
    """A key that is equal for codes with equal values at every bench; None for code that raises at once."""
    marks = [_mark(value, framework) for here in values for value in here]
    return None if not marks or marks[0] is None else tuple(marks)


def array_of(tensor: Any, framework: Any) -> NDArray[Any] | None:
    """A tensor's values; None where it has none now: traced by JAX, released, or of a dtype that NumPy lacks."""
    try:
        return np.asarray(framework.to_array(tensor))
    except Exception:
        return None


def _mark(value: Any, framework: Any) -> Hashable:
    if value is _RAISES:
        return None
    if framework.is_tensor(value):
        array = array_of(value, framework)
        return object() if array is None else (array.shape, str(value.dtype), array.tobytes())
    return (type(value), value) if isinstance(value, int | float | str | type(None)) else object()


def hooked(node: Definition, function: FunctionType, places: Sequence[ast.expr], hooks: Hooks) -> CodeType | None:
    """The code of a function whose expressions `places`, by their numbers, go through the hooks."""
    numbers: dict[ast.AST, int] = {place: number for number, place in enumerate(places)}
    copied: Any = _copied(node, numbers)
    entry = ast.Expr(value=_call(_ENTRY, ast.Constant(value=None)))
    if isinstance(copied, ast.Lambda):
        copied.body = ast.Subscript(
            value=ast.Tuple(elts=[_call(_ENTRY, ast.Constant(value=None)), copied.body], ctx=ast.Load()),
            slice=ast.Constant(value=1),
            ctx=ast.Load(),
        )
    else:
        copied.body = [*copied.body[: _docstring(node)], entry, *copied.body[_docstring(node) :]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # the code calls a string, which is then replaced by the hooks
        code = compiled(copied, function)
    if code is None or _MARK not in code.co_consts:
        return None
    return code.replace(co_consts=tuple(hooks if c == _MARK else c for c in code.co_consts))


def _docstring(node: Definition) -> int:
    return int(isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None)


def _call(number: int, value: ast.expr) -> ast.expr:
    return ast.Call(func=ast.Constant(value=_MARK), args=[ast.Constant(value=number), value], keywords=[])


def _copied(node: Any, numbers: Mapping[ast.AST, int]) -> Any:
    if isinstance(node, list):
        return [_copied(item, numbers) for item in node]
    if not isinstance(node, ast.AST):
        return node
    made: Any = type(node)(**{name: _copied(value, numbers) for name, value in ast.iter_fields(node)})
    ast.copy_location(made, node)
    return _call(numbers[node], made) if node in numbers else made


def places_in(node: Definition, expressions: Collection[ast.expr]) -> list[ast.expr]:
    """The expressions of a function that can be hooked: not those in nested functions, nor those that write."""
    found: list[ast.expr] = []
    waiting: list[ast.AST] = list(node.body) if isinstance(node, ast.FunctionDef) else [node.body]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, _OWN_NAMES):
            continue
        if isinstance(each, ast.expr) and each in expressions and not writes(each):
            found.append(each)
        waiting += list(ast.iter_child_nodes(each))
    return found


def writes(node: ast.expr) -> bool:
    """Whether evaluating it twice may do something twice: a method such as `add_` is called in it."""
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr.endswith("_")
        for n in ast.walk(node)
    )


def hooked_codes(
    draft: Draft, places: Sequence[ast.expr], hooks: Hooks, ahead: Hooks
) -> dict[FunctionType, CodeType] | None:
    """The edited function's code with `hooks` at the places, and forward's, if backward is edited, with its own."""
    backward = hooked(draft.edited.node, draft.edited.function, places, hooks)
    if backward is None:
        return None
    codes = {draft.edited.function: backward}
    if draft.role == "backward" and draft.has("forward"):
        forward = draft.part("forward")
        code = hooked(forward.node, forward.function, (), ahead)
        if code is not None:
            codes[forward.function] = code
    return codes
