"""Damaged files, full disks, closed descriptors, odd settings: each is told in a sentence, with the right code."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gradcli.errors import UsageError
from gradcli.runner.store.failures import load
from tests.conftest import Run

_SAVED: dict[str, Any] = {
    "schema": "gradcli.failure/1", "gradcli": "0", "target": "functions:Forgets", "name": None, "grad": None,
    "nondeterminism": 0.0, "device": None, "construct": {}, "seed": 1, "order": 2, "dtype": "float64",
    "finding": "wrong-factor", "input": "x",
    "arguments": [
        {"name": "x", "keyword": False, "dtype": "float64", "shape": [1], "requires_grad": True, "domain": None,
         "stands_for": None, "values": [1.0]}
    ],
}  # fmt: skip
_ARGUMENT = _SAVED["arguments"][0]
_DAMAGE: dict[str, dict[str, Any]] = {
    "a negative seed": {"seed": -1},
    "a seed of text": {"seed": "1"},
    "a construct that is a list": {"construct": [1]},
    "an order below 1": {"order": -5},
    "an order of true": {"order": True},
    "an unknown dtype": {"dtype": "wat"},
    "an unknown finding": {"finding": "nope"},
    "an unknown field": {"extra": 1},
    "a target that is a number": {"target": 3},
    "arguments that are a dict": {"arguments": {}},
    "no arguments": {"arguments": []},
    "an argument without a name": {"arguments": [{}]},
    "an argument twice": {"arguments": [_ARGUMENT, _ARGUMENT]},
    "an unknown field of an argument": {"arguments": [{**_ARGUMENT, "wat": 1}]},
    "a shape that does not fit": {"arguments": [{**_ARGUMENT, "shape": [10**11]}]},
    "a finding about another input": {"input": "q"},
    "a nondeterminism above 1": {"nondeterminism": 2.0},
    "a device that is a number": {"device": 4},
}


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps(_SAVED))
    assert load(tmp_path / "f.json").target == "functions:Forgets"


@pytest.mark.parametrize("damage", _DAMAGE)
def test_a_damaged_failure_is_refused(tmp_path: Path, damage: str) -> None:
    (tmp_path / "f.json").write_text(json.dumps(_SAVED | _DAMAGE[damage]))
    with pytest.raises(UsageError, match="is damaged"):
        load(tmp_path / "f.json")


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[]", '{"schema": "other/1"}', "\x00\xff"])
def test_what_is_no_failure_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match="saved failure"):
        load(tmp_path / "f.json")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is not a regular file"):
            load(path)
    with pytest.raises(UsageError, match=r"cannot be read|is not a regular file"):
        load(tmp_path)


def test_arguments_that_forward_does_not_have_are_refused(gradcli: Run, folder: Path) -> None:
    (folder / "f.json").write_text(json.dumps(_SAVED | {"arguments": [{**_ARGUMENT, "name": "zz"}], "input": "zz"}))
    ended = gradcli("replay", "f.json")
    assert ended.returncode == 2
    assert b"has an argument 'zz', which Forgets.forward does not have (it has x)" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-i", f"x={'x'.join(['1'] * 65)}"], "a shape of 65 axes; at most 64 are possible"),
        (["-i", "x=100000000000"], "has 100,000,000,000 elements"),
        (["--report", "/proc/x/r.json"], "/proc cannot be written"),
        (["--report", "full.json"], "is not a regular file"),
        (["--in-process", "-j", "2"], "--in-process runs cases one after the other"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_runs(
    gradcli: Run, folder: Path, arguments: list[str], said: str
) -> None:
    (folder / "full.json").symlink_to("/dev/full")
    (folder / "loud.py").write_text("from functions import Square\nprint('imported')\n")
    ended = gradcli("check", "loud:Square", *arguments)
    assert ended.returncode == 2
    assert said in ended.stderr.decode()
    assert b"imported" not in ended.stderr
    assert ended.stdout == b""


def test_a_full_standard_output_is_told_without_a_traceback(gradcli: Run) -> None:
    with open("/dev/full", "wb") as full:
        ended = gradcli("check", "functions:Square", "-i", "x=2", capture_output=False, stdout=full, stderr=-1)
    assert ended.returncode == 2
    assert ended.stderr == b"Error: standard output cannot be written: No space left on device\n"


def _in_a_shell(folder: Path, script: str) -> "subprocess.CompletedProcess[bytes]":
    command = f"{shlex.quote(sys.executable)} -m gradcli check functions:Square -i x=2"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.run(
        ["sh", "-c", script.replace("gradcli", command)],
        cwd=folder, env=environment, capture_output=True, timeout=120, check=False,
    )  # fmt: skip


def test_descriptors_that_are_closed_at_the_start_harm_nothing(folder: Path) -> None:
    ended = _in_a_shell(folder, "gradcli -j 2 --report r.json <&- >&- 2>&-")
    assert ended.returncode == 0
    assert json.loads((folder / "r.json").read_text())["summary"]["passed"] == 1


def test_a_working_directory_that_is_gone_is_told(folder: Path) -> None:
    ended = _in_a_shell(folder, "mkdir gone && cd gone && rmdir ../gone && gradcli")
    assert ended.returncode == 2
    assert b"the working directory no longer exists" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_limit_of_open_files_that_is_too_low_is_an_error_of_the_run(folder: Path) -> None:
    ended = _in_a_shell(folder, "ulimit -n 7; gradcli")
    assert ended.returncode == 2
    assert b"Too many open files; raise the limit that is reached" in ended.stderr
    assert b"internal error" not in ended.stderr


def test_no_columns_and_a_time_limit_of_centuries_are_as_good_as_none(gradcli: Run) -> None:
    ended = gradcli(
        "check", "functions:Square", "-i", "x=2", "--format", "table", "--timeout", "1e10", environment={"COLUMNS": "0"}
    )
    assert ended.returncode == 0
    assert "functions:Square" in ended.stdout.decode()
    assert ended.stderr == b""


def test_proxies_that_raise_whatever_is_asked_are_no_functions(gradcli: Run, folder: Path) -> None:
    (folder / "proxies.py").write_text(
        "from functions import Square\n"
        "class Getattr:\n    def __getattr__(self, name): raise BaseException('no')\n"
        "class Kind:\n    @property\n    def __class__(self): raise RuntimeError('no class')\n"
        "class Getattribute:\n    def __getattribute__(self, name): raise SystemExit(3)\n"
        "one, two, three = Getattr(), Kind(), Getattribute()\n"
        "class Found(Square): pass\n"
    )
    for command in ("list", "check"):
        ended = gradcli(command, "proxies.py")
        assert ended.returncode == 0, ended.stderr
        assert b"proxies.py:Found" in ended.stdout


def test_warnings_as_errors_reach_no_process_of_gradcli(folder: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "gradcli", "check", "functions:Square", "-i", "x=2", "-j", "2"],
        cwd=folder, env=environment, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert ended.returncode == 0
    assert ended.stderr == b""
