"""The specs in the repository load, name Functions that exist, and give inputs that their forward takes."""

from pathlib import Path

import pytest

from gradcli.engine import tensor
from gradcli.inputs.builders import build
from gradcli.spec.load import load_specs
from gradcli.spec.resolve import names_in, resolve

ROOT = Path(__file__).parents[2]
RIGHT, WRONG = load_specs(ROOT / "specs"), load_specs(ROOT / "specs" / "broken")


@pytest.mark.parametrize("case", [*RIGHT, *WRONG], ids=lambda case: case.case_id)
def test_forward_takes_the_inputs(case):
    function = resolve(case.target).object
    if case.inputs is None:
        assert case.name == "inferred"
        return
    values = [
        tensor(each.value, requires_grad=each.requires_grad) if each.is_tensor else each.value
        for each in build(case.inputs, seed=0)
    ]
    assert function.apply(*values) is not None


def test_right_specs_expect_to_pass_and_wrong_ones_to_fail():
    assert {case.expect.verdict for case in RIGHT} == {"passed"}
    assert {case.expect.verdict for case in WRONG} == {"failed"}


def test_every_example_has_a_spec():
    modules = [path.stem for path in (ROOT / "gradcli" / "examples").glob("*.py") if path.stem != "__init__"]
    defined = {
        f"gradcli.examples.{module}:{name}" for module in modules for name in names_in(f"gradcli.examples.{module}")
    }
    assert defined == {case.target for case in (*RIGHT, *WRONG)}
