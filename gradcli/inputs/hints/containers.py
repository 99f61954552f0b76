"""Arguments that are dicts, lists or tuples of tensors, recognised by how forward takes them apart: `params["W"]`."""

import ast
import dataclasses
import inspect
import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.inputs.hints.argument_names import says_number
from gradcli.inputs.hints.documented_shapes import documented_shapes, texts_of
from gradcli.inputs.hints.reading import read_hints
from gradcli.sources import bindings, nodes_of, source_of, tree_of
from gradcli.targets import Parameter, TargetInfo

_NAMES = frozenset(
    ("params", "parameters", "weights", "layers", "state", "carry", "model", "net", "tree", "pytree", "ps")
)
"""Arguments that are unpacked into tensors of their own, rather than into the entries of one."""
_PAIRS = (("w", "b"), ("h", "c"), ("weight", "bias"), ("mu", "sigma"), ("mean", "std"), ("kernel", "bias"))
_ANNOTATED = ("dict", "mapping", "list", "tuple", "sequence", "pytree")
_OF_FUNCTIONS = frozenset(("torch", "engine"))
_OF_TENSORS = frozenset(("shape", "dtype", "ndim", "size", "T", "mT", "device", "real", "imag", "data", "grad", "sum"))
"""Attributes that tell a tensor from a dataclass with a field of that name."""
_MAKERS = frozenset(("array", "asarray", "stack", "concatenate", "zeros", "zeros_like", "empty_like"))
"""Functions that make one array."""
_LAYERS = 2
"""Elements of a list over which forward loops."""
_DEEPEST = 3
"""Calls of further functions that an argument is followed into."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """How an argument is put together: a value with 0 in the place of each tensor, and short names for these.

    `leaves` are the paths of the tensors, such as `['W']` or `[0][1]`, each with a name as forward calls it; where
    `holds_tensors` they are tensors by the container's name, and no settings. Where it `may_be_a_tensor`, one tensor
    can be read as forward reads it.
    """

    value: Any
    leaves: tuple[tuple[str, str], ...]
    holds_tensors: bool = False
    may_be_a_tensor: bool = False


class _Node:
    """What is known of a value: keys that it is read by, elements that it is unpacked into, attributes."""

    def __init__(self) -> None:
        self.keys: dict[str, _Node] = {}
        self.optional = self.is_sliced = False
        self.elements: dict[int, _Node] = {}
        self.each: _Node | None = None
        self.count = 0
        self.fields: dict[str, _Node] = {}
        self.name = ""

    @property
    def is_leaf(self) -> bool:
        """Whether it is a tensor: nothing is read from it, or entries, as `c[3]` beside `c[:3]`."""
        entries = self.is_sliced and all(part.is_leaf for part in self.elements.values())
        return not (self.keys or (self.elements and not entries) or self.each or self.optional)

    @property
    def parts(self) -> list["_Node"]:
        """What it is taken apart into, other than by keys and attributes."""
        return [*self.elements.values(), *([self.each] if self.each is not None else [])]

    @property
    def length(self) -> int:
        """How many elements are read at least: it is unpacked into them, as `a, b = x`, or they are read by place."""
        return max(self.count, max(self.elements, default=-1) + 1)

    @property
    def may_be_a_tensor(self) -> bool:
        """Whether it is read by places alone, as a tensor may be too: `a, b = x` or `x[0][1]`."""
        return not (self.keys or self.optional) and all(part.may_be_a_tensor for part in self.parts)


def containers_of(info: TargetInfo) -> dict[str, Container]:
    """The containers among forward's required arguments, by their names."""
    found: dict[str, Container] = {}
    taken = {parameter.name for parameter in info.parameters}
    for parameter in info.parameters:
        if parameter.variadic or parameter.has_default or parameter.static or info.forward is None:
            continue
        node = _Node()
        _read(info.forward, parameter.name, node, _DEEPEST)
        for key in _documented_keys(info, parameter.name) if not node.elements and node.each is None else ():
            node.keys.setdefault(key, _Node())
        kind = _class_of(info.forward, parameter.name, node)
        if kind is not None:
            node.keys, node.elements = {}, {}
            node.fields = {name: node.fields.get(name, _Node()) for name in _fields_of(kind)}
        elif not _is_container(node, parameter) or _is_tensor(info, parameter.name, node):
            continue
        leaves: list[tuple[str, str]] = []
        by_number = kind is not None and issubclass(kind, tuple) and info.backend != "jax"  # as the backend names them
        value = _built(node, "", leaves, kind, by_number=by_number)
        found[parameter.name] = Container(
            value=value,
            leaves=_with_own_names(leaves, taken, parameter.name),
            holds_tensors=parameter.name.lower() in _NAMES,
            may_be_a_tensor=kind is None and node.may_be_a_tensor,
        )
    return found


