"""A planted mistake is patched by an edit that gives the right gradients, and nothing else is ever offered."""

import ast

import pytest

from benchmarks.fix.corpus import specimens
from benchmarks.fix.run import agrees, patched
from gradcli.patches import FixResult
from gradcli.verdict import Verdict

CASES = {s.name: s for s in specimens()}
LINES = {
    "engine-TanhLinear-0-chain": "gx = gz.mm(w.t())",
    "engine-Linear-0-assignment": "grad_weight = grad_output.t().mm(input)",
    "engine-Scaled-0-factor": "return grad_output * ctx.k, None",
    "engine-Softmax-2-sign": "return y * (grad_output - inner)",
    "engine-Relu-0-in_place": "grad_input = grad_output.clone()",
    "engine-Cube-4-detach": "return 3 * x ** 2 * grad_output",
    "numpy-sine-0-function": "return g * a * np.cos(x), (g * np.sin(x)).sum(axis=0)",
    "numpy-norm-2-ignored_cotangent": "return g * (x / np.sqrt((x**2).sum()))",
}


@pytest.mark.parametrize("name", LINES)
def test_a_mistake_is_patched_in_the_line_where_it_stands(name, tmp_path):
    specimen = CASES[name]
    result, _ = patched(specimen, tmp_path)
    assert result.verdict is Verdict.FAILED
    assert result.patch is not None, result.reason
    before, after = result.patch.before.splitlines(), result.patch.after.splitlines()
    assert [line.strip() for line in after if line not in before] == [LINES[name]]
    assert result.patch.before == specimen.wrong
    assert agrees(specimen, result.patch.after, tmp_path)


def test_a_lacking_term_is_patched_by_one_that_holds_at_other_sizes(tmp_path):
    specimen = CASES["engine-LogSoftmax-2-term"]
    result, _ = patched(specimen, tmp_path)
    assert result.patch is not None
    assert agrees(specimen, result.patch.after, tmp_path)
    assert not agrees(specimen, specimen.wrong, tmp_path)


def test_a_right_function_has_nothing_to_fix(tmp_path):
    specimen = CASES["engine-Cube-0-factor"]
    right = type(specimen)(**{**vars(specimen), "wrong": specimen.right})
    result, _ = patched(right, tmp_path)
    assert (result.verdict, result.patch, result.exit_code) == (Verdict.PASSED, None, 0)


HEADER = "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n"
HOPELESS = HEADER + (
    "class Odd(Function):\n"
    "    @staticmethod\n"
    "    def forward(ctx, x):\n"
    "        return torch.exp(torch.sin(x)) * (x * x * x + torch.cos(5 * x))\n\n"
    "    @staticmethod\n"
    "    def backward(ctx, g):\n"
    "        return g\n"
)
KEEPS = HEADER + (
    "class Mean(Function):\n"
    "    @staticmethod\n"
    "    def forward(ctx, x):\n"
    "        ctx.save_for_backward(x)\n"
    "        return (x * x).mean()\n\n"
    "    @staticmethod\n"
    "    def backward(ctx, g):\n"
    "        # élan: comments stay,  and  spacing\n"
    "        (x,) = ctx.saved_tensors\n"
    "        return (g   # the cotangent\n"
    "                * 2 * x)\n"
)


def outcome(text: str, target: str, folder) -> FixResult:
    specimen = type(CASES["engine-Cube-0-factor"])(
        name=f"own-{target}", kind="", framework="engine", target=target, right=text, wrong=text, names=frozenset()
    )
    return patched(specimen, folder)[0]


def test_where_no_edit_is_right_none_is_offered(tmp_path):
    result = outcome(HOPELESS, "Odd", tmp_path)
    assert (result.verdict, result.patch, result.exit_code) == (Verdict.FAILED, None, 1)
    assert result.reason is not None


def test_a_number_that_equals_a_size_is_written_as_the_size_and_the_rest_is_kept(tmp_path):
    """A factor of 1/12 would be right at the inputs of the case alone."""
    result = outcome(KEEPS, "Mean", tmp_path)
    assert result.patch is not None
    assert "x.numel()" in result.patch.after
    assert "12" not in result.patch.after
    # Comments and spacing are kept.
    assert "# élan: comments stay,  and  spacing" in result.patch.after
    assert "g   # the cotangent\n" in result.patch.after
    changed = [line for line in result.patch.after.splitlines() if line not in KEEPS.splitlines()]
    assert len(changed) <= 2
    ast.parse(result.patch.after)
