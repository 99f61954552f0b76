"""A wrong option is an error of the command line that says what came; nothing of it is blamed on the target."""

import re
from pathlib import Path

import pytest

import gradcli as gradcli_package
from gradcli.errors import UsageError
from tests.conftest import Run


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        (["check", "functions:Square", "--dtype", "bfloat16"], ["--dtype", "float16"]),
        (["check", "functions:Square", "-i", "x=3,dtype=bfloat16"], ["-i", "x=3,dtype=float32"]),
        (["trace", "functions:Square", "-i", "x=3,dtype=bfloat16"], ["-i", "x=3,dtype=float32"]),
    ],
)
def test_a_dtype_that_the_engine_lacks_is_a_wrong_option(
    gradcli: Run, folder: Path, wrong: list[str], right: list[str]
) -> None:
    ended = gradcli(*wrong)
    assert ended.returncode == 2
    assert b"dtype bfloat16: the engine backend has no such type; use float16 or float32" in ended.stderr
    assert gradcli(*wrong[:2], *right).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "functions:Square", "--order", "0"], "'--order'"),
        (["check", "functions:Square", "--order", "0"], "got '0'"),
        (["check", "functions:Square", "--timeout=abc"], "got 'abc'"),
        (
            ["check", "functions:Square", "--samples", "1000000000"],
            "--samples 1000000000: expected a whole number",
        ),
        (
            ["check", "functions:Square", "--only", "gradient,returns"],
            "'gradient,returns'; give the option once",
        ),
        (["trace", "functions:Square", "--memory", "abc"], "--memory abc: expected a size such as 500MB"),
        (["trace", "functions:Square", "surplus"], "unexpected extra argument(s) (surplus)"),
        (["trace", "functions:Square", "--diff", "seed=x"], "--diff seed=x: expected seed=N"),
        (["trace", "functions:Square", "--every-node"], "--every-node needs --check"),
        (["trace", "plain.py:loss", "-i", "w=3"], "loss has no input 'w'; it has: x"),
        (["check", "functions:Square", "-i", "w=3"], "Square.forward has no input 'w'; it has: x"),
    ],
)
def test_what_came_is_said(gradcli: Run, folder: Path, arguments: list[str], said: str) -> None:
    (folder / "plain.py").write_text("import gradcli.engine as torch\ndef loss(x):\n    return torch.sin(x)\n")
    ended = gradcli(*arguments)
    assert ended.returncode == 2
    assert said in ended.stderr.decode()


def test_options_with_right_values_are_read_as_before(gradcli: Run) -> None:
    right = ("functions:Square", "-i", "x=3", "--check", "--every-node", "--memory", "1MB", "--diff", "seed=1")
    assert gradcli("trace", *right).returncode == 0
    assert gradcli("trace", "--memory", "functions:Square").returncode == 0
    assert gradcli("check", "functions:Square", "--order=1", "--only", "gradient", "--only", "returns").returncode == 0


def test_a_case_that_ends_its_process_is_named_by_list(gradcli: Run, folder: Path) -> None:
    (folder / "ends.py").write_text(
        "import os, signal\nfrom functions import Square\nclass Ends(Square):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    ended = gradcli("list", "ends.py", "functions:Square")
    assert ended.returncode == 3
    assert b"Error: ends.py:Ends: " in ended.stderr
    assert ended.stdout.startswith(b"functions:Square ")


def test_a_wrong_case_of_a_spec_is_named_by_fix_with_its_place(gradcli: Run, folder: Path) -> None:
    (folder / "s.yaml").write_text("target: functions:Square\ncases:\n- name: one\n  inputs: {w: {shape: [3]}}\n")
    ended = gradcli("fix", "s.yaml")
    assert ended.returncode == 2
    assert ended.stderr.decode().startswith("s.yaml:3:3: Square.forward has no input 'w'")


def test_an_empty_list_of_specs_is_said_with_its_line(gradcli: Run, folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.gradcli]\nspecs = []\n")
    ended = gradcli("check")
    assert ended.returncode == 5
    assert b"pyproject.toml:2: [tool.gradcli] specs lists no file or folder" in ended.stderr


def test_too_few_inputs_from_python_are_a_wrong_call(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    for given in ((), [()]):
        with pytest.raises(UsageError, match=r"^inputs: Square\.forward also needs x$"):
            gradcli_package.check("functions:Square", given)


def test_a_place_with_a_space_is_one_word_of_the_line(gradcli: Run, folder: Path) -> None:
    (folder / "my file.py").write_text((folder / "functions.py").read_text())
    line = gradcli("check", "my file.py:Forgets", "-i", "x=3").stdout.decode().splitlines()[0]
    assert re.search(r" at='my file\.py:\d+' replay=\S+$", line), line
