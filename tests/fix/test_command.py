"""`gradcli fix` on the command line: what it prints, when it writes, and its exit codes."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli.cli.commands.fix import require_options
from gradcli.errors import UsageError
from gradcli.fix.writing import write
from gradcli.patches import Patch
from tests import warm

SOURCE = (
    "from gradcli.engine.autograd import Function\n\n\n"
    "class Square(Function):\n"
    "    @staticmethod\n"
    "    def forward(ctx, x):\n"
    "        ctx.save_for_backward(x)\n"
    "        return x * x\n\n"
    "    @staticmethod\n"
    "    def backward(ctx, grad_output):\n"
    "        (x,) = ctx.saved_tensors\n"
    "        return -2 * x * grad_output\n"
)
PATCHED = SOURCE.replace("return -2", "return 2")


def gradcli(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return warm.run_for_text(arguments, folder)


def git(folder: Path, *arguments: str) -> None:
    own = ["-c", "user.name=Tester", "-c", "user.email=tester@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "square.py").write_text(SOURCE)
    return tmp_path


def test_the_sentence_the_diff_and_the_proof_are_shown_and_nothing_is_written(folder):
    done = gradcli(folder, "fix", "square.py:Square")
    assert done.returncode == 0, done.stderr
    assert "x: the returned gradient is -1 times the right one everywhere   [wrong-sign]" in done.stdout
    assert "-        return -2 * x * grad_output\n+        return 2 * x * grad_output\n" in done.stdout
    assert "proven: the patched Function passes the whole check: 3 samples, orders 1 and 2" in done.stdout
    assert "gradcli fix square.py:Square --write" in done.stdout
    assert (folder / "square.py").read_text() == SOURCE


def test_a_file_that_git_could_not_restore_is_written_only_by_force(folder):
    refused = gradcli(folder, "fix", "square.py:Square", "--write")
    assert refused.returncode == 2
    assert "square.py: it is not under version control (git)" in refused.stderr
    assert (folder / "square.py").read_text() == SOURCE
    (folder / "square.py").chmod(0o750)
    assert gradcli(folder, "fix", "square.py:Square", "--write", "--force").returncode == 0
    assert (folder / "square.py").read_text() == PATCHED
    assert (folder / "square.py").stat().st_mode & 0o777 == 0o750
    assert [p.name for p in folder.iterdir() if p.name.startswith(".square")] == []


def answered(folder: Path, answers: str) -> tuple[int, str]:
    """The exit code of an interactive run on a pseudo-terminal, and what it shows."""
    ours, theirs = os.openpty()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "gradcli", "fix", "square.py:Square", "--interactive", "--force"]
    os.write(ours, answers.encode())
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=theirs, capture_output=True, text=True, timeout=240, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    return done.returncode, done.stdout + done.stderr


def test_a_patch_is_written_when_it_is_accepted_and_left_when_it_is_not(folder):
    code, shown = answered(folder, "perhaps\nn\n")
    assert code == 0, shown
    assert shown.count("Apply this patch? [y/n/next]") == 2
    assert (folder / "square.py").read_text() == SOURCE
    assert answered(folder, "y\n")[0] == 0
    assert (folder / "square.py").read_text() == PATCHED


def test_the_next_patch_is_another_one(folder):
    code, shown = answered(folder, "next\ny\n")
    assert code == 0, shown
    assert shown.count("--- a/square.py") == 2
    assert (folder / "square.py").read_text() not in (SOURCE, PATCHED)


@pytest.fixture
def patch(folder):
    return Patch(file=str(folder / "square.py"), before=SOURCE, after=PATCHED, proven=("it passes",))


def test_the_diff_is_what_git_applies(folder, patch, monkeypatch):
    monkeypatch.chdir(folder)
    assert patch.diff().startswith("--- a/square.py\n+++ b/square.py\n@@ ")
    git(folder, "init", "-q")
    (folder / "fix.diff").write_text(patch.diff())
    git(folder, "apply", "fix.diff")
    assert (folder / "square.py").read_text() == PATCHED


def test_a_committed_file_is_written_and_one_with_changes_is_not(folder, patch):
    git(folder, "init", "-q")
    git(folder, "add", "square.py")
    with pytest.raises(UsageError, match="changes that are not committed"):
        write(patch, force=False)
    git(folder, "commit", "-qm", "x")
    write(patch, force=False)
    assert (folder / "square.py").read_text() == PATCHED


def test_a_file_that_was_edited_since_is_left_alone_even_by_force(folder, patch):
    (folder / "square.py").write_text(SOURCE + "# mine\n")
    with pytest.raises(UsageError, match="has changed since it was checked"):
        write(patch, force=True)
    assert (folder / "square.py").read_text() == SOURCE + "# mine\n"


@pytest.mark.parametrize("options", [{"diff", "write"}, {"write", "interactive"}, {"force"}, {"interactive"}])
def test_options_that_exclude_each_other_are_refused(options, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(UsageError, match=r"expected |--force needs "):
        require_options(**{name: name in options for name in ("diff", "write", "interactive", "force")})


def test_what_candidates_divide_by_zero_is_not_reported_as_a_warning(tmp_path):
    """A command that runs to its end says nothing on standard error of the numbers that it tried."""
    text = SOURCE.replace("return x * x", "return x.sin() * x.exp().sum()").replace("-2 * x *", "x / (x - x) *")
    (tmp_path / "square.py").write_text(text)
    done = gradcli(tmp_path, "fix", "square.py:Square", "--budget", "2")
    assert done.returncode == 1, done.stdout
    assert "Warning" not in done.stderr