def _documented_keys(info: TargetInfo, name: str) -> list[str]:
    """The keys of a dict that documentation writes out with their shapes: `params = {'w': (3, 3), 'b': (3,)}`."""
    texts = texts_of(source_of(info.forward), info.documentation)
    found = [re.search(rf"(?<![\w.]){re.escape(name)}\s*[=:]\s*\{{([^{{}}]*)\}}", text) for text in texts]
    return [key for match in found if match is not None for key in re.findall(r"['\"](\w+)['\"]\s*:\s*[(\[]", match[1])]


def _is_tensor(info: TargetInfo, name: str, node: _Node) -> bool:
    """Whether what is read by places is a tensor: by its documented shape, its attributes, or its gradient.

    PyTorch takes no gradient for a tuple from the backward of a Function; other frameworks do.
    """
    if not node.may_be_a_tensor:
        return False
    if not node.fields.keys().isdisjoint(_OF_TENSORS):
        return True
    names = [parameter.name for parameter in info.parameters]
    of_function = info.backend in _OF_FUNCTIONS and info.backward is not None and not info.inner
    has_gradient = of_function and read_hints(info, names).gradient_of(names.index(name)) is True
    shapes = documented_shapes(names, source_of(info.forward), info.documentation)
    has_shape = shapes.get(name, ())[:1] == (node.length,)
    return has_gradient or has_shape or _is_array(tree_of(source_of(info.backward)), names.index(name), len(names))


def _is_array(backward: ast.Module | None, position: int, count: int) -> bool:
    """Whether backward makes an array of the gradient at a position among so many, as by `np.array([a, b])`."""
    nodes = nodes_of(backward) if backward is not None else ()
    held = [pair for node in nodes if isinstance(node, ast.Assign) for pair in bindings(node)]
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    listed = [value.elts[position] for value in returned if isinstance(value, ast.Tuple) and len(value.elts) == count]
    named = [
        value
        for own in listed
        for target, value in held
        if isinstance(own, ast.Name) and isinstance(target, ast.Name) and target.id == own.id
    ]
    functions = [value.func for value in (*listed, *named) if isinstance(value, ast.Call)]
    return any(_last_name(function) in _MAKERS for function in functions)


def _is_container(node: _Node, parameter: Parameter) -> bool:
    """Whether an argument is read as a container, and not as a tensor that is indexed or unpacked into entries."""
    name, annotation = parameter.name.lower(), (parameter.annotation or "").lower()
    if node.keys or node.optional:
        return True
    if any(not part.is_leaf for part in node.parts):
        return True
    if not node.count:
        return bool(node.elements) and name in _NAMES
    names = [child.name.lower().rstrip("0123456789") for child in node.parts]
    paired = any(set(pair) <= set(names) for pair in _PAIRS)
    return name in _NAMES or paired or any(word in annotation for word in _ANNOTATED)


