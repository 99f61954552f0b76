"""docs/specs.md names every key, domain and expectation of a spec, and its examples load."""

import re
from pathlib import Path

import pytest

import gradcli
from gradcli.spec import model
from gradcli.spec.load import load_specs

PAGE = (Path(__file__).parents[2] / "docs" / "specs.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"<!-- spec -->\n```yaml\n(.*?)```", PAGE, re.S)
TABLES = {
    "## The document": model.DOCUMENT_KEYS,
    "## A case, or `defaults`": {**model.DEFAULTS_KEYS, **model.CASE_KEYS},
    "## An input": model.INPUT_KEYS,
}


def first_cells(text):
    """The names in the first cell of every row of the tables in a text."""
    return {name for row in re.findall(r"^\| (`.*?) \|", text, re.M) for name in re.findall(r"`([\w-]+)`", row)}


@pytest.mark.parametrize("heading", TABLES)
def test_every_key_has_a_row_and_every_row_a_key(heading):
    section = PAGE.split(heading + "\n")[1].split("\n## ")[0]
    said = first_cells(section) - set(model.DOMAIN_FORMS).difference(TABLES[heading])
    shared = re.search(r"may also hold (.*?)\.", section, re.S)
    said |= set(re.findall(r"`(\w+)`", shared[1])) if shared else set()
    assert said == set(TABLES[heading])


def test_every_domain_and_expectation_is_named():
    assert set(model.DOMAIN_FORMS) <= first_cells(PAGE.split("The domains:")[1])
    assert all(f"`{word}`" in PAGE for word in model.EXPECTATIONS)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_examples_come_to_what_they_expect(number, tmp_path):
    path = tmp_path / "example.yaml"
    path.write_text(EXAMPLES[number], encoding="utf-8")
    assert gradcli.check(str(path), samples=1, shrink=False).ok


def test_the_first_example_makes_the_cases_that_the_page_names(tmp_path):
    path = tmp_path / "example.yaml"
    path.write_text(EXAMPLES[0], encoding="utf-8")
    assert [case.name for case in load_specs(path)] == ["with bias n=1", "with bias n=7", "no bias"]
