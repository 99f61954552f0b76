"""A planted mistake is patched by an edit that gives the right gradients, and nothing else is ever offered."""

import ast

import pytest

from benchmarks.fix.corpus import Specimen, specimens
from benchmarks.fix.run import agrees, patched
from gradcli import engine as torch
from gradcli.cases import CheckSpec, Expectation
from gradcli.patches import FixResult
from gradcli.runner.arguments.prepare import prepared
from gradcli.runner.case import check_object
from gradcli.runner.outcome.proof import proof_of, tells_sizes
from gradcli.runner.planning.plan import plan
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve
from gradcli.verdict import Verdict
from gradcli.watchdog.limit import TimeLimit

CASES = {s.name: s for s in specimens()}
LINES = {
    "engine-TanhLinear-0-chain": "gx = gz.mm(w.t())",
    "engine-Linear-0-assignment": "grad_weight = grad_output.t().mm(input)",
    "engine-Softmax-2-sign": "return y * (grad_output - inner)",
    "engine-Relu-0-in_place": "grad_input = grad_output.clone()",
    "engine-Cube-4-detach": "return 3 * x ** 2 * grad_output",
    "numpy-sine-0-function": "return g * a * np.cos(x), (g * np.sin(x)).sum(axis=0)",
    "numpy-norm-2-ignored_cotangent": "return g * (x / np.sqrt((x**2).sum()))",
}


@pytest.mark.sampled(2)
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
    "        ctx.x = x\n"
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


def test_a_spec_that_says_the_target_fails_does_not_turn_the_proof_round(tmp_path):
    (tmp_path / "odd.py").write_text(HOPELESS)
    target = f"{tmp_path / 'odd.py'}:Odd"
    spec = CheckSpec(target=target, expect=Expectation(verdict="failed"))
    (case,) = plan([spec], Settings())
    found = resolve(target).object
    ready = prepared(found, case)
    assert proof_of(ready, found, {}, check=check_object) is None
    right = type(found.__name__, (found,), {"backward": staticmethod(right_backward)})
    assert proof_of(ready, right, {}, check=check_object) is not None


def right_backward(ctx, g):
    x = ctx.x
    wave = x * x * x + torch.cos(5 * x)
    return g * torch.exp(torch.sin(x)) * (torch.cos(x) * wave + 3 * x * x - 5 * torch.sin(5 * x))


def outcome(text: str, target: str, folder) -> FixResult:
    specimen = type(CASES["engine-Cube-0-factor"])(
        name=f"own-{target}", kind="", framework="engine", target=target, right=text, wrong=text, names=frozenset()
    )
    return patched(specimen, folder)[0]


def test_where_no_edit_is_right_none_is_offered(tmp_path):
    result = outcome(HOPELESS, "Odd", tmp_path)
    assert (result.verdict, result.patch, result.exit_code) == (Verdict.FAILED, None, 1)
    assert result.reason is not None


def function(forward: str, backward: str) -> str:
    head = "class Own(Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    return HEADER + head + indented(forward) + "\n    @staticmethod\n    def backward(ctx, g):\n" + indented(backward)


def indented(lines: str) -> str:
    return "".join(f"        {line}\n" for line in lines.splitlines())


def added(result: FixResult) -> list[str]:
    assert result.patch is not None, result.reason
    lines = result.patch.diff().splitlines()
    return [line[1:].strip() for line in lines if line.startswith("+") and not line.startswith("+++")]


def test_a_backward_of_one_piece_is_replaced_by_one_that_runs_forward_again(tmp_path):
    forward = "ctx.save_for_backward(x)\nreturn torch.exp(torch.sin(x)) * (x * x * x + torch.cos(5 * x))"
    result = outcome(function(forward, '"""Says nothing."""\nreturn g'), "Own", tmp_path)
    assert result.patch is not None
    assert result.patch.recomputes
    assert '"""Says nothing."""' in result.patch.after
    assert "output = Own.forward(ctx, *inputs)" in added(result)


@pytest.mark.parametrize("indent", ["    ", "\t"])
def test_a_saved_intermediate_result_is_computed_again_from_the_inputs(indent, tmp_path):
    forward = "square = x * x\nctx.save_for_backward(square)\nreturn square * x"
    text = function(forward, "(square,) = ctx.saved_tensors\nreturn g * 3 * square").replace("    ", indent)
    result = outcome(text, "Own", tmp_path)
    assert added(result) == ["ctx.save_for_backward(x)", "x, = ctx.saved_tensors", "square = x * x"]
    assert not result.patch.recomputes


def test_an_argument_that_nobody_kept_is_kept_on_ctx(tmp_path):
    text = function("return x * k", "return g, None").replace("forward(ctx, x)", "forward(ctx, x, k)")
    assert added(outcome(text, "Own", tmp_path)) == ["ctx.k = k", "return g * ctx.k, None"]


def test_a_write_into_grad_output_is_made_on_a_copy(tmp_path):
    forward = "ctx.save_for_backward(x)\nreturn x.clamp(min=0)"
    backward = "(x,) = ctx.saved_tensors\ng[x < 0] = 0\nreturn g"
    assert added(outcome(function(forward, backward), "Own", tmp_path)) == ["g = g.clone()"]


def test_sizes_count_as_unproven_once_the_time_for_a_proof_is_over(tmp_path):
    (tmp_path / "keeps.py").write_text(KEEPS.replace("* 2 * x", "* 2 * x / x.numel()"))
    target = f"{tmp_path / 'keeps.py'}:Mean"
    (case,) = plan([CheckSpec(target=target)], Settings())
    found = resolve(target).object
    ready = prepared(found, case)
    assert tells_sizes(ready, found, {}, check=check_object)
    assert tells_sizes(ready, found, {}, check=check_object, limit=TimeLimit(60.0))
    assert not tells_sizes(ready, found, {}, check=check_object, limit=TimeLimit(0.0))


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


def test_sizes_that_backward_is_not_written_for_are_no_reason_against_a_patch(tmp_path):
    text = (
        "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n"
        "class Area(Function):\n    @staticmethod\n    def forward(ctx, x, d):\n        ctx.save_for_backward(x, d)\n"
        "        return x * d[:, 0] * d[:, 1]\n\n    @staticmethod\n    def backward(ctx, g):\n"
        "        x, d = ctx.saved_tensors\n        grad_d = torch.stack([g * x * d[:, 1], g * x * d[:, 0]], 1)\n"
        "        return 0.5 * g * d[:, 0] * d[:, 1], grad_d\n"
    )
    specimen = Specimen("area", "", "engine", "Area", text, text, frozenset(), inputs="x=n d=nk")
    result, _ = patched(specimen, tmp_path)
    assert result.patch is not None
    assert "0.5" not in result.patch.after
