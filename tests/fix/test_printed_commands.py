"""A command that a report prints does, run as it is printed, what the report says."""

import re
import shlex

import pytest

from tests import warm

SOURCE = """from gradcli.engine.autograd import Function


class Scaled(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, g):
        x, scale = ctx.saved_tensors
        return g * scale, (g * x).sum()
"""
RIGHT = SOURCE.replace("(g * x).sum()", "g * x")
SPEC = """target: own.py:Scaled
cases:
  - inputs: {x: {shape: [3]}, scale: {shape: [3]}}
"""
NUMPY = """import numpy as np


def value(x):
    return np.sin(x).sum()


def slope(x):
    return -np.cos(x)
"""


PAIR = """import gradcli.engine as torch


def scaled(x, scale):
    root = torch.sqrt(x * x + 1)
    return root * scale, root


def scaled_backward(g, x, scale, root):
    return g * scale * 2 * x / root, g * root
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own.py").write_text(SOURCE)
    (tmp_path / "one case.yaml").write_text(SPEC)
    (tmp_path / "values.py").write_text(NUMPY)
    (tmp_path / "pair.py").write_text(PAIR)
    return tmp_path


def printed(text, word):
    (line,) = [line for line in text.splitlines() if f"{word}:" in line]
    return line.partition(f"{word}:")[2].strip()


TARGETS = {
    "a spec": (["one case.yaml"], "gradcli fix 'one case.yaml'"),
    "flags": (["own.py:Scaled", "-i", "x=3", "-i", "scale=3"], "gradcli fix own.py:Scaled -i x=3 -i scale=3"),
    "a spec and flags": (
        ["one case.yaml", "-i", "x=4", "-i", "scale=4"],
        "gradcli fix 'one case.yaml' -i x=4 -i scale=4",
    ),
    "a gradient": (["values.py:value", "--grad", "slope"], "gradcli fix values.py:value --grad values.py:slope"),
    "saved values": (
        ["pair.py:scaled", "-i", "x=3", "-i", "scale=3", "--grad", "scaled_backward", "--saved", "root"],
        "gradcli fix pair.py:scaled -i x=3 -i scale=3 --grad pair.py:scaled_backward --saved root",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("given", TARGETS)
def test_the_printed_command_applies_the_patch(given, folder):
    arguments, expected = TARGETS[given]
    checked = warm.run_for_text(["check", *arguments, "--format", "table"], folder)
    assert printed(checked.stdout, "fix available") == expected, checked.stdout
    fixed = warm.run_for_text(["fix", *arguments], folder)
    command = printed(fixed.stdout, "apply")
    assert command == f"{expected} --write"
    done = warm.run_for_text([*shlex.split(command)[1:], "--force"], folder)
    assert re.search("written: (own|values|pair).py", done.stdout), done.stdout
    assert warm.run_for_text(["check", *arguments], folder).returncode == 0


def test_a_case_after_a_written_patch_sees_the_new_text(folder):
    """The process that found the patch has the functions as they were before it."""
    more = "  - name: four\n    inputs: {x: {shape: [4]}, scale: {shape: [4]}}\n"
    (folder / "two.yaml").write_text(SPEC + more)
    done = warm.run_for_text(["fix", "two.yaml", "--write", "--force"], folder)
    assert done.returncode == 0, done.stdout
    assert "own.py:Scaled[four]: passes the whole check: there is nothing to fix" in done.stdout
    assert (folder / "own.py").read_text() == RIGHT


def test_one_process_alone_writes_one_patch(folder):
    more = "  - name: four\n    inputs: {x: {shape: [4]}, scale: {shape: [4]}}\n"
    (folder / "two.yaml").write_text(SPEC + more)
    done = warm.run_for_text(["fix", "two.yaml", "--write", "--force", "--in-process"], folder)
    assert done.returncode == 2
    assert "a patch was written: run the command again for the other cases" in done.stderr
    assert (folder / "own.py").read_text() == RIGHT
