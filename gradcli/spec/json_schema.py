"""The JSON Schema of specs, made from the table of keys by which the loader reads them."""

from collections.abc import Mapping
from typing import Any

from gradcli.cases import DTYPES, LAYOUTS
from gradcli.settings import HIGHEST_ORDER
from gradcli.spec.document import MAX_NODES
from gradcli.spec.model import (
    CASE_KEYS,
    CHECKS,
    DEFAULTS_KEYS,
    DOCUMENT_KEYS,
    DOMAIN_FORMS,
    EXPECTATIONS,
    FINDINGS,
    INPUT_KEYS,
    Key,
    Kind,
)

_TEXT = {"type": "string", "pattern": r"\S"}
_BY_KIND: Mapping[Kind, dict[str, Any]] = {
    Kind.TEXT: _TEXT,
    Kind.COUNT: {"type": "integer", "minimum": 1},
    Kind.ORDER: {"type": "integer", "minimum": 1, "maximum": HIGHEST_ORDER},
    Kind.SEED: {"type": "integer", "minimum": 0},
    Kind.FLAG: {"type": "boolean"},
    Kind.NUMBER: {"type": "number"},
    Kind.SECONDS: {"type": "number", "exclusiveMinimum": 0},
    Kind.MAPPING: {"type": "object"},
    Kind.SEQUENCE: {"type": "array", "minItems": 1},
    Kind.NAMES: {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
    Kind.ALLOWANCE: {
        "anyOf": [
            {"type": "object", "propertyNames": {"enum": list(FINDINGS)}, "additionalProperties": _TEXT},
            {"enum": list(FINDINGS)},
            {"type": "array", "items": {"enum": list(FINDINGS)}},
        ]
    },
    Kind.SHAPE: {
        "anyOf": [
            {"const": "scalar"},
            {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 0}, _TEXT]}},
        ]
    },
    Kind.ANYTHING: {},
}
_ONE_SIZE = {"type": "integer", "minimum": 0}
_SIZES = {
    "type": "object",
    "propertyNames": {"pattern": r"^[^\W\d]\w*$"},
    "additionalProperties": {
        "anyOf": [_ONE_SIZE, {"type": "array", "items": _ONE_SIZE, "minItems": 1, "uniqueItems": True}]
    },
}


def spec_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of one document of a spec.

    It accepts what the loader accepts, and refuses unknown keys, types and names as the loader does; what the loader
    alone knows is left to it: keys that belong to other domains, equal names of cases, files that are missing.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gradcli spec",
        "description": "One target and its cases. A file may hold several, separated by ---.",
        **_mapping(
            DOCUMENT_KEYS,
            {
                "defaults": _mapping(DEFAULTS_KEYS, _NAMED),
                "cases": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/case"}},
                **_NAMED,
            },
        ),
        "$defs": {
            "case": _mapping(CASE_KEYS, {"inputs": _inputs(), **_NAMED}),
            "input": _mapping(INPUT_KEYS, {"domain": _domain(), "layout": {"enum": list(LAYOUTS)}, **_NAMED}),
        },
    }


def _mapping(keys: Mapping[str, Key], special: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A mapping with these keys and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: {**special.get(name, _BY_KIND[key.kind]), "description": key.sentence} for name, key in keys.items()
        },
        "additionalProperties": False,
    }
    required = [name for name, key in keys.items() if key.required]
    return {**schema, "required": required} if required else schema


def _inputs() -> dict[str, Any]:
    """A description of a tensor for each argument, or any value that is no mapping."""
    value = {"not": {"type": "object"}}
    return {
        "type": "object",
        "maxProperties": MAX_NODES,
        "additionalProperties": {"anyOf": [{"$ref": "#/$defs/input"}, value]},
    }


def _domain() -> dict[str, Any]:
    """The name of a domain, with its bounds where it takes them."""
    forms = "|".join(f"{name}{form}" for name, (form, _) in DOMAIN_FORMS.items())
    return {"type": "string", "pattern": f"^({forms})$", "examples": list(DOMAIN_FORMS)}


def _names(known: tuple[str, ...]) -> dict[str, Any]:
    """One of the names, or a list of them."""
    return {"anyOf": [{"enum": list(known)}, {"type": "array", "items": {"enum": list(known)}}]}


_NAMED: Mapping[str, dict[str, Any]] = {
    "sizes": _SIZES,
    "expect": {"enum": list(EXPECTATIONS)},
    "findings": _names(FINDINGS),
    "only": _names(CHECKS),
    "skip": _names(CHECKS),
    "dtype": {"enum": list(DTYPES)},
}
"""Keys whose values are more than their kind says, wherever they stand."""