def _built(node: _Node, path: str, leaves: list[tuple[str, str]], kind: Any = None, *, by_number: bool = False) -> Any:
    """The container with zeros for tensors, whose paths and names are added to `leaves`.

    A sequence of sequences is a list, one of tensors a tuple. Fields of a class `kind` are all tensors.
    """
    if kind is not None:
        for number, name in enumerate(node.fields):
            leaves.append((f"{path}[{number}]" if by_number else f"{path}.{name}", name))
        return kind(**dict.fromkeys(node.fields, 0))
    if node.keys or node.optional:
        for key, child in node.keys.items():
            if key.isidentifier() and (not child.name or says_number(key)):
                child.name = key
        return {key: _built(child, f"{path}[{key!r}]", leaves) for key, child in node.keys.items()}
    if node.each is not None or (node.elements and not (path and node.is_leaf)):
        return _sequence(node, path, leaves)
    leaves.append((path, node.name))
    return 0


def _sequence(node: _Node, path: str, leaves: list[tuple[str, str]]) -> Any:
    count = max(node.length, _LAYERS if node.each is not None else 0)
    made = []
    for place in range(count):
        child = node.elements.get(place, node.elements.get(place - count, node.each or _Node()))
        before = len(leaves)
        made.append(_built(child, f"{path}[{place}]", leaves))
        if child is node.each or not child.is_leaf:
            leaves[before:] = [(p, f"{n}{place + 1}" if n and not n[-1].isdigit() else n) for p, n in leaves[before:]]
    return made if any(isinstance(each, tuple | list | dict) for each in made) else tuple(made)


def _with_own_names(leaves: Sequence[tuple[str, str]], taken: set[str], container: str) -> tuple[tuple[str, str], ...]:
    """The leaves with names that no other argument has, and no other leaf of any container; they are added to `taken`.

    Two arguments of one class have the same fields.
    """
    made = []
    for number, (path, name) in enumerate(leaves):
        own = name if name and name not in taken else f"{container}_{name or number}"
        while own in taken:
            own += "_"
        taken.add(own)
        made.append((path, own))
    return tuple(made)


def _read(
    function: Callable[..., Any], name: str, node: _Node, deepest: int, given: Mapping[str, Any] | None = None
) -> None:
    """Add to `node` how a function takes its argument `name` apart, also in functions that it passes it on to.

    `given` are functions that it gets as arguments, as a solver does: `solve(step, params, z)`.
    """
    tree = tree_of(source_of(inspect.unwrap(function)))
    own = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None) if tree is not None else None
    if own is not None:
        reader = _Reader(ChainMap({**(given or {})}, getattr(inspect.unwrap(function), "__globals__", {})), deepest)
        reader.known[name] = node
        for statement in own.body:
            reader.visit(statement)


