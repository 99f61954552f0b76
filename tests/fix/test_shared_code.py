"""A patch of code that several Functions run leaves those right that were."""

import json
import re

import pytest

from tests import warm

HEAD = {
    "torch": "from torch.autograd import Function\n",
    "engine": "from gradcli.engine.autograd import Function\n",
}
BASE = """

class Base(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {base}

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return {slope}
"""
CHILD = """

class Child(Base):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {child}
"""
HELPER = """

def common(ctx, g):
    (x,) = ctx.saved_tensors
    return {slope}


class Caller(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        return common(ctx, g)


class Other(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {other}

    backward = staticmethod(common)
"""


@pytest.fixture(params=HEAD)
def framework(request):
    pytest.importorskip(request.param if request.param == "torch" else "numpy")
    return request.param


def run(folder, framework, text, *arguments):
    (folder / "own.py").write_text(HEAD[framework] + text)
    return warm.run_for_text(arguments, folder, imports="torch" if framework == "torch" else None)


def verdicts(folder, framework):
    done = warm.run_for_text(["check", "own.py"], folder, imports="torch" if framework == "torch" else None)
    return done.stdout


@pytest.mark.sampled(1)
def test_a_right_base_stays_right_as_its_child_gets_a_backward_of_its_own(framework, tmp_path):
    text = BASE.format(base="x ** 3", slope="g * 3 * x ** 2") + CHILD.format(child="x ** 2")
    done = run(tmp_path, framework, text, "fix", "own.py:Child", "--write", "--force")
    assert done.returncode == 0, done.stdout
    assert "proven: Base, which also runs the edited code, is not changed: Child gets its own" in done.stdout
    written = (tmp_path / "own.py").read_text()
    assert written.startswith(HEAD[framework] + text + "\n    @staticmethod\n    def backward(ctx, g):\n")
    assert "2 passed" in verdicts(tmp_path, framework)


@pytest.mark.sampled(1)
def test_a_base_that_is_wrong_in_the_same_way_is_corrected_for_both(framework, tmp_path):
    text = BASE.format(base="x ** 2", slope="g * x * 3") + CHILD.format(child="x * x")
    done = run(tmp_path, framework, text, "fix", "own.py:Child", "--write", "--force")
    assert done.returncode == 0, done.stdout
    assert "proven: Base, which also runs the edited code, passes the whole check" in done.stdout
    assert (tmp_path / "own.py").read_text().count("def backward") == 1
    assert "2 passed" in verdicts(tmp_path, framework)


@pytest.mark.sampled(1)
def test_a_base_with_another_mistake_is_not_edited_for_its_child(framework, tmp_path):
    text = BASE.format(base="x ** 3", slope="g * 2 * x ** 2") + CHILD.format(child="x ** 2")
    done = run(tmp_path, framework, text, "fix", "own.py:Child", "--write", "--force")
    assert "Base, which also runs the edited code, is not changed: Child gets its own" in done.stdout
    assert (tmp_path / "own.py").read_text().startswith(HEAD[framework] + text)


@pytest.mark.sampled(1)
def test_a_base_is_not_corrected_at_the_cost_of_its_child(framework, tmp_path):
    text = BASE.format(base="x ** 3", slope="g * 2 * x") + CHILD.format(child="x ** 2")
    done = run(tmp_path, framework, text, "fix", "own.py:Base", "--budget", "3")
    assert done.returncode == 1
    assert re.search(r"Base passes, but Child, which runs the same code, then fails", done.stdout), done.stdout


@pytest.mark.sampled(2)
@pytest.mark.parametrize("other", ["x.sin() * 3", "x.sin() * 1.01"])
def test_a_helper_is_copied_and_keeps_its_other_callers_right(framework, other, tmp_path):
    text = HELPER.format(slope="g * x.cos()", other=other)
    done = run(tmp_path, framework, text, "fix", "own.py:Other", "--write", "--force")
    assert done.returncode == 0, done.stdout
    assert "Caller, which also runs the edited code, is not changed: Other gets its own" in done.stdout
    written = (tmp_path / "own.py").read_text()
    kept, _, _ = text.partition("    backward = staticmethod(common)")
    assert written.startswith(HEAD[framework] + kept + "    @staticmethod\n    def backward(ctx, g):\n        (x,) =")
    assert "2 passed" in verdicts(tmp_path, framework)


@pytest.mark.sampled(1)
def test_a_wrong_helper_is_corrected_for_all(framework, tmp_path):
    text = HELPER.format(slope="g * x.sin()", other="x.sin()")
    done = run(tmp_path, framework, text, "fix", "own.py:Other", "--write", "--force")
    assert "proven: Caller, which also runs the edited code, passes the whole check" in done.stdout
    after = text.replace("x.sin()\n\n\nclass C", "x.cos()\n\n\nclass C")
    assert (tmp_path / "own.py").read_text() == HEAD[framework] + after


SAVING = """

class Base(Function):
    @staticmethod
    def forward(ctx, x, beta=2.0):
        s = (beta * x).sigmoid()
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + ctx.beta * x * s * (1 - s)), None


class Child(Base):
    @staticmethod
    def backward(ctx, g):
        x, s = ctx.saved_tensors
        return g * (s + x * s * (1 - s)), None
"""


@pytest.mark.sampled(1)
def test_a_base_that_is_right_at_first_order_alone_is_not_broken_by_what_its_child_saves(framework, tmp_path):
    done = run(tmp_path, framework, SAVING, "fix", "own.py:Child", "--write", "--force")
    assert done.returncode == 0, done.stdout
    written = (tmp_path / "own.py").read_text()
    assert written.startswith(HEAD[framework] + SAVING.partition("class Child")[0])
    again = warm.run_for_text(
        ["check", "own.py", "--order", "1"], tmp_path, imports="torch" if framework == "torch" else None
    )
    assert "2 passed" in again.stdout


@pytest.mark.sampled(1)
def test_a_base_in_another_file_is_not_broken(framework, tmp_path):
    (tmp_path / "base.py").write_text(HEAD[framework] + BASE.format(base="x ** 3", slope="g * 3 * x ** 2"))
    text = "from base import Base\n" + CHILD.format(child="x ** 2")
    done = run(tmp_path, framework, text, "fix", "own.py:Child", "--budget", "3")
    assert done.returncode == 1
    assert "Child passes, but Base, which runs the same code, then fails" in done.stdout


@pytest.mark.sampled(1)
def test_the_fix_that_a_check_offers_breaks_no_other_function(framework, tmp_path):
    text = BASE.format(base="x ** 3", slope="g * 3 * x ** 2") + CHILD.format(child="x ** 2")
    done = run(tmp_path, framework, text, "check", "own.py:Child", "--format", "sarif")
    (fix,) = json.loads(done.stdout)["runs"][0]["results"][0]["fixes"]
    (replacement,) = fix["artifactChanges"][0]["replacements"]
    assert replacement["deletedRegion"]["startLine"] > text.count("\n"), replacement
    assert "def backward" in replacement["insertedContent"]["text"]


@pytest.mark.sampled(1)
def test_a_check_offers_no_fix_that_breaks_another_function(framework, tmp_path):
    text = BASE.format(base="x ** 3", slope="g * 2 * x") + CHILD.format(child="x ** 2")
    done = run(tmp_path, framework, text, "check", "own.py:Base")
    assert done.returncode == 1
    assert "fix available" not in done.stdout
