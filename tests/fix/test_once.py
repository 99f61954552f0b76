"""A backward is marked once_differentiable only if nothing else passes and nobody asked for the second order."""

import pytest

from tests import warm

HEAD = {
    "torch": ("from torch.autograd import Function\n", "from torch.autograd.function import once_differentiable\n", ""),
    "engine": (
        "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n",
        "",
        "torch.autograd.function.",
    ),
}
BODY = """

class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.slope = (2 * x.detach()).numpy()
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * SLOPE
"""
BROKEN = BODY.replace("SLOPE", "g.new_tensor(ctx.slope)")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEAD)
def test_the_mark_is_the_last_resort_and_says_what_it_means(framework, tmp_path):
    pytest.importorskip("torch")
    head, imported, prefix = HEAD[framework]
    (tmp_path / "own.py").write_text(head + BROKEN)
    done = warm.run_for_text(["fix", "own.py:Square", "-i", "x=3x4", "--write", "--force"], tmp_path, imports="torch")
    assert done.returncode == 0, done.stdout
    assert "a second derivative then raises an error instead of being silently wrong" in done.stdout
    marked = BROKEN.replace("    def backward", f"    @{prefix}once_differentiable\n    def backward")
    assert (tmp_path / "own.py").read_text() == head + imported + marked
    again = ["check", "own.py:Square", "-i", "x=3x4", "--only", "gradient", "--only", "higher-order"]
    assert warm.run_for_text(again, tmp_path, imports="torch").returncode == 0


def test_it_is_not_offered_where_the_first_order_is_wrong(tmp_path):
    pytest.importorskip("torch")
    text = HEAD["torch"][0] + BROKEN.replace("2 * x", "3 * x.exp()").replace("g * g", "g.sum() * g")
    (tmp_path / "own.py").write_text(text)
    done = warm.run_for_text(["fix", "own.py:Square", "-i", "x=3x4"], tmp_path, imports="torch")
    assert "once_differentiable" not in done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEAD)
def test_a_gradient_that_can_be_corrected_is_corrected_and_marked(framework, tmp_path):
    pytest.importorskip("torch")
    head, imported, prefix = HEAD[framework]
    wrong = BROKEN.replace("g * g.new", "g + g.new")
    (tmp_path / "own.py").write_text(head + wrong)
    done = warm.run_for_text(["fix", "own.py:Square", "-i", "x=3x4", "--write", "--force"], tmp_path, imports="torch")
    assert done.returncode == 0, done.stdout
    assert "corrects the gradient and marks backward once_differentiable" in done.stdout
    marked = BROKEN.replace("    def backward", f"    @{prefix}once_differentiable\n    def backward")
    assert (tmp_path / "own.py").read_text() == head + imported + marked


MARKED = """

class Product(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w.sin()

    @staticmethod
    @{mark}once_differentiable
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w.sin(), g * x * w.cos()
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", HEAD)
@pytest.mark.parametrize("wrong", ["-g * x * w.cos()", "g * 2 * x * w.cos()", "g * x * w.sin()"])
def test_the_formula_of_a_marked_backward_is_corrected(framework, wrong, tmp_path):
    """Nothing is lost where a second derivative raised before: the mark stays."""
    pytest.importorskip("torch")
    head, imported, mark = HEAD[framework]
    right = head + imported + MARKED.format(mark=mark)
    (tmp_path / "own.py").write_text(right.replace("g * x * w.cos()", wrong))
    done = warm.run_for_text(["fix", "own.py:Product", "-i", "x=3", "-i", "w=3"], tmp_path, imports="torch")
    assert done.returncode == 0, done.stdout
    changed = [line[1:].strip() for line in done.stdout.splitlines() if line[:1] in "+-" and line[:3] not in "+++---"]
    before, after = changed
    assert (before, after.replace("x * g", "g * x")) == (
        f"return g * w.sin(), {wrong}",
        "return g * w.sin(), g * x * w.cos()",
    )


@pytest.mark.parametrize("framework", HEAD)
def test_a_right_marked_backward_needs_no_patch(framework, tmp_path):
    pytest.importorskip("torch")
    head, imported, mark = HEAD[framework]
    (tmp_path / "own.py").write_text(head + imported + MARKED.format(mark=mark))
    done = warm.run_for_text(["fix", "own.py:Product", "-i", "x=3", "-i", "w=3"], tmp_path, imports="torch")
    assert "passes the whole check: there is nothing to fix" in done.stdout
