"""A patch for given inputs must also pass at the inputs that would be inferred."""

import pytest

from tests import warm

HEAD = {
    "torch": "from torch.autograd import Function\n",
    "engine": "from gradcli.engine.autograd import Function\n",
}
ROWS = """

class Rows(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x.shape[0]

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x * {}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", HEAD)
@pytest.mark.parametrize("given", ["spec", "flags"])
def test_a_number_of_rows_is_not_taken_for_the_number_of_entries(framework, given, tmp_path):
    """Both are the same for a vector, of whatever length; forward takes matrices as well."""
    pytest.importorskip(framework if framework == "torch" else "numpy")
    imports = "torch" if framework == "torch" else None
    (tmp_path / "own.py").write_text(HEAD[framework] + ROWS.format(4))
    (tmp_path / "own.yaml").write_text("target: own.py:Rows\ncases: [{inputs: {x: {shape: [5]}}}]\n")
    target = ["own.yaml"] if given == "spec" else ["own.py:Rows", "-i", "x=5"]
    done = warm.run_for_text(["fix", *target, "--write", "--force"], tmp_path, imports=imports)
    assert done.returncode == 0, done.stdout
    assert "numel" not in (tmp_path / "own.py").read_text()
    for inputs in (["-i", "x=5"], []):
        again = warm.run_for_text(["check", "own.py:Rows", *inputs], tmp_path, imports=imports)
        assert again.returncode == 0, again.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEAD)
def test_a_number_is_still_patched_where_forward_takes_no_inferred_inputs(framework, tmp_path):
    pytest.importorskip(framework if framework == "torch" else "numpy")
    text = ROWS.format("3").replace("        ctx.save", "        assert x.shape == (5,)\n        ctx.save", 1)
    (tmp_path / "own.py").write_text(HEAD[framework] + text.replace("x.shape[0]\n", "2\n"))
    imports = "torch" if framework == "torch" else None
    done = warm.run_for_text(["fix", "own.py:Rows", "-i", "x=5"], tmp_path, imports=imports)
    assert "+        return g * 2 * x * 2" in done.stdout, done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", HEAD)
def test_a_wrong_number_is_replaced_instead_of_divided_away(framework, tmp_path):
    pytest.importorskip(framework if framework == "torch" else "numpy")
    (tmp_path / "own.py").write_text(HEAD[framework] + ROWS.format(4))
    imports = "torch" if framework == "torch" else None
    done = warm.run_for_text(["fix", "own.py:Rows"], tmp_path, imports=imports)
    assert "+        return g * 2 * x * x.shape[0]\n" in done.stdout, done.stdout
