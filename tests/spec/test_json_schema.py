"""The schema says of a spec what the loader says, and is made from the same table."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gradcli.errors import SpecError
from gradcli.spec.document import Problems, compose, plain
from gradcli.spec.json_schema import spec_schema
from gradcli.spec.load import load_specs
from gradcli.spec.model import CASE_KEYS, DEFAULTS_KEYS, DOCUMENT_KEYS, DOMAIN_FORMS, INPUT_KEYS

SHIPPED = sorted((Path(__file__).parents[2] / "specs").rglob("*.yaml"))
VALIDATOR = jsonschema.Draft202012Validator(spec_schema())
RIGHT = {
    "inferred": "target: a:B",
    "expected failure": "{target: 'a:B', expect: failed, findings: wrong-factor}",
    "sizes": "{target: 'a:B', sizes: {n: [1, 2]}, cases: [{inputs: {x: {shape: [n, 3]}}}]}",
    "scalar": "{target: 'a:B', cases: [{inputs: {x: {shape: scalar}, dim: -1, mode: sum, none: null}}]}",
    "values": "{target: 'a:B', cases: [{inputs: {x: {value: [1.5, 2]}, size: {python: '(2, 2)'}}}]}",
    "domains": "{target: 'a:B', cases: [{inputs: {x: {shape: [2], domain: 'open-interval(-1, 1)'}}}]}",
    "indices": "{target: 'a:B', cases: [{inputs: {i: {shape: [2], domain: indices, low: 0, high: 4}}}]}",
    "defaults": "{target: 'a:B', defaults: {order: 1, samples: 2, seed: 0, dtype: float32, skip: [sizes]}}",
    "construct": "{target: 'a:B', construct: {width: 3, size: {python: '(1, 2)'}}}",
    "noise": "{target: 'a:B', defaults: {nondeterminism: 1e-6, reason: atomic additions}}",
    "allowed": "{target: 'a:B', allow: {mutates-input: the kernel hands its logits over}}",
    "allowed as a list": "{target: 'a:B', cases: [{allow: [mutates-input], reason: by design}]}",
}
WRONG = {
    "allowing what is no finding": "{target: 'a:B', allow: {mutates-inputs: by design}}",
    "allowing for no reason": "{target: 'a:B', allow: {mutates-input: ''}}",
    "no target": "cases: [{name: a}]",
    "misspelt key": "{target: 'a:B', case: []}",
    "misspelt key of an input": "{target: 'a:B', cases: [{inputs: {x: {shpae: [2]}}}]}",
    "order 0": "{target: 'a:B', defaults: {order: 0}}",
    "order true": "{target: 'a:B', defaults: {order: true}}",
    "seed below 0": "{target: 'a:B', defaults: {seed: -1}}",
    "empty target": "{target: ' '}",
    "target a number": "{target: 3}",
    "no cases": "{target: 'a:B', cases: []}",
    "a case that is none": "{target: 'a:B', cases: [3]}",
    "unknown domain": "{target: 'a:B', cases: [{inputs: {x: {shape: [2], domain: normall}}}]}",
    "bounds for a domain without": "{target: 'a:B', cases: [{inputs: {x: {shape: [2], domain: 'spd(1, 2)'}}}]}",
    "unknown dtype": "{target: 'a:B', cases: [{inputs: {x: {shape: [2], dtype: float63}}}]}",
    "unknown layout": "{target: 'a:B', cases: [{inputs: {x: {shape: [2], layout: csc}}}]}",
    "unknown finding": "{target: 'a:B', expect: failed, findings: [wrong-facotr]}",
    "unknown expectation": "{target: 'a:B', expect: fail}",
    "shape a number": "{target: 'a:B', cases: [{inputs: {x: {shape: 3}}}]}",
    "negative size": "{target: 'a:B', sizes: {n: -1}, cases: [{inputs: {x: {shape: [n]}}}]}",
    "size twice": "{target: 'a:B', sizes: {n: [2, 2]}, cases: [{inputs: {x: {shape: [n]}}}]}",
    "grad no truth": "{target: 'a:B', cases: [{inputs: {x: {shape: [2], grad: maybe}}}]}",
}


def documents(text: str, folder: Path) -> list[Any]:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return [plain(node, Problems("")) for node in compose(path, "spec.yaml")]


def accepts(text: str, folder: Path) -> bool:
    try:
        documents(text, folder)
        load_specs(folder / "spec.yaml")
    except SpecError:
        return False
    return True


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(spec_schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_spec_is_valid(path: Path) -> None:
    for node in compose(path, path.name):
        VALIDATOR.validate(plain(node, Problems("")))


@pytest.mark.parametrize("name", RIGHT)
def test_what_the_loader_accepts_is_valid(name: str, tmp_path: Path) -> None:
    assert accepts(RIGHT[name], tmp_path)
    assert all(VALIDATOR.is_valid(document) for document in documents(RIGHT[name], tmp_path))


@pytest.mark.parametrize("name", WRONG)
def test_what_the_loader_refuses_is_not(name: str, tmp_path: Path) -> None:
    assert not accepts(WRONG[name], tmp_path)
    assert not all(VALIDATOR.is_valid(document) for document in documents(WRONG[name], tmp_path))


def test_every_key_of_the_table_is_there_with_its_sentence() -> None:
    schema = spec_schema()
    places = (
        (schema, DOCUMENT_KEYS),
        (schema["properties"]["defaults"], DEFAULTS_KEYS),
        (schema["$defs"]["case"], CASE_KEYS),
        (schema["$defs"]["input"], INPUT_KEYS),
    )
    for found, keys in places:
        assert {name: value["description"] for name, value in found["properties"].items()} == {
            name: key.sentence for name, key in keys.items()
        }
        assert found["additionalProperties"] is False
    assert set(schema["$defs"]["input"]["properties"]["domain"]["examples"]) == set(DOMAIN_FORMS)


def test_the_command_prints_it_and_init_points_editors_to_it(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gradcli", *arguments], capture_output=True, text=True, cwd=tmp_path, check=True
        )
        return done.stdout

    assert json.loads(run("schema")) == spec_schema()
    run("init", "gradcli.examples.cube:Cube")
    (written,) = (tmp_path / "specs").glob("*.yaml")
    text = written.read_text(encoding="utf-8")
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((written.parent / named).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(yaml.safe_load(text))
