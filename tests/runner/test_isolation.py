"""Worker processes: a crash harms no other case, and nothing depends on how the cases are spread."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Run


def test_a_crash_an_exit_and_a_hang_are_errors_and_the_others_go_on(gradcli: Run) -> None:
    ended = gradcli("check", "deadly", "-i", "x=2", "--timeout", "2", "-j", "2", "--format", "json")
    cases = {case["id"]: case for case in json.loads(ended.stdout)["cases"]}
    assert ended.returncode == 3
    assert {name: case["verdict"] for name, case in cases.items()} == {
        "deadly:Segfaults": "error", "deadly:Leaves": "error", "deadly:Hangs": "error", "deadly:Unharmed": "passed",
    }  # fmt: skip
    assert "killed by SIGSEGV while it ran" in cases["deadly:Segfaults"]["error"]
    assert "ended with exit code 7" in cases["deadly:Leaves"]["error"]
    assert "ran over its time limit of 2 s and was stopped in forward" in cases["deadly:Hangs"]["error"]
    assert cases["deadly:Hangs"]["seconds"] >= 2


def test_workers_and_shares_give_the_results_of_one_process(gradcli: Run) -> None:
    whole = _cases(gradcli, "check", "functions")
    assert _cases(gradcli, "check", "functions", "-j", "3") == whole
    shares = [_cases(gradcli, "check", "functions", "--shard", f"{number}/2") for number in (1, 2)]
    assert sorted(json.dumps(case) for case in [*shares[0], *shares[1]]) == sorted(json.dumps(case) for case in whole)


def test_a_case_keeps_its_result_in_other_company(gradcli: Run) -> None:
    alone = _cases(gradcli, "check", "functions:Product")
    beside = _cases(gradcli, "check", "functions:Forgets", "functions:Product")
    assert beside[1] == alone[0]


def test_fail_fast_stops_at_the_first_failure_and_shows_what_was_not_run(gradcli: Run) -> None:
    for workers in ([], ["-j", "2"]):
        cases = _cases(gradcli, "check", "-x", "functions:Forgets", "functions:Square", *workers)
        assert [case["verdict"] for case in cases] == ["failed", "skipped"]
        assert cases[1]["notes"] == ["not run: stopped at the first failure"]


def test_what_a_worker_refuses_is_refused_by_the_command(gradcli: Run) -> None:
    ended = gradcli("check", "functions:Square", "-i", "y=3", "-j", "2")
    assert ended.returncode == 2
    assert b"has no input 'y'" in ended.stderr


def test_a_fault_of_gradcli_in_a_worker_is_a_fault_of_the_command(gradcli: Run, folder: Path) -> None:
    (folder / "faulty.py").write_text(
        "import gradcli.runner.case as case\nfrom functions import Square\n"
        "case.judge = None  # gradcli's own code raises when it calls it\n"
        "class Faulty(Square): pass\n"
    )
    ended = gradcli("check", "faulty:Faulty", "-i", "x=2", "-j", "2")
    assert ended.returncode == 70
    assert b"NoneType" in ended.stderr
    assert b"report it" in ended.stderr


def _cases(gradcli: Run, *arguments: str) -> list[dict[str, object]]:
    text = re.sub(r"in \d+\.\d s", "in some s", gradcli(*arguments, "--format", "json").stdout.decode())
    cases = json.loads(text)["cases"]
    return [{key: value for key, value in case.items() if key != "seconds"} for case in cases]


def test_a_failure_found_in_a_worker_is_saved_there(gradcli: Run, folder: Path) -> None:
    (case,) = _cases(gradcli, "check", "functions:Forgets", "-j", "2")
    assert (folder / str(case["replay"])).is_file()


@pytest.mark.parametrize("options", [[], ["-j", "2"]])
def test_a_worker_runs_exit_functions_and_writes_open_files_at_its_end(
    gradcli: Run, folder: Path, options: list[str]
) -> None:
    (folder / "ends.py").write_text(
        "import atexit\nfrom functions import Square\n"
        "log = open('log.txt', 'w')\nraw = open('raw.bin', 'wb')\n"
        "log.write('opened')\nraw.write(b'opened')\n"
        "atexit.register(lambda: log.write(' and left'))\n"
        "class Logged(Square): pass\n"
    )
    assert gradcli("check", "ends:Logged", "-i", "x=2", *options).returncode == 0
    assert (folder / "log.txt").read_text() == "opened and left"
    assert (folder / "raw.bin").read_bytes() == b"opened"
