"""Targets of different folders share no modules: what each comes to does not depend on which others there are."""

import itertools
import json
from pathlib import Path

import pytest

from tests.conftest import Run

_HELPER = """
def slope(x):
    return {factor} * x
"""
_MODULE = """
import os
from gradcli.engine.autograd import Function
from u import slope
os.chdir("/")

class F(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad_output):
        os.chdir("/tmp")
        return grad_output * slope(ctx.saved_tensors[0])
"""


@pytest.fixture
def three(folder: Path) -> list[str]:
    """One right and two wrong Functions, each with its own helper `u`; one in a package."""
    for name, factor in (("a", 2), ("b", 3), ("c/pack", 1)):
        (folder / name).mkdir(parents=True)
        (folder / name.split("/")[0] / "u.py").write_text(_HELPER.format(factor=factor))
        (folder / name / "m.py").write_text(_MODULE)
    (folder / "c" / "pack" / "__init__.py").write_text("")
    return ["a/m.py", "b/m.py:F", "c/pack/m.py"]


@pytest.mark.parametrize("extra", [[], ["-j", "2"]], ids=["one worker", "two workers"])
def test_each_folder_has_its_own_helper_in_every_order(gradcli: Run, three: list[str], extra: list[str]) -> None:
    for order in itertools.islice(itertools.permutations(three), 0, None, 2):
        flags = ("-i", "x=3", "--samples", "1", "--order", "1", "--format", "json")
        ended = gradcli("check", *order, *flags, *extra)
        cases = json.loads(ended.stdout)["cases"]
        found = {case["target"].split("/")[0]: [f["factor"] for f in case["findings"]] for case in cases}
        assert found == {"a": [], "b": ["3/2"], "c": ["1/2"]}, ended.stderr
        assert [case["verdict"] for case in cases].count("passed") == 1


def test_specs_of_two_folders_do_not_share_a_helper_either(gradcli: Run, folder: Path, three: list[str]) -> None:
    for name in ("a", "b"):
        (folder / name / "m.yaml").write_text("target: m.py:F\ncases: [{inputs: {x: {shape: [3]}}}]\n")
    verdicts = {}
    for order in (("a", "b"), ("b", "a")):
        cases = json.loads(gradcli("check", *order, "--format", "json").stdout)["cases"]
        verdicts[order] = {case["target"]: case["verdict"] for case in cases}
    assert verdicts["a", "b"] == verdicts["b", "a"]
    assert sorted(verdicts["a", "b"].values()) == ["failed", "passed"]


def test_a_problem_of_one_target_costs_no_other_its_result(gradcli: Run, folder: Path) -> None:
    (folder / "input.yaml").write_text("target: functions:Square\ncases:\n  - inputs: {y: {shape: [3]}}\n")
    (folder / "shape.yaml").write_text(
        f"target: functions:Square\ncases:\n  - inputs: {{x: {{shape: [{'1, ' * 65}]}}}}\n"
    )
    (folder / "dies.py").write_text("import os\nos.abort()\n")
    targets = ["input.yaml", "dies.py", "functions:Square", "shape.yaml", "functions:Nothing", "functions:Forgets"]
    ended = gradcli("check", *targets, "--report", "r.json", "--format", "json")
    assert ended.returncode == 2
    document = json.loads((folder / "r.json").read_text())
    assert document["exit_code"] == 2
    assert [case["verdict"] for case in document["cases"]] == ["error", "error", "passed", "error", "error", "failed"]
    told = ended.stderr.decode()
    assert "input.yaml:3:5: Square.forward has no input 'y'" in told
    assert "shape.yaml:3:25: a shape of 65 axes" in told
    assert "dies.py: the worker process was killed by SIGABRT while it was imported" in told


@pytest.mark.parametrize(("slope", "verdict"), [(2, "passed"), (3, "failed")])
def test_a_gradient_in_another_folder_has_its_own_helper(gradcli: Run, folder: Path, slope: int, verdict: str) -> None:
    for name, text in (("a", "value, slope = 2.0, 5.0"), ("b", f"value, slope = 7.0, {slope}.0")):
        (folder / name).mkdir()
        (folder / name / "u.py").write_text(text)
    (folder / "a" / "f.py").write_text("import u\ndef f(x): return u.value * x + later() * x\n"
        "def later():\n    import u as again\n    return again.value - 2.0\n")  # fmt: skip
    (folder / "b" / "g.py").write_text("from u import slope\ndef df(x): return slope + 0.0 * x\n")
    ended = gradcli("check", "a/f.py:f", "--grad", "b/g.py:df", "-i", "x=3", "--format", "json")
    (case,) = json.loads(ended.stdout)["cases"]
    assert case["verdict"] == verdict, (case, ended.stderr)
