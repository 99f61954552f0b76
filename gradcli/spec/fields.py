"""The typed fields of one mapping of a spec, checked against the model."""

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, final

import yaml

from gradcli.frozen import dataclass
from gradcli.settings import HIGHEST_ORDER
from gradcli.spec.document import Problems, described, entries, plain, refuse_tag
from gradcli.spec.model import Key, Kind


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The values of a mapping's well-typed keys, and every key's node."""

    values: Mapping[str, Any]
    nodes: Mapping[str, yaml.Node]

    @staticmethod
    def empty() -> "Fields":
        """No fields at all."""
        return Fields(values={}, nodes={})

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default` where it is absent or was refused."""
        return self.values.get(key, default)

    def text(self, key: str) -> str:
        """The string under `key`, empty where it is absent or was refused."""
        return str(self.values.get(key, ""))

    def names(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        """The strings under `key`, one alone standing for a list of one."""
        given = self.values.get(key, default)
        return (given,) if isinstance(given, str) else tuple(given)

    @staticmethod
    def close(word: str, known: Sequence[str]) -> str:
        """` (did you mean 'x'?)` for the closest of `known`, else what there is."""
        matches = get_close_matches(word, known, 1)
        if matches:
            return f" (did you mean {matches[0]!r}?)"
        return f"; expected one of {', '.join(known)}" if len(known) <= 16 else ""


def read_fields(
    node: yaml.Node, keys: Mapping[str, Key], problems: Problems, *, below: Mapping[str, Key] | None = None
) -> Fields:
    """The fields of the mapping `node`.

    Unknown keys, missing required keys and values of the wrong type are noted in `problems` and left out. `below` are
    the keys that belong under `defaults` or in a case.
    """
    nodes: dict[str, yaml.Node] = {}
    values: dict[str, Any] = {}
    for name, (key_node, value_node) in entries(node, problems).items():
        if name not in keys:
            deeper = "; it belongs under defaults or in a case" if name in (below or ()) else ""
            problems.add(key_node, f"unknown key {name!r}{deeper or Fields.close(name, list(keys))}")
            continue
        nodes[name] = value_node
        refuse_tag(value_node, problems)
        if fits(value_node, keys[name].kind):
            values[name] = plain(value_node, problems) if _is_read_here(keys[name].kind) else None
        else:
            problems.add(value_node, f"{name} must be {keys[name].kind.value}, got {described(value_node)}")
    for name, key in keys.items():
        if key.required and name not in nodes:
            problems.add(node, f"missing key {name!r}: {key.sentence}")
    return Fields(values=values, nodes=nodes)


def _is_read_here(kind: Kind) -> bool:
    return kind not in (Kind.MAPPING, Kind.SEQUENCE, Kind.SHAPE, Kind.ALLOWANCE)


def fits(node: yaml.Node, kind: Kind) -> bool:
    """Whether the node's value has the type `kind`; nested values are not looked at."""
    if kind is Kind.ANYTHING:
        return True
    if isinstance(node, yaml.MappingNode):
        return kind in (Kind.MAPPING, Kind.ALLOWANCE)
    if isinstance(node, yaml.SequenceNode):
        texts = all(isinstance(child, yaml.ScalarNode) and fits(child, Kind.TEXT) for child in node.value)
        return kind in (Kind.SEQUENCE, Kind.SHAPE) or (kind in (Kind.NAMES, Kind.ALLOWANCE) and texts)
    value = plain(node, Problems(""))
    whole = isinstance(value, int) and not isinstance(value, bool)
    checks: dict[Kind, bool] = {
        Kind.TEXT: isinstance(value, str) and bool(value.strip()),
        Kind.NAMES: isinstance(value, str) and bool(value.strip()),
        Kind.ALLOWANCE: isinstance(value, str) and bool(value.strip()),
        Kind.SHAPE: value == "scalar",
        Kind.COUNT: whole and value >= 1,
        Kind.ORDER: whole and 1 <= value <= HIGHEST_ORDER,
        Kind.SEED: whole and value >= 0,
        Kind.FLAG: isinstance(value, bool),
        Kind.NUMBER: whole or isinstance(value, float),
        Kind.SECONDS: (whole or isinstance(value, float)) and 0 < value < math.inf,
    }
    return checks.get(kind, False)
