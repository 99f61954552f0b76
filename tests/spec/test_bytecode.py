"""A source that is changed twice in one second is imported as it is now, whichever form the target has."""

import os
import subprocess
import sys
import time

import pytest

TEXT = "class Own:\n    sign = '{}'\n"


def imported(target, folder):
    code = f"from gradcli.spec.resolve import resolve; print(resolve({target!r}).object.sign)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("files", "target"),
    [
        (["own.py"], "own.py:Own"),
        (["own.py"], "own:Own"),
        (["pack/__init__.py", "pack/own.py"], "pack.own:Own"),
        (["other.py", "own.py"], "other.py:Own"),
    ],
)
def test_the_second_change_of_a_second_is_seen(tmp_path, files, target):
    contents = {"other.py": "from own import Own\n", "pack/__init__.py": ""}
    now = time.time()
    for sign in "+-":
        for file in files:
            path = tmp_path / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(contents.get(file, TEXT.format(sign)))
            os.utime(path, (now, now))
        assert imported(target, tmp_path).strip() == sign


def test_the_compiled_file_of_an_older_source_is_kept(tmp_path):
    path = tmp_path / "own.py"
    path.write_text(TEXT.format("+"))
    os.utime(path, (1e9, 1e9))
    imported("own:Own", tmp_path)
    assert [file.suffix for file in (tmp_path / "__pycache__").iterdir()] == [".pyc"]
