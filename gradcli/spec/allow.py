"""The findings that a spec allows a target, each with the reason for it."""

from typing import Any

import yaml

from gradcli.spec.document import Problems, described, entries, scalar
from gradcli.spec.fields import Fields
from gradcli.spec.model import FINDINGS

Allowed = tuple[tuple[str, str], ...]


def read_allow(fields: Fields, inherited: Allowed, problems: Problems) -> Allowed:
    """The findings under `allow`, those inherited where there is no such key.

    Either a mapping from names to reasons, or a list of names with their one `reason` beside it.
    """
    if "allow" not in fields:
        return inherited
    node = fields.nodes["allow"]
    if isinstance(node, yaml.MappingNode):
        return _by_name(node, problems)
    names = [child for child in _items(node) if _is_known(child, problems)]
    if not fields.text("reason"):
        problems.add(node, "allow needs a reason: write allow: {NAME: why}, or add the key 'reason' next to 'allow'")
    return tuple((str(name.value), fields.text("reason")) for name in names)


def _by_name(node: yaml.Node, problems: Problems) -> Allowed:
    found: list[tuple[str, str]] = []
    for name, (key, value) in entries(node, problems).items():
        _is_known(key, problems)
        reason = scalar(value) if isinstance(value, yaml.ScalarNode) else None
        if isinstance(reason, str) and reason.strip():
            found.append((name, reason))
        else:
            problems.add(value, f"{name} must have its reason, a string, got {described(value)}")
    return tuple(found)


def _is_known(node: yaml.Node, problems: Problems) -> bool:
    """Whether a node is the name of a finding; notes the problem where it is not."""
    known = node.value in FINDINGS
    if not known:
        problems.add(node, f"unknown finding {node.value!r}{Fields.close(str(node.value), FINDINGS)}")
    return known


def _items(node: yaml.Node) -> list[Any]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]
