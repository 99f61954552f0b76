"""What forward keeps of its own is computed again by backward, with the statements and names that this takes."""

from benchmarks.fix.corpus import Specimen
from benchmarks.fix.run import case_of, patched
from gradcli.fix.examine import examined
from gradcli.runner.arguments.prepare import prepared

HEAD = "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\nclass Own(Function):\n"
STEPS = HEAD + (
    "    @staticmethod\n    def forward(ctx, x, w, eps=0.01):\n"
    "        mean = x.mean(-1, keepdim=True)\n"
    "        var = ((x - mean) ** 2).mean(-1, keepdim=True)\n"
    "        rstd = 1 / torch.sqrt(var + eps)\n"
    "        xhat = (x - mean) * rstd\n"
    "        ctx.save_for_backward(xhat, w, rstd)\n"
    "        ctx.eps = eps\n"
    "        return xhat * w\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n"
    "        n, w, rstd = ctx.saved_tensors\n"
    "        h = g * w\n"
    "        gx = rstd * (h - h.mean(-1, keepdim=True) - n * (h * n).mean(-1, keepdim=True))\n"
    "        return gx, g * n, None\n"
)
ON_CTX = HEAD + (
    "    @staticmethod\n    def forward(ctx, x):\n        s = torch.sigmoid(x)\n        ctx.s = s\n"
    "        ctx.save_for_backward(x)\n        return x * s\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_tensors\n        s = ctx.s\n"
    "        return g * (s + x * s * (1 - s))\n"
)
NOT_KEPT = STEPS.replace("        ctx.eps = eps\n", "")
ONE = HEAD + (
    "    @staticmethod\n    def forward(ctx, x, w, eps):\n"
    "        r = 1 / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)\n"
    "        ctx.save_for_backward(x, w, r)\n"
    "        return x * r * w\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n"
    "        x, w, r = ctx.saved_tensors\n"
    "        n, h = x * r, g * w\n"
    "        return r * (h - n * (h * n).mean(-1, keepdim=True)), g * n, None\n"
)

IN_A_BRANCH = HEAD + (
    "    @staticmethod\n    def forward(ctx, x, causal=True):\n"
    "        s = x * x\n"
    "        if causal:\n"
    "            s = s.tril()\n"
    "        r = torch.exp(s)\n"
    "        ctx.save_for_backward(x, r)\n"
    "        ctx.causal = causal\n"
    "        return r.sum(-1)\n\n"
    "    @staticmethod\n    def backward(ctx, g):\n"
    "        x, r = ctx.saved_tensors\n"
    "        h = 2 * x * r * g.unsqueeze(-1)\n"
    "        return (h.tril() if ctx.causal else h), None\n"
)


def specimen(text: str, inputs: str) -> Specimen:
    return Specimen(f"own-{len(text)}", "", "engine", "Own", text, text, frozenset(), inputs=inputs)


def added(text: str, inputs: str, folder) -> list[str]:
    result, _ = patched(specimen(text, inputs), folder)
    assert result.sentences[0].endswith("[not-twice-differentiable]")
    assert result.patch is not None, result.reason
    assert not result.patch.recomputes
    return [line[1:].strip() for line in result.patch.diff().splitlines() if line[:1] == "+" and line[:2] != "++"]


def test_several_results_are_computed_again_by_forwards_statements(tmp_path):
    assert added(STEPS, "x=nm w=nm", tmp_path) == [
        "ctx.save_for_backward(w, x)",
        "w, x = ctx.saved_tensors",
        "mean = x.mean(-1, keepdim=True)",
        "var = ((x - mean) ** 2).mean(-1, keepdim=True)",
        "rstd = 1 / torch.sqrt(var + ctx.eps)",
        "n = (x - mean) * rstd",
    ]


def test_a_number_that_forward_does_not_keep_is_kept_on_ctx(tmp_path):
    assert added(NOT_KEPT, "x=nm w=nm", tmp_path)[:3] == [
        "ctx.save_for_backward(w, x)",
        "ctx.eps = eps",
        "w, x = ctx.saved_tensors",
    ]
    assert added(ONE, "x=nm w=nm eps=0.01", tmp_path) == [
        "ctx.save_for_backward(x, w)",
        "ctx.eps = eps",
        "x, w = ctx.saved_tensors",
        "r = 1 / torch.sqrt((x * x).mean(-1, keepdim=True) + ctx.eps)",
    ]


def test_a_branch_of_forward_is_taken_over(tmp_path):
    assert added(IN_A_BRANCH, "x=nm", tmp_path) == [
        "ctx.save_for_backward(x)",
        "x, = ctx.saved_tensors",
        "s = x * x",
        "if ctx.causal:",
        "s = s.tril()",
        "r = torch.exp(s)",
    ]


def test_a_result_kept_on_ctx_is_computed_again(tmp_path):
    assert added(ON_CTX, "x=nm", tmp_path) == ["s = torch.sigmoid(x)"]


def test_the_line_that_keeps_a_result_is_named(tmp_path):
    for text, inputs, line in ((STEPS, "x=nm w=nm", 12), (ON_CTX, "x=nm", 9)):
        case, found = case_of(specimen(text, inputs), tmp_path)
        (finding,) = examined(prepared(found, case)).findings
        assert finding.location is not None
        assert finding.location.line == line
