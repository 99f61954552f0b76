"""Arguments that are dicts, lists or tuples of tensors, recognised by how forward takes them apart: `params["W"]`."""

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.inputs.hints.argument_names import says_number
from gradcli.inputs.hints.containers.reading import Node, last_name, read
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
    can be read as forward reads it. `descriptions` are what its class says of them: comments beside its fields.
    """

    value: Any
    leaves: tuple[tuple[str, str], ...]
    holds_tensors: bool = False
    may_be_a_tensor: bool = False
    descriptions: tuple[str, ...] = ()


def containers_of(info: TargetInfo) -> dict[str, Container]:
    """The containers among forward's required arguments, by their names."""
    found: dict[str, Container] = {}
    taken = {parameter.name for parameter in info.parameters}
    for parameter in info.parameters:
        if parameter.variadic or parameter.has_default or parameter.static or info.forward is None:
            continue
        node = Node()
        read(info.forward, parameter.name, node, _DEEPEST)
        for key in _documented_keys(info, parameter.name) if not node.elements and node.each is None else ():
            node.keys.setdefault(key, Node())
        listed = _says_tensors((parameter.annotation or "").lower())
        if node.is_leaf and not node.fields and listed:
            node.each = Node()
        kind = _class_of(info.forward, parameter.name, node)
        if kind is not None:
            node.keys, node.elements = {}, {}
            node.fields = {name: node.fields.get(name, Node()) for name in fields_of(kind)}
        elif not _is_container(node, parameter) or (not listed and _is_tensor(info, parameter.name, node)):
            continue
        leaves: list[tuple[str, str]] = []
        by_number = kind is not None and issubclass(kind, tuple) and info.backend != "jax"  # as the backend names them
        value = _built(node, "", leaves, kind, by_number=by_number)
        if listed and "list[" in (parameter.annotation or "").lower():
            value = list(value)
        own = _with_own_names(leaves, taken, parameter.name)
        comments = {} if kind is None else _comments_on(kind)
        said = zip(own, (comments.get(name) for _, name in leaves), strict=True)
        found[parameter.name] = Container(
            value=value,
            leaves=own,
            descriptions=tuple(f"{alias}: {comment}" for (_, alias), comment in said if comment is not None),
            holds_tensors=parameter.name.lower() in _NAMES,
            may_be_a_tensor=kind is None and not listed and node.may_be_a_tensor,
        )
    return found


def _documented_keys(info: TargetInfo, name: str) -> list[str]:
    """The keys of a dict that documentation writes out with their shapes: `params = {'w': (3, 3), 'b': (3,)}`."""
    texts = texts_of(source_of(info.forward), info.documentation)
    found = [re.search(rf"(?<![\w.]){re.escape(name)}\s*[=:]\s*\{{([^{{}}]*)\}}", text) for text in texts]
    return [key for match in found if match is not None for key in re.findall(r"['\"](\w+)['\"]\s*:\s*[(\[]", match[1])]


def _is_tensor(info: TargetInfo, name: str, node: Node) -> bool:
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
    return any(last_name(function) in _MAKERS for function in functions)


def _is_container(node: Node, parameter: Parameter) -> bool:
    """Whether an argument is read as a container, and not as a tensor that is indexed or unpacked into entries."""
    name, annotation = parameter.name.lower(), (parameter.annotation or "").lower()
    if node.keys or node.optional:
        return True
    if any(not part.is_leaf for part in node.parts):
        return True
    if not node.count:
        return (bool(node.elements) and name in _NAMES) or (node.each is not None and _says_tensors(annotation))
    names = [child.name.lower().rstrip("0123456789") for child in node.parts]
    paired = any(set(pair) <= set(names) for pair in _PAIRS)
    return name in _NAMES or paired or any(word in annotation for word in _ANNOTATED)


def _says_tensors(annotation: str) -> bool:
    """Whether an annotation is that of any number of tensors, as `list[Tensor]` and `Sequence[jax.Array]` are."""
    many = r"(?:\w+\.)*(?:list|sequence|iterable|tuple(?=.*\.\.\.))\[(?:\w+\.)*(?:tensor|array|ndarray)\b[^\[]*\]"
    return re.fullmatch(many, annotation.replace(" ", "").strip("'\"")) is not None


def _built(node: Node, path: str, leaves: list[tuple[str, str]], kind: Any = None, *, by_number: bool = False) -> Any:
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


def _sequence(node: Node, path: str, leaves: list[tuple[str, str]]) -> Any:
    count = max(node.length, _LAYERS if node.each is not None else 0)
    made = []
    for place in range(count):
        child = node.elements.get(place, node.elements.get(place - count, node.each or Node()))
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


def _class_of(forward: Callable[..., Any], name: str, node: Node) -> Any:
    """The named tuple or dataclass that an argument is, by its annotation or else by the attributes that are read."""
    function = inspect.unwrap(forward)
    names = getattr(function, "__globals__", {})
    said = getattr(function, "__annotations__", {}).get(name)
    said = names.get(said) if isinstance(said, str) else said
    if isinstance(said, type) and fields_of(said):
        return said
    read = set(node.fields)
    if not read or not read.isdisjoint(_OF_TENSORS) or node.keys or node.elements:
        return None
    kinds = {
        id(kind): kind
        for kind in names.values()
        if isinstance(kind, type) and kind.__module__ == function.__module__ and read <= set(fields_of(kind))
    }
    return next(iter(kinds.values())) if len(kinds) == 1 else None


def fields_of(kind: type) -> tuple[str, ...]:
    """The fields of a named tuple or a dataclass; none of any other class."""
    if issubclass(kind, tuple):
        return tuple(getattr(kind, "_fields", ()))
    return tuple(f.name for f in dataclasses.fields(kind) if f.init) if dataclasses.is_dataclass(kind) else ()


def _comments_on(kind: type) -> dict[str, str]:
    """What a class says of its fields in comments on their lines: `weight: Array  # (H, D)`."""
    source = source_of(kind)
    lines, nodes = source.splitlines(), nodes_of(tree) if (tree := tree_of(source)) is not None else ()
    fields = [node for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    behind = {last_name(node.target): lines[(node.end_lineno or 1) - 1][node.end_col_offset or 0 :] for node in fields}
    return {name: text.lstrip(" #") for name, text in behind.items() if text.lstrip().startswith("#")}


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
