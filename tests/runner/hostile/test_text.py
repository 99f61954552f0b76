"""Text of the user's files is data: it starts no line of its own, moves no cursor, and has an end."""

from pathlib import Path

import pytest

from tests.conftest import Run

_PROGRAM = '''
from gradcli.engine.autograd import Function
from functions import Square

EVIL = "first\\n::error file=x::planted\\n##[error]planted\\r\\x1b[2J\\x1b]0;title\\x07\\u202eend" + "y" * 100_000

class Raises(Square):
    @staticmethod
    def forward(ctx, x):
        raise ValueError(EVIL)

class RaisesLater(Square):
    """::error::in a docstring"""
    @staticmethod
    def backward(ctx, grad_output):
        raise ValueError(EVIL)

def dynamic():
    raise RuntimeError(EVIL)
'''


@pytest.mark.parametrize("form", ["plain", "table", "json", "ndjson", "github", "junit", "markdown", "sarif"])
def test_an_exception_and_a_name_start_no_command_and_reach_no_terminal(gradcli: Run, folder: Path, form: str) -> None:
    (folder / "evil.py").write_text(_PROGRAM)
    (folder / "evil.yaml").write_text(
        'target: functions:Square\ncases:\n  - name: "a\\n::error::planted\\e[2J"\n    inputs: {x: {shape: [2]}}\n'
    )
    given = () if form == "json" else ("-i", "x=2")  # without: the message of every input that was tried
    ended = gradcli("check", "evil.py", "evil.yaml", "--format", form, "-v", *given)
    for text in (ended.stdout, ended.stderr):
        assert not any(control in text for control in (b"\x1b", b"\x07", b"\r", "\u202e".encode()))
        started = [line.strip() for line in text.split(b"\n")]
        assert not any(line.startswith((b"::error file=x", b"::error::planted", b"##[error]")) for line in started)
        assert len(text) < 200_000


@pytest.mark.parametrize("command", ["check", "trace", "list", "init"])
def test_neither_does_what_an_import_raises(gradcli: Run, folder: Path, command: str) -> None:
    (folder / "evil.py").write_text(_PROGRAM + "\ndynamic()\n")
    ended = gradcli(command, "evil.py:Raises")
    assert ended.returncode == 2
    assert not any(control in ended.stderr for control in (b"\x1b", b"\x07", b"\r"))
    assert not any(line.strip().startswith((b"::", b"##")) for line in ended.stderr.split(b"\n"))
    assert len(ended.stderr) < 100_000
