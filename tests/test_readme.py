"""The README stays true: its file, its commands and their output are run and compared."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests import warm

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def block_after(marker, page=README):
    """The fenced block that follows an HTML comment."""
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w*\n(.*?)```", page, re.S)
    assert found, f"there is no block for {marker!r}"
    return found.group(1)


def stable(text):
    """The words without what differs from run to run and machine to machine: line breaks, times and bounds."""
    text = re.sub(r"\d+(\.\d+)? (ms|s|min)\b", "TIME", text)
    text = re.sub(r"(± [\d.e-]+) +[\d.e-]+$", r"\1 RATIO", text, flags=re.M)
    text = re.sub(r"(± |relative error of |within |exact to )[\d.e-]+", r"\1BOUND", text)
    return text.split()


def run(command, folder):
    arguments = shlex.split(command)
    assert arguments[0] == "gradcli"
    imports = "torch" if "from torch" in (folder / "mymodule.py").read_text(encoding="utf-8") else None
    done = warm.run_for_text(arguments[1:], folder, imports=imports)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path):
    pytest.importorskip("torch", reason="the README's first example is on PyTorch")
    (tmp_path / "mymodule.py").write_text(block_after("file: mymodule.py"), encoding="utf-8")
    return tmp_path


def test_the_slip_is_shown_as_the_readme_shows_it(folder):
    command = "gradcli check mymodule:LinearFunction --format table"
    done = run(command, folder)
    assert done.returncode == 1
    shown = block_after(f"output: {command}").split("\n", 1)
    assert shown[0] == "$ gradcli check mymodule:LinearFunction"
    assert stable(done.stdout) == stable(shown[1])


def test_the_patch_is_shown_as_the_readme_shows_it(folder):
    command = "gradcli fix mymodule:LinearFunction --diff"
    done = run(command, folder)
    assert done.returncode == 0
    shown = block_after(f"output: {command}").split("\n", 1)
    assert shown[0] == f"$ {command}"
    assert done.stdout.splitlines() == shown[1].splitlines()


def test_the_readme_has_at_most_120_lines():
    assert len(README.splitlines()) <= 120


def test_the_fixed_file_is_shown_as_the_readme_shows_it(folder):
    file = folder / "mymodule.py"
    file.write_text(file.read_text().replace("grad_input = grad_output.t()", "grad_weight = grad_output.t()"))
    command = "gradcli check mymodule:LinearFunction --format table"
    done = run(command, folder)
    assert done.returncode == 0
    shown = block_after(f"output after the fix: {command}").split("\n", 1)
    assert stable(done.stdout) == stable(shown[1])


def test_the_numbers_of_a_pass_are_shown_as_the_documentation_shows_them(folder):
    file = folder / "mymodule.py"
    file.write_text(file.read_text().replace("grad_input = grad_output.t()", "grad_weight = grad_output.t()"))
    command = "gradcli check mymodule:LinearFunction -v --format table"
    shown = block_after(f"beginning of the output after the fix: {command}", COMMANDS).split("\n", 1)
    wanted = stable(shown[1])
    assert "RATIO" in wanted
    assert stable(run(command, folder).stdout)[: len(wanted)] == wanted


def test_the_same_on_the_engine(folder):
    file = folder / "mymodule.py"
    file.write_text(file.read_text().replace("from torch.autograd", "from gradcli.engine.autograd"))
    assert run("gradcli check mymodule:LinearFunction", folder).returncode == 1


def test_the_set_up_commands_name_what_the_project_has():
    main = re.search(r"<!-- command: main -->\n(.*)", README).group(1)
    tests = re.search(r"<!-- command: tests -->\n(.*)", README).group(1)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert main.strip().endswith(".venv/bin/gradcli check")
    assert tests.strip().endswith(".venv/bin/python -m pytest -n auto")
    assert set(re.findall(r"\[(\w+)\]", tests + README)) & {"torch", "test"} <= set(extras)


def test_the_python_example_runs(folder):
    expression = re.search(r"`(gradcli\.check\(.*?\))\.verdict`", README).group(1)
    code = f"import gradcli\nreport = {expression}\nprint(report.verdict, report)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "swapped-gradients" in done.stdout


def test_the_command_lines_run(tmp_path):
    lines = re.findall(r"^    (gradcli (?:check|trace) .*)$", README, re.M)
    assert len(lines) >= 4
    source = (ROOT / "gradcli" / "examples" / "linear.py").read_text(encoding="utf-8")
    source += (ROOT / "gradcli" / "examples" / "mul_constant.py").read_text(encoding="utf-8")
    (tmp_path / "mymodule.py").write_text(source.replace("from __future__ import annotations\n", ""), encoding="utf-8")
    for line in lines:
        done = run(line, tmp_path)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
