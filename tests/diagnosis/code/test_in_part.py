"""Of a gradient that is wrong in some entries the expression that makes them so is named, with its line."""

from pathlib import Path

import pytest

import gradcli
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("unshrunk")
HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
FUNCTIONS = {
    "Bending": (
        """
class Bending(Function):
    @staticmethod
    def forward(ctx, h, stiff=3.0):
        ctx.save_for_backward(h)
        ctx.stiff = stiff
        return (stiff * (h[1:] - h[:-1] ** 3) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        (h,) = ctx.saved_tensors
        step = 2 * ctx.stiff * (h[1:] - h[:-1] ** 3)
        of_h = torch.zeros_like(h)
        of_h[:-1] = -3 * step * h[:-1] ** 2
        of_h[1:] += step  # marked
        return g * of_h, None
""",
        ("+= step", "= step"),
        "line 19 has `of_h[1:] = step` where `of_h[1:] += step` belongs",
    ),
    "Bump": (
        """
class Bump(Function):
    @staticmethod
    def forward(ctx, x, n=3):
        ctx.save_for_backward(x)
        ctx.n = n
        return (x**2 - 2 * x**n) * (x < 0.5).to(x.dtype)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        slope = 2 * x - 2 * ctx.n * x ** (ctx.n - 1)  # marked
        return g * slope * (x < 0.5).to(x.dtype), None
""",
        ("(ctx.n - 1)  #", "ctx.n  #"),
        "`2 * x - 2 * ctx.n * x ** (ctx.n - 1)` belongs",
    ),
    "Compose": (
        """
def compose(a, b):
    return torch.stack([a[0] * b[0], a[1] + a[0] * b[1]])


class Compose(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return compose(a, b) * torch.tensor([[1.0], [2.0]], dtype=a.dtype)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        g = g * torch.tensor([[1.0], [2.0]], dtype=a.dtype)
        top = torch.stack([g[0] * b[0] + g[1] * b[1], g[1]])
        return top, compose(torch.stack([a[0], 0 * a[0]]), g)  # marked
""",
        ("compose(torch.stack([a[0], 0 * a[0]]), g)", "compose(g, torch.stack([a[0], 0 * a[0]]))"),
        "belongs",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_expression_is_named_beside_the_entries(name: str, framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework.partition(".")[0])
    text, change, says = FUNCTIONS[name]
    right = HEADER.replace("{framework}", framework) + text
    wrong = right.replace(*change)
    assert wrong != right
    sizes = {"Bending": {"h": {"shape": [4]}}, "Bump": {"x": {"shape": [3, 4]}}}.get(name) or {
        n: {"shape": [2, 5]} for n in "ab"
    }
    cases = []
    for kind, source in (("right", right), ("wrong", wrong)):
        file = tmp_path / f"{kind}.py"
        file.write_text(source)
        cases += gradcli.check(f"{file}:{name}", sizes, order=1, samples=1, only=["gradient"]).cases
    assert [case.verdict for case in cases] == [Verdict.PASSED, Verdict.FAILED]
    (finding,) = cases[1].findings
    assert says in finding.message
    assert finding.location is not None
    assert finding.location.line == next(n for n, line in enumerate(right.splitlines(), 1) if "# marked" in line)
    assert finding.corrected is not None


CHUNKS = """
class Chunked(Function):
    @staticmethod
    def forward(ctx, x, w, size=2):
        of_x, of_w, loss = torch.zeros_like(x), torch.zeros_like(w), 0
        for start in range(0, x.shape[0], size):
            part = x[start : start + size]
            logits = part @ w
            loss = loss + logits.exp().sum()
            slope = logits.exp()
            of_x[start : start + size] = slope @ w.T
            of_w {sign} part.T @ slope  # marked
        ctx.save_for_backward(of_x, of_w)
        return loss

    @staticmethod
    def backward(ctx, g):
        of_x, of_w = ctx.saved_tensors
        return of_x * g, of_w * g, None
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_gradient_that_forward_adds_up_is_corrected_in_forward(framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework.partition(".")[0])
    text = HEADER.replace("{framework}", framework) + CHUNKS
    sizes = {"x": {"shape": [3, 4]}, "w": {"shape": [4, 2]}}
    cases = []
    for kind, sign in (("right", "+="), ("wrong", "=")):
        file = tmp_path / f"{kind}.py"
        file.write_text(text.replace("{sign}", sign))
        made = gradcli.check(f"{file}:Chunked", sizes, order=1, samples=1, only=["gradient"])
        cases += made.cases
    assert [case.verdict for case in cases] == [Verdict.PASSED, Verdict.FAILED]
    (finding,) = cases[1].findings
    assert "`of_w = of_w + part.T @ slope` belongs" in finding.message
    assert finding.location is not None
    assert finding.location.line == next(n for n, line in enumerate(text.splitlines(), 1) if "# marked" in line)
