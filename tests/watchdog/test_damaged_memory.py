"""Compiled code that writes past the end at other sizes than its own: the process dies later, in another call."""

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes cannot be forked there")

DAMAGED = """
import os
from gradcli.engine.autograd import Function

damaged = []


class Cube(Function):
    '''A call at another size damages the process, which dies in the next call at the given size.'''

    @staticmethod
    def forward(ctx, x):
        if x.numel() != 3:
            damaged.append(True)
        elif damaged:
            os.abort()
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return FACTOR * g * x * x
"""


@pytest.mark.parametrize(("factor", "verdict"), [(3, "passed"), (3.003, "failed")])
def test_the_case_is_run_again_without_calls_at_other_sizes(gradcli, folder: Path, factor: float, verdict: str) -> None:
    (folder / "damaged.py").write_text(DAMAGED.replace("FACTOR", str(factor)))
    ended = gradcli("check", "damaged:Cube", "-i", "x=3", "--format", "json")
    (case,) = json.loads(ended.stdout)["cases"]
    assert case["verdict"] == verdict, case
    (note,) = (note for note in case["notes"] if "was run again without" in note)
    assert "killed by SIGABRT (calls at other sizes" in note


def test_death_at_the_given_size_alone_is_an_error(gradcli, folder: Path) -> None:
    (folder / "damaged.py").write_text(DAMAGED.replace("elif damaged", "elif True"))
    ended = gradcli("check", "damaged:Cube", "-i", "x=3", "--format", "json")
    (case,) = json.loads(ended.stdout)["cases"]
    assert case["verdict"] == "error"
