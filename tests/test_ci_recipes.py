"""The recipes of docs/ci.md, the action and the hook: what they say is what runs."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
RECIPES = dict(re.findall(r"<!-- recipe: ([\w-]+) -->\n```\w+\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.S))
SPEC = "target: gradcli.examples.linear:LinearFunction\ndefaults: {order: 1, samples: 1}\n"
BROKEN = "target: gradcli.examples.broken:MulConstantForgotten\ndefaults: {order: 1, samples: 1}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/linear.yaml").write_text(SPEC)
    one = "target: gradcli.examples.cube:Cube\ndefaults: {order: 1, samples: 1}\ncases: [{name: case NUMBER}]"
    (tmp_path / "specs/more.yaml").write_text("\n---\n".join(one.replace("NUMBER", str(n)) for n in range(9)))
    program = tmp_path / "bin/gradcli"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m gradcli "$@"\n')
    program.chmod(0o755)
    (tmp_path / "bin/python").symlink_to(program.with_name("python-here"))
    program.with_name("python-here").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    program.with_name("python-here").chmod(0o755)
    return tmp_path


def shell(command: str, project: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        **os.environ,
        "PATH": f"{project / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_every_recipe_is_known_here() -> None:
    assert set(RECIPES) == {"github", "github-line", "gitlab", "gitlab-shares", "pre-commit", "pytest"}


def lines_of(script: list[str]) -> list[str]:
    return [line for line in script if "pip install" not in line]


def test_the_gitlab_job_writes_its_reports(project: Path) -> None:
    job = yaml.safe_load(RECIPES["gitlab"])["gradients"]
    (command,) = lines_of(job["script"])
    assert shell(command, project).returncode == 0
    assert (project / job["artifacts"]["reports"]["junit"]).read_text().startswith("<?xml")
    assert all((project / path).exists() for path in job["artifacts"]["paths"])
    (project / "specs/broken.yaml").write_text(BROKEN)
    assert shell(command, project).returncode == 1


def test_the_shares_become_one_report(project: Path) -> None:
    document = yaml.safe_load(RECIPES["gitlab-shares"])
    (check,) = lines_of(document["gradients"]["script"])
    total = document["gradients"]["parallel"]
    codes = {
        shell(check, project, CI_NODE_INDEX=str(n), CI_NODE_TOTAL=str(total)).returncode for n in range(1, total + 1)
    }
    assert codes == {0}
    (merge,) = lines_of(document["merge"]["script"])
    assert shell(merge, project).returncode == 0
    assert (project / "gradients.xml").read_text().count("<testcase") == 10


def test_the_line_for_github_annotates(project: Path) -> None:
    (step,) = yaml.safe_load(RECIPES["github-line"])
    (project / "specs/broken.yaml").write_text(BROKEN)
    ended = shell(step["run"], project)
    assert ended.returncode == 1
    assert re.search(r"^::error file=.*broken\.py,line=\d+,title=", ended.stdout, re.M)
    assert (project / "gradcli.sarif").exists()


def test_the_hook_of_pre_commit_runs(project: Path) -> None:
    (repo,) = yaml.safe_load(RECIPES["pre-commit"])["repos"]
    (hook,) = repo["hooks"]
    assert shell(hook["entry"], project).returncode == 0
    assert "not run again" in shell(hook["entry"], project).stdout
    (offered,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {key: offered[key] for key in ("id", "entry", "pass_filenames", "types_or")} == {
        key: hook[key] for key in ("id", "entry", "pass_filenames", "types_or")
    }


def test_the_pytest_recipe_collects_every_case(project: Path) -> None:
    (project / "pyproject.toml").write_text(RECIPES["pytest"])
    assert tomllib.loads(RECIPES["pytest"])
    ended = shell("python -m pytest -q -p no:gradcli -p gradcli.pytest_plugin -p no:cacheprovider", project)
    assert "10 passed" in ended.stdout


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    return found


@pytest.mark.parametrize(("spec", "code"), [(SPEC, 0), (BROKEN, 1)])
def test_the_action_checks_and_hands_its_code_on(project: Path, spec: str, code: int) -> None:
    (step,) = (step for step in action()["runs"]["steps"] if step.get("id") == "check")
    (project / "specs/linear.yaml").write_text(spec)
    output = project / "output"
    ended = shell(
        step["run"], project, TARGETS="specs/linear.yaml", OPTIONS="--order 1 --seed 3", REPORT="r.sarif",
        GITHUB_OUTPUT=str(output), GITHUB_STEP_SUMMARY=str(project / "summary"),
    )  # fmt: skip
    assert ended.returncode == code, ended.stderr
    assert output.read_text() == f"exit-code={code}\n"
    assert "seed 3" in (project / "summary").read_text()
    assert (project / "r.sarif").exists()


def test_inputs_of_the_action_may_have_several_lines(project: Path) -> None:
    (step,) = (step for step in action()["runs"]["steps"] if step.get("id") == "check")
    (project / "specs/broken.yaml").write_text(BROKEN)
    ended = shell(
        step["run"], project, TARGETS="specs/broken.yaml\nspecs/more.yaml\n", OPTIONS="-j 2\n--order 1\n",
        REPORT="r.json", GITHUB_OUTPUT=str(project / "output"),
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    cases = json.loads((project / "r.json").read_text())["cases"]
    assert len(cases) == 10
    assert {check["order"] for case in cases for check in case["checks"]} <= {1, None}


def test_inputs_of_the_action_are_no_shell(project: Path) -> None:
    (step,) = (step for step in action()["runs"]["steps"] if step.get("id") == "check")
    ended = shell(
        step["run"], project, TARGETS="$(touch evil) `touch evil` ; touch evil", OPTIONS="", REPORT="r.json",
        GITHUB_OUTPUT=str(project / "output"),
    )  # fmt: skip
    assert ended.returncode != 0
    assert not (project / "evil").exists()


def test_every_input_of_the_action_is_used_by_the_environment_alone() -> None:
    document = action()
    scripts = "\n".join(step.get("run", "") for step in document["runs"]["steps"])
    assert "${{" not in scripts
    rest = str(document["runs"])
    assert all(f"inputs.{name}" in rest for name in document["inputs"])


def test_the_workflows_use_the_action_with_inputs_that_it_has() -> None:
    known = set(action()["inputs"])
    recipe = yaml.safe_load(RECIPES["github"])["jobs"]["check"]["steps"]
    own = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["check"]["steps"]
    uses = [step for step in [*recipe, *own] if step.get("uses", "") in ("./", "OWNER/gradcli@main")]
    assert len(uses) == 2
    assert all(set(step["with"]) <= known for step in uses)
