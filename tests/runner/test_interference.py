"""A target that ends the process, replaces NumPy's functions or returns no tensor is told as what it is."""

from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.engine.autograd import Function
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.conftest import Run

PROGRAM = """
import os
import numpy as np
from gradcli.engine.autograd import Function


class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class Ends(Doubled):
    @staticmethod
    def forward(ctx, x):
        os._exit(0)


class EndsInBackward(Doubled):
    @staticmethod
    def backward(ctx, grad_output):
        os._exit(0)


class Replaces(Doubled):
    @staticmethod
    def forward(ctx, x):
        np.isfinite = lambda *values: True
        return 2 * x


class Nothing(Doubled):
    @staticmethod
    def forward(ctx, x):
        return None


class NoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
"""
SAID = {
    "Ends": "SystemExit: os._exit(0)",
    "EndsInBackward": "backward raised SystemExit: os._exit(0)",
    "Replaces": "while it ran, the target replaced numpy.isfinite",
    "Nothing": "a result that holds no tensor",
}


@pytest.mark.parametrize("name", SAID)
def test_it_is_an_error_that_says_so_and_the_next_case_goes_on(name, folder: Path, gradcli: Run):
    (folder / "program.py").write_text(PROGRAM)
    ended = gradcli("check", f"program.py:{name}", "program.py:Doubled", "--format", "plain")
    assert ended.returncode == 3, ended.stderr
    assert SAID[name] in ended.stdout.decode()
    assert "PASS program.py:Doubled" in ended.stdout.decode()


def test_no_name_of_the_frameworks_own_is_offered_for_a_missing_backward(folder: Path, gradcli: Run):
    (folder / "program.py").write_text(PROGRAM)
    ended = gradcli("check", "program.py:NoBackward")
    assert ended.returncode == 2
    assert "defines no backward, so" in ended.stderr.decode()


def test_numpy_is_put_back():
    own = np.isfinite

    class Replaces(Function):
        @staticmethod
        def forward(ctx, x):
            np.isfinite = own.__call__
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            return 2 * grad_output

    assert gradcli.check(Replaces, shrink=False).verdict is Verdict.ERROR
    assert np.isfinite is own


@pytest.mark.parametrize("returned", ["text", np.ones((3, 4))], ids=["text", "array"])
def test_what_is_no_tensor_is_not_called_none(returned):
    class Strange(Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            return returned

    (case,) = gradcli.check(Strange, shrink=False).cases
    assert [finding.kind for finding in case.findings] == [FindingKind.WRONG_SHAPE]
    wanted = f"returns a value of type {type(returned).__name__} where a tensor or None is expected"
    assert wanted in case.findings[0].message
