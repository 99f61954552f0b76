"""A wrong option is an error of the command line that says what came; nothing of it is blamed on the target."""

from pathlib import Path

import pytest

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
