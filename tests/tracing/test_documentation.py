"""The page on the trace stays true: its program is run, and its output and names are compared."""

import re
from pathlib import Path

import pytest

from gradcli.diagnosis.symptoms.rules import Symptom
from tests import warm

PAGE = Path(__file__).parents[2] / "docs" / "trace.md"


def block_after(marker):
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None, f"the page has no block for {marker!r}"
    return found.group(1)


@pytest.mark.parametrize("command", ["trace train:loss", "trace step:loss --memory 100kB"])
def test_an_example_prints_what_the_page_shows(tmp_path, command):
    pytest.importorskip("torch", reason="the page's examples are on PyTorch")
    for name in ("train.py", "step.py"):
        (tmp_path / name).write_text(block_after(f"file: {name}"), encoding="utf-8")
    done = warm.run_for_text(tuple(command.split()), tmp_path, imports="torch")
    assert done.returncode == 0, done.stderr
    assert block_after(f"output: gradcli {command}") in done.stdout


def test_the_page_lists_every_symptom():
    listed = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(encoding="utf-8").split("## Symptoms")[1], re.M))
    assert listed == {symptom.value for symptom in Symptom}
