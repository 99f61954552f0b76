"""A file stands for every Function in it: one that cannot be checked as it is never vanishes."""

from pathlib import Path

import pytest

import gradcli
from gradcli.errors import TargetError
from gradcli.runner.planning.functions import functions_in, listed_in
from gradcli.verdict import Verdict
from tests.conftest import Run

FRAMEWORKS = ("gradcli.engine", "torch")
RIGHT = "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n"
BACK = "    @staticmethod\n    def backward(ctx, g):\n        return 2 * g\n"


def written(folder: Path, framework: str, classes: dict[str, str]) -> str:
    """A file with these classes, by their heads: those without a base named there are Functions."""
    pytest.importorskip(framework)
    file = folder / "several.py"
    text = f"from {framework}.autograd import Function\n"
    for head, body in classes.items():
        text += f"class {head if '(' in head else f'{head}(Function)'}:\n{body or '    pass'}\n"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", ["backwards", "bakward", "Backward"])
def test_a_misspelt_backward_or_forward_is_an_error_of_the_file_too(tmp_path: Path, framework: str, name: str) -> None:
    typo = {"Typo": RIGHT + BACK.replace("def backward", f"def {name}"), "Fine": RIGHT + BACK}
    file = written(tmp_path, framework, typo)
    assert functions_in(file) == (f"{file}:Typo", f"{file}:Fine")
    with pytest.raises(TargetError, match=f"Typo defines no backward: it defines '{name}', did you mean 'backward'"):
        gradcli.check(file)


def test_a_misspelt_forward_is_an_error_too(tmp_path: Path) -> None:
    file = written(tmp_path, "gradcli.engine", {"Typo": RIGHT.replace("def forward", "def foward") + BACK})
    with pytest.raises(TargetError, match=r"Typo defines no forward.*it defines 'foward'"):
        gradcli.check(file)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_function_without_a_backward_is_shown_as_skipped(tmp_path: Path, framework: str) -> None:
    file = written(tmp_path, framework, {"Plain": RIGHT, "Fine": RIGHT + BACK})
    assert functions_in(file) == (f"{file}:Fine",)
    report = gradcli.check(file)
    assert [case.verdict for case in report.cases] == [Verdict.SKIPPED, Verdict.PASSED]
    assert report.exit_code == 0
    assert f"SKIP {file}:Plain\n  Plain defines no backward, so there is nothing to check\n" in str(report)


def test_a_file_of_nothing_else_has_nothing_to_check(tmp_path: Path) -> None:
    report = gradcli.check(written(tmp_path, "gradcli.engine", {"Plain": RIGHT}))
    assert report.exit_code == 5
    assert "Plain defines no backward" in str(report)


def test_classes_that_others_build_on_are_no_functions(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "gradcli.engine",
        {
            "Base": "    factor = 2",
            "Mixin": BACK,
            "Template": RIGHT + BACK.replace("def backward", "def backward_"),
            "First(Mixin)": RIGHT,
            "Second(Template)": BACK,
        },
    )
    assert listed_in(file) == ((f"{file}:First", None), (f"{file}:Second", None))


def test_a_misspelt_name_that_is_inherited_is_found_in_the_class_that_inherits_it(tmp_path: Path) -> None:
    classes = {"Base": RIGHT + BACK.replace("def backward", "def backwards"), "Child(Base)": ""}
    file = written(tmp_path, "gradcli.engine", classes)
    with pytest.raises(TargetError, match="Child defines no backward: it defines 'backwards'"):
        gradcli.check(file)


def test_the_commands_show_what_is_not_checked(gradcli: Run, folder: Path) -> None:
    misspelt = BACK.replace("def backward", "def backwards")
    written(folder, "gradcli.engine", {"Typo": RIGHT + misspelt, "Plain": RIGHT, "Fine": RIGHT + BACK})
    checked = gradcli("check", "several.py")
    assert checked.returncode == 2
    assert b"PASS several.py:Fine" in checked.stdout
    assert b"SKIP several.py:Plain" in checked.stdout
    assert b"Typo defines no backward: it defines 'backwards', did you mean 'backward'?" in checked.stderr
    listed = gradcli("list", "several.py")
    assert listed.returncode == 2
    assert b"several.py:Plain   not checked: Plain defines no backward, so there is nothing to check" in listed.stdout
    assert b"Typo defines no backward" in listed.stderr
