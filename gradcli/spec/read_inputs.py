"""The inputs of a case, read from YAML into input specs whose named sizes are bound later."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, final

import yaml

from gradcli.cases import DTYPES, LAYOUTS, OWN_DTYPE, InputSpec, drawing_problem, layout_problem, shape_problem
from gradcli.frozen import dataclass
from gradcli.sources import literal
from gradcli.spec.document import Problems, described, entries, plain, scalar
from gradcli.spec.fields import Fields, read_fields
from gradcli.spec.model import DOMAIN_FORMS, INPUT_KEYS
from gradcli.spec.places import located
from gradcli.spec.sizes import is_size

_NAME = re.compile(r"^[^\W\d]\w*(\.\w+)*(\[\d+\])?$")
_DOMAIN_KEYS = ("lo", "hi", "low", "high", "value", "path", "key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadInput:
    """An input whose sizes, and whose index bounds, may still be names.

    `nodes` are the YAML nodes of its keys, `node` is that of the whole input. Both are empty for an input
    that is not a tensor, or has problems already.
    """

    spec: InputSpec
    shape: tuple[int | str, ...] | None = None
    nodes: Mapping[str, yaml.Node] = field(default_factory=dict)
    node: yaml.Node | None = None


@final
@dataclass(slots=True, kw_only=True)
class InputsReader:
    """Reads the inputs of one case; `used` collects the named sizes that occur."""

    problems: Problems
    sizes: Mapping[str, tuple[int, ...]]
    dtype: str | None
    folder: Path
    used: set[str] = field(default_factory=set)

    def read(self, node: yaml.Node) -> tuple[ReadInput, ...]:
        """The inputs of the mapping `node`, in its order; problems are noted."""
        found = []
        for name, (key_node, value_node) in entries(node, self.problems).items():
            if not _NAME.match(name):
                self.problems.add(key_node, f"expected the name of a parameter of forward, got {name!r}")
            found.append(self._input(name, value_node))
        return tuple(found)

    def values(self, node: yaml.Node) -> tuple[tuple[str, Any], ...]:
        """The entries of the mapping `node` as values; `{python: text}` is a literal that YAML cannot write."""
        found = []
        for name, (_, value_node) in entries(node, self.problems).items():
            value = plain(value_node, self.problems)
            if isinstance(value_node, yaml.MappingNode) and list(value) == ["python"]:
                value = self._python(name, value_node, read_fields(value_node, INPUT_KEYS, self.problems)).spec.value
            found.append((name, value))
        return tuple(found)

    def bound(self, inputs: tuple[ReadInput, ...], chosen: Mapping[str, int]) -> tuple[InputSpec, ...]:
        """The inputs with every named size replaced by its value in `chosen`."""
        found = []
        for each in inputs:
            spec = _bound(each, chosen)
            if each.node is not None:
                self._require_values(each, each.node, spec)
            found.append(spec)
        return tuple(found)

    def _require_values(self, read: ReadInput, node: yaml.Node, spec: InputSpec) -> None:
        """Note why no run could draw the input."""
        head = re.split(r"[(:]", spec.domain, maxsplit=1)[0].strip()
        shape = spec.shape or ()
        problem = drawing_problem(head, shape, {**_inside(spec.domain, head), **dict(spec.parameters)})
        if problem is not None:
            key, why = problem
            self.problems.add(read.nodes.get(key, read.nodes.get("domain", node)), why)
        if spec.layout is not None and spec.shape is not None:
            unfit = layout_problem(spec.layout, shape)
            if unfit is not None:
                self.problems.add(read.nodes["layout"], unfit)
        dtype = spec.dtype or _natural_dtype(head, spec.value)
        if spec.requires_grad and dtype is not None and not dtype.startswith(("float", "bfloat", "complex")):
            self.problems.add(read.nodes["grad"], f"grad: true needs a float or complex dtype, got {dtype}")

    def _input(self, name: str, node: yaml.Node) -> ReadInput:
        if not isinstance(node, yaml.MappingNode):
            return ReadInput(spec=InputSpec(name=name, kind="value", value=plain(node, self.problems)))
        before = len(self.problems.found)
        fields = read_fields(node, INPUT_KEYS, self.problems)
        if "python" in fields.nodes:
            return self._python(name, node, fields)
        domain = self._domain(node, fields)
        if fields.get("dtype") is not None and fields.get("dtype") not in DTYPES:
            given = fields.text("dtype")
            self.problems.add(fields.nodes["dtype"], f"unknown dtype {given!r}{Fields.close(given, DTYPES)}")
        if fields.get("layout") is not None and fields.get("layout") not in LAYOUTS:
            given = fields.text("layout")
            self.problems.add(fields.nodes["layout"], f"unknown layout {given!r}{Fields.close(given, LAYOUTS)}")
        shape = self._shape(fields.nodes.get("shape"))
        self._require_fit(fields, shape)
        understood = len(fields.nodes) == len(entries(node, Problems("")))
        shapeless = "shape" not in fields.nodes and not {"value", "path"} & fields.nodes.keys()
        if understood and shapeless and not domain.startswith("npz"):
            self.problems.add(node, f"input {name!r} needs a shape, such as shape: [3, 4], or a value")
        natural = domain.partition("(")[0] in {*OWN_DTYPE, "literal"} or domain.startswith("npz")
        spec = InputSpec(
            name=name,
            dtype=fields.get("dtype") or (None if natural else self.dtype),
            domain=domain,
            layout=fields.get("layout"),
            parameters=self._parameters(fields),
            requires_grad=fields.get("grad"),
            value=fields.get("value"),
        )
        if len(self.problems.found) > before:
            return ReadInput(spec=spec, shape=shape)
        return ReadInput(spec=spec, shape=shape, nodes=fields.nodes, node=node)

    def _python(self, name: str, node: yaml.Node, fields: Fields) -> ReadInput:
        if len(fields.nodes) > 1:
            self.problems.add(node, "the key 'python' gives the whole argument: leave out the other keys")
        try:
            value = literal(fields.text("python"))
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            self.problems.add(fields.nodes["python"], "the key 'python' must be a literal, such as '(2, 2)' or '-1'")
            value = None
        return ReadInput(spec=InputSpec(name=name, kind="value", value=value))

    def _domain(self, node: yaml.Node, fields: Fields) -> str:
        stored = "literal" if "value" in fields.nodes else "npz" if "path" in fields.nodes else "normal"
        domain = str(fields.get("domain", stored))
        head = re.split(r"[(:]", domain, maxsplit=1)[0].strip()
        if head not in DOMAIN_FORMS:
            place = fields.nodes.get("domain", node)
            self.problems.add(place, f"unknown domain {domain!r}{Fields.close(head, list(DOMAIN_FORMS))}")
            return domain
        form, takes = DOMAIN_FORMS[head]
        rest = domain[len(head) :].strip()
        if not re.fullmatch(form, rest):
            takes_bounds = "; expected two bounds, as in open-interval(-1, 1)" if "lo" in takes else ""
            self.problems.add(fields.nodes["domain"], f"domain {head} cannot be followed by {rest!r}{takes_bounds}")
        for key in _DOMAIN_KEYS:
            if key in fields.nodes and key not in takes:
                self.problems.add(fields.nodes[key], f"domain {head} does not take {key}")
        if head == "literal" and "value" not in fields.nodes:
            self.problems.add(node, "domain literal needs 'value', a number or nested lists of numbers")
        return f"npz:{located(rest[1:], self.folder)}" if head == "npz" and rest else domain

    def _parameters(self, fields: Fields) -> tuple[tuple[str, Any], ...]:
        found = [(key, fields.get(key)) for key in _DOMAIN_KEYS if key in fields]
        for index, (key, value) in enumerate(found):
            if key in ("low", "high") and not (isinstance(value, int) and not isinstance(value, bool)):
                self._named(fields.nodes[key], f"{key} must be a whole number or a named size")
            if key == "path":
                found[index] = (key, located(str(value), self.folder))
            if key == "value" and not _is_numeric(value):
                self.problems.add(
                    fields.nodes[key], f"value must hold numbers only, got {described(fields.nodes[key])}"
                )
        return tuple(found)

    def _require_fit(self, fields: Fields, shape: tuple[int | str, ...] | None) -> None:
        """Check that the nested lists of a value have equal lengths, and a shape that was given without names."""
        if "value" not in fields or not _is_numeric(fields.get("value")):
            return
        held = _shape_of(fields.get("value"))
        if held is None:
            self.problems.add(fields.nodes["value"], "the nested lists of value must have equal lengths")
        elif (
            shape is not None and all(isinstance(n, int) for n in shape) and held != shape and 0 not in (*held, *shape)
        ):
            self.problems.add(
                fields.nodes["value"], f"the values have shape {list(held)}, but shape {list(shape)} was given"
            )

    def _shape(self, node: yaml.Node | None) -> tuple[int | str, ...] | None:
        if isinstance(node, yaml.ScalarNode) and scalar(node) == "scalar":
            return ()
        if not isinstance(node, yaml.SequenceNode):
            return None
        shape = tuple(self._size(child) for child in node.value)
        problem = shape_problem([size if isinstance(size, int) else 1 for size in shape])
        if problem is not None:
            self.problems.add(node, problem)
        return shape

    def _size(self, node: yaml.Node) -> int | str:
        if is_size(node):
            return int(plain(node, self.problems))
        return self._named(node, "a size must be a whole number of at least 0, or a name given under sizes")

    def _named(self, node: yaml.Node, otherwise: str) -> str:
        name = scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(name, str) or not name.isidentifier():
            self.problems.add(node, f"{otherwise}; got {described(node)}")
            return ""
        if name not in self.sizes:
            known = Fields.close(name, list(self.sizes)) if self.sizes else ""
            self.problems.add(node, f"size {name!r} is not given under sizes{known}")
        self.used.add(name)
        return name


def _inside(domain: str, head: str) -> dict[str, float | str]:
    """The parameters inside the text of a domain, as in indices(0, 4) or npz:data.npz."""
    rest = domain[domain.index(head) + len(head) :].strip()
    keys = DOMAIN_FORMS[head][1]
    if rest.startswith(":"):
        return {"path": rest[1:]}
    if not rest:
        return {}
    numbers = [part.strip() for part in rest.strip("()").split(",")]
    read = float if "lo" in keys else int
    return dict(zip(keys, map(read, numbers), strict=True))


def _natural_dtype(domain: str, value: Any) -> str | None:
    """The dtype of what a domain, or a value, has of its own; None where the run decides."""
    if domain == "boolean":
        return "bool"
    if domain in OWN_DTYPE:
        return "int64"
    numbers = list(_numbers(value)) if domain == "literal" else []
    if not numbers or any(isinstance(number, float) for number in numbers):
        return None
    return "bool" if all(isinstance(number, bool) for number in numbers) else "int64"


def _numbers(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _numbers(each)
    else:
        yield value


def _is_numeric(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_numeric(each) for each in value)
    return isinstance(value, int | float)


def _shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of nested lists; None if lengths differ."""
    if not isinstance(value, list):
        return ()
    inner = {_shape_of(each) for each in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(next(iter(inner)) or ())) if inner else (0,)


def _bound(read: ReadInput, chosen: Mapping[str, int]) -> InputSpec:
    if read.spec.kind == "value":
        return read.spec
    shape = None if read.shape is None else tuple(chosen.get(s, 1) if isinstance(s, str) else s for s in read.shape)
    parameters = tuple(
        (key, chosen.get(value, 1) if key in ("low", "high") and isinstance(value, str) else value)
        for key, value in read.spec.parameters
    )
    return replace(read.spec, shape=shape, parameters=parameters)
