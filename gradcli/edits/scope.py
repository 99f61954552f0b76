"""What an edit of backward can use: the tensors and numbers in its variables and on ctx."""

import ast
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.frozen import dataclass

_MOST_ENTRIES = 100_000
_WITH_CONTEXT = ("torch", "engine")
"""The frameworks whose backward is given a ctx first, in a Function class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """An expression that backward may use as it stands: its text, its shape, and whether it is a tensor."""

    text: str
    shape: tuple[int, ...]
    is_tensor: bool
    is_cotangent: bool = False

    @property
    def length(self) -> float:
        """1 for a name, and more for what is read from another: the name is preferred where both have one value."""
        return 1.0 if self.text.isidentifier() else 1.1

    @property
    def node(self) -> ast.expr:
        """A new node for it."""
        return ast.parse(self.text, mode="eval").body


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The atoms, cotangents among them, and the values of all names at the end of a run of backward."""

    atoms: tuple[Atom, ...]
    values: dict[str, Any]

    @property
    def tensors(self) -> tuple[Atom, ...]:
        """The atoms that are tensors, cotangents left out."""
        return tuple(a for a in self.atoms if a.is_tensor and not a.is_cotangent)

    @property
    def cotangents(self) -> tuple[Atom, ...]:
        """The gradients of the outputs."""
        return tuple(a for a in self.atoms if a.is_cotangent)

    @property
    def numbers(self) -> tuple[Atom, ...]:
        """Numbers in names and on ctx."""
        return tuple(a for a in self.atoms if not a.is_tensor)

    def value_of(self, atom: Atom) -> object:
        """The value of a name, or of what is read from one; None where it cannot be read."""
        found = _value(atom.text, self.values)
        return None if found is self.values else found


def names_at_end(code: CodeType, run: Callable[[], object]) -> dict[str, Any]:
    """The local names of the last call of a code object while `run` runs; empty where it cannot be seen."""
    seen: dict[str, Any] = {}

    def follow(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code is not code:
            return None
        if event == "return":
            seen.clear()
            seen.update(frame.f_locals)
        return follow

    previous = sys.gettrace()
    if previous is not None:
        return seen
    sys.settrace(follow)
    try:
        run()
    finally:
        sys.settrace(previous)
    return seen


def scope_of(
    names: dict[str, Any],
    definition: ast.FunctionDef | ast.Lambda,
    is_tensor: Callable[[object], bool],
    *,
    framework: str,
    role: str = "backward",
) -> Scope:
    """The values of a function's variables after a run; only backward is given gradients of the outputs."""
    parameters = [a.arg for a in (*definition.args.posonlyargs, *definition.args.args)]
    variadic = [] if definition.args.vararg is None else [definition.args.vararg.arg]
    first = names.get(parameters[0]) if parameters else None
    context = (
        parameters[0] if framework in _WITH_CONTEXT and callable(getattr(first, "save_for_backward", None)) else None
    )
    given = parameters[1:] + variadic if context is not None else parameters[-1:]
    given = given if role == "backward" else []
    found: list[Atom] = []
    for key, value in names.items():
        if key == context:
            found += _on_context(key, value, definition, is_tensor)
        else:
            found += _atoms(key, value, is_tensor, is_cotangent=key in given)
    named = {id(value) for value in names.values()}
    unique = {atom.text: atom for atom in found if "[" not in atom.text or id(_value(atom.text, names)) not in named}
    return Scope(atoms=tuple(unique.values()), values=names)


def _value(text: str, names: dict[str, Any]) -> object:
    """The value of an element of a tuple or of the saved tensors; `names` itself where it cannot be read."""
    try:
        return eval(text, {}, dict(names))  # noqa: S307 - a name with an index, made here
    except Exception:
        return names


def _atoms(text: str, value: object, is_tensor: Callable[[object], bool], *, is_cotangent: bool) -> Iterator[Atom]:
    if is_tensor(value) or isinstance(value, np.ndarray | np.generic):
        tensor: Any = value
        if int(np.prod(tensor.shape)) <= _MOST_ENTRIES:
            yield Atom(text=text, shape=tuple(tensor.shape), is_tensor=True, is_cotangent=is_cotangent)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield Atom(text=text, shape=(), is_tensor=False)
    elif isinstance(value, tuple | list) and len(value) <= 8:
        for number, part in enumerate(value):
            if is_tensor(part):
                yield from _atoms(f"{text}[{number}]", part, is_tensor, is_cotangent=is_cotangent)


def _on_context(key: str, context: Any, definition: ast.AST, is_tensor: Callable[[object], bool]) -> Iterator[Atom]:
    """The attributes that forward set on ctx, and saved tensors that backward gave no name."""
    own = getattr(context, "__dict__", {})
    for attribute, value in own.items():
        if not attribute.startswith("_") and attribute not in (
            "needs_input_grad",
            "saved_tensors",
            "materialize_grads",
        ):
            yield from _atoms(f"{key}.{attribute}", value, is_tensor, is_cotangent=False)
    try:
        saved = tuple(context.saved_tensors)
    except Exception:  # released, or changed in place since: backward cannot read it either
        return
    taken, unpacked = _unpacked(definition)
    for number, tensor in enumerate(saved):
        named = taken and number < len(unpacked) and not unpacked[number].startswith("_")
        if tensor is not None and not named:
            yield from _atoms(f"{key}.saved_tensors[{number}]", tensor, is_tensor, is_cotangent=False)


@lru_cache(maxsize=16)
def _unpacked(definition: ast.AST) -> tuple[bool, tuple[str, ...]]:
    """Whether backward reads the saved tensors, and the names that it gives to them."""
    nodes = list(ast.walk(definition))
    taken = any(isinstance(n, ast.Attribute) and n.attr in ("saved_tensors", "saved_variables") for n in nodes)
    for node in nodes:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Attribute)
            and node.value.attr == "saved_tensors"
        ):
            target = node.targets[0]
            if isinstance(target, ast.Tuple | ast.List):
                return taken, tuple(e.id if isinstance(e, ast.Name) else "_" for e in target.elts)
    return taken, ()


Array = NDArray[Any]
