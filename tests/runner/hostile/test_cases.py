"""What attacks the process that checks it is its own case's error; its neighbours come to what they come to alone."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.programs.hostile import CASES, HELPER, program

Cases = dict[str, dict[str, object]]
FLAGS = ("-i", "x=3", "--samples", "1", "--order", "1")
"""An attack strikes when forward or backward is first called; what is checked later says no more of it."""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cases, int, str]:
    """All attacks in one run, each followed by a right and a wrong neighbour."""
    import os
    import subprocess
    import sys

    folder = tmp_path_factory.mktemp("attacked")
    (folder / "helper.py").write_text(HELPER)
    (folder / "attacks.py").write_text(program())
    ended = subprocess.run(
        [sys.executable, "-m", "gradcli", "check", "attacks.py", *FLAGS, "--timeout", "3", "--format", "json"],
        cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    document = json.loads(ended.stdout)
    return {case["id"].partition(":")[2]: case for case in document["cases"]}, ended.returncode, ended.stderr.decode()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_an_attack_is_the_error_of_its_own_case(name: str, attacked: tuple[Cases, int, str]) -> None:
    verdict, _, said = CASES[name][2].partition(":")
    case = attacked[0][name]
    assert case["verdict"] == verdict, case["error"]
    assert said in str(case["error"] or "")
    assert len(json.dumps(case)) < 20_000


@pytest.mark.parametrize("name", CASES)
def test_its_neighbours_come_to_what_they_come_to_alone(name: str, attacked: tuple[Cases, int, str]) -> None:
    assert attacked[0][f"Right{name}"]["verdict"] == "passed"
    wrong = attacked[0][f"Wrong{name}"]
    assert [finding["name"] for finding in wrong["findings"]] == ["wrong-factor"]  # type: ignore[attr-defined]
    assert wrong["findings"][0]["factor"] == "3"  # type: ignore[index]


def test_the_run_ends_with_the_code_of_its_failures_and_without_a_traceback_of_gradcli(
    attacked: tuple[Cases, int, str],
) -> None:
    assert attacked[1] == 1
    assert "gradcli/runner" not in attacked[2]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("command", ["list", "trace", "init", "check"])
@pytest.mark.parametrize(
    "statement", ["os.abort()", "os._exit(0)", "raise Panic('lost')", "raise Refuses", "raise KeyboardInterrupt"]
)
def test_what_ends_an_import_is_told_with_the_target_and_2(
    command: str, statement: str, gradcli: Run, folder: Path
) -> None:
    (folder / "bad.py").write_text(
        "import os\nclass Panic(BaseException): pass\nclass Refuses(Exception):\n    def __str__(self): return 3\n"
        f"{statement}\n"
    )
    ended = gradcli(command, "bad.py:Name")
    assert ended.returncode == 2, ended.stderr.decode()
    assert b"bad.py" in ended.stderr
    assert b"gradcli/runner" not in ended.stderr
    assert ended.stdout == b""