class _Reader(ast.NodeVisitor):
    """Follows names that stand for a container or a part of one."""

    def __init__(self, names: Mapping[str, Any], deepest: int) -> None:
        self.known: dict[str, _Node] = {}
        self._globals = names
        self._deepest = deepest

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_For(self, node: ast.For) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._loop(node.target, node.iter)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._part(node)
        if isinstance(node.slice, ast.Slice) and (held := self._part(node.value)) is not None:
            held.is_sliced = True
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._part(node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in ("get", "setdefault", "pop"):
            held = self._part(function.value)
            if held is not None:
                held.optional = True
                return
        arguments = node.args
        if _last_name(function) == "partial" and arguments:
            function, arguments = arguments[0], arguments[1:]
        called = self._function(function)
        if called is not None and self._deepest:
            names = list(inspect.signature(called).parameters)
            passed = dict(zip(names, arguments, strict=False))
            passed |= {each.arg: each.value for each in node.keywords if each.arg in names}
            given = {name: own for name, value in passed.items() if (own := self._function(value)) is not None}
            for name, argument in passed.items():
                held = self._part(argument)
                if held is not None:
                    _read(called, name, held, self._deepest - 1, given)
        self.generic_visit(node)

    def _function(self, node: ast.expr) -> Callable[..., Any] | None:
        """The function that a name stands for, without decorators; None for anything else."""
        named = self._globals.get(node.id) if isinstance(node, ast.Name) else None
        called = inspect.unwrap(getattr(named, "fun", named)) if callable(named) else None
        return called if inspect.isfunction(called) else None

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            if len(target.elts) == len(value.elts):
                for one, other in zip(target.elts, value.elts, strict=True):
                    self._bind(one, other)
            return
        held = self._part(value)
        if held is not None:
            self._take(target, held)
        elif isinstance(target, ast.Name):
            self.known.pop(target.id, None)

    def _take(self, target: ast.expr, held: _Node) -> None:
        if isinstance(target, ast.Name):
            held.name = held.name or target.id
            self.known[target.id] = held
        elif isinstance(target, ast.Tuple | ast.List) and not any(isinstance(t, ast.Starred) for t in target.elts):
            held.count = max(held.count, len(target.elts))
            for place, each in enumerate(target.elts):
                self._take(each, held.elements.setdefault(place, _Node()))

    def _loop(self, target: ast.expr, iterated: ast.expr) -> None:
        if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
            if iterated.func.id == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
                self._loop(target.elts[1], iterated.args[0])
            elif iterated.func.id in ("reversed", "list", "tuple"):
                self._loop(target, iterated.args[0])
            elif iterated.func.id == "zip" and isinstance(target, ast.Tuple):
                for one, other in zip(target.elts, iterated.args, strict=False):
                    self._loop(one, other)
            return
        if isinstance(iterated, ast.Subscript) and isinstance(iterated.slice, ast.Slice):
            iterated = iterated.value
        held = self._part(iterated)
        if held is not None and isinstance(target, ast.Tuple | ast.Name):
            held.each = held.each or _Node()
            self._take(target, held.each)

    def _part(self, node: ast.expr) -> _Node | None:
        """The node of an expression that is a container or a part of one; the part is added where it is new."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        held = self._part(node.value) if isinstance(node, ast.Subscript | ast.Attribute) else None
        if held is None:
            return None
        if isinstance(node, ast.Attribute):
            return held.fields.setdefault(node.attr, _Node())
        key = _constant(node.slice) if isinstance(node, ast.Subscript) else None
        if isinstance(key, str):
            return held.keys.setdefault(key, _Node())
        return held.each or held.elements.setdefault(key, _Node()) if isinstance(key, int) else None


def _last_name(node: ast.expr) -> str:
    return str(getattr(node, "attr", getattr(node, "id", "")))


def _constant(node: ast.expr) -> object:
    """The value of a constant, also of a negative number; None for anything else."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def _class_of(forward: Callable[..., Any], name: str, node: _Node) -> Any:
    """The named tuple or dataclass that an argument is, by its annotation or else by the attributes that are read."""
    function = inspect.unwrap(forward)
    names = getattr(function, "__globals__", {})
    said = getattr(function, "__annotations__", {}).get(name)
    said = names.get(said) if isinstance(said, str) else said
    if isinstance(said, type) and _fields_of(said):
        return said
    read = set(node.fields)
    if not read or not read.isdisjoint(_OF_TENSORS) or node.keys or node.elements:
        return None
    kinds = {
        id(kind): kind
        for kind in names.values()
        if isinstance(kind, type) and kind.__module__ == function.__module__ and read <= set(_fields_of(kind))
    }
    return next(iter(kinds.values())) if len(kinds) == 1 else None


def _fields_of(kind: type) -> tuple[str, ...]:
    if issubclass(kind, tuple):
        return tuple(getattr(kind, "_fields", ()))
    return tuple(f.name for f in dataclasses.fields(kind) if f.init) if dataclasses.is_dataclass(kind) else ()


def other_kinds(value: Any) -> Iterator[Any]:
    """The same container with tuples for lists, and with lists for tuples: which of them is meant no source says."""
    for outer, inner in ((tuple, tuple), (list, list), (list, tuple), (tuple, list)):
        made = _of_kinds(value, outer, inner)
        if made != value:
            yield made


def _of_kinds(value: Any, outer: type, inner: type) -> Any:
    if isinstance(value, dict):
        return {key: _of_kinds(part, outer, inner) for key, part in value.items()}
    if type(value) in (list, tuple):
        nested = any(isinstance(part, list | tuple | dict) for part in value)
        return (outer if nested else inner)(_of_kinds(part, outer, inner) for part in value)
    return value
