"""A mistake in what forward saves for backward is corrected and located in forward."""

from pathlib import Path

import pytest

import gradcli
from gradcli.results import CheckResult
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("unshrunk")
HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n"
RIGHT = {
    "mask": """
class Slope(Function):
    @staticmethod
    def forward(ctx, x, t, delta=1.0):
        r = x - t
        small = r.abs() < delta  # marked
        ctx.save_for_backward(r, small)
        ctx.delta = delta
        return torch.where(r.abs() <= delta, 0.5 * r * r, delta * (r.abs() - 0.5 * delta))

    @staticmethod
    def backward(ctx, g):
        r, small = ctx.saved_tensors
        d = torch.where(small, r, ctx.delta * torch.sign(r)) * g
        return d, -d, None
""",
    "operand": """
class Norm(Function):
    @staticmethod
    def forward(ctx, x, eps=0.05):
        mean = x.mean(-1, keepdim=True)
        var = ((x - mean) ** 2).mean(-1, keepdim=True)
        normed = (x - mean) / torch.sqrt(var + eps)
        scale = 1 / torch.sqrt(var + eps)  # marked
        ctx.save_for_backward(normed, scale)
        return normed

    @staticmethod
    def backward(ctx, g):
        normed, scale = ctx.saved_tensors
        return scale * (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)), None
""",
    "index": """
class RowMax(Function):
    @staticmethod
    def forward(ctx, x):
        index = torch.argmax(x, 1)  # marked
        ctx.save_for_backward(x, index)
        return x.max(dim=1).values

    @staticmethod
    def backward(ctx, g):
        x, index = ctx.saved_tensors
        chosen = torch.arange(x.shape[1]) == index.unsqueeze(1)
        return torch.where(chosen, g.unsqueeze(1) + torch.zeros_like(x), torch.zeros_like(x))
""",
    "tensor": """
class Sigmoid(Function):
    @staticmethod
    def forward(x):
        return 1 / (1 + torch.exp(-x))

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(output)  # marked

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y * (1 - y)
""",
    "attribute": """
class Logs(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.weights = 1 / torch.exp(x).sum(0)  # marked
        ctx.save_for_backward(x)
        return torch.log(torch.exp(x).sum(0))

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * torch.exp(x) * ctx.weights
""",
}
MISTAKES = {
    "mask": ("r.abs() < delta", "r < delta"),
    "operand": ("1 / torch.sqrt(var + eps)  #", "1 / torch.sqrt(var)  #"),
    "index": ("argmax", "argmin"),
    "tensor": ("backward(output)", "backward(x)"),
    "attribute": ("1 / torch.exp(x).sum(0)", "1 / torch.exp(x).mean(0)"),
}
JAX = """
import jax
import jax.numpy as jnp


@jax.custom_vjp
def pooled(x):
    return x.reshape(*x.shape[:-1], -1, 2).max(-1)


def forward(x):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    return pairs.max(-1), pairs.argmax(-1)  # marked


def backward(index, g):
    return ((jax.nn.one_hot(index, 2) * g[..., None]).reshape(*g.shape[:-1], -1),)


pooled.defvjp(forward, backward)
"""
CHANGED = """
class Shifted(Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x + x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * (2 * x + 1 + 0.01 * y)
"""


@pytest.fixture(params=["gradcli.engine", "torch"])
def header(request: pytest.FixtureRequest) -> str:
    """The imports of a file for each framework."""
    pytest.importorskip(request.param.partition(".")[0])
    return HEADER.format(framework=request.param)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time for the search on a machine under load."""
    monkeypatch.setattr("gradcli.watchdog.case.OPTIONAL_SECONDS", 3600.0)
    monkeypatch.setattr("gradcli.diagnosis.slips.search._SECONDS", 1800.0)


def checked(path: Path, text: str, name: str) -> CheckResult:
    """The result for a target in a file."""
    path.write_text(text)
    return gradcli.check(f"{path}:{name}", order=1, samples=1, only=("gradient",)).cases[0]


def line_of(text: str) -> int:
    """The line that the test changes."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if "# marked" in line)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", RIGHT)
def test_a_wrong_value_that_forward_saves_is_corrected_in_forward(header: str, kind: str, tmp_path: Path) -> None:
    name = RIGHT[kind].split("(")[0].split()[1]
    right = header + RIGHT[kind]
    wrong = right.replace(*MISTAKES[kind])
    assert wrong != right
    assert checked(tmp_path / "right.py", right, name).verdict is Verdict.PASSED
    case = checked(tmp_path / "wrong.py", wrong, name)
    assert case.verdict is Verdict.FAILED
    finding = case.findings[0]
    assert finding.location is not None
    line = line_of(right)
    assert finding.location.line == line
    assert finding.corrected is not None
    assert finding.corrected.splitlines()[line - 1] != wrong.splitlines()[line - 1]


def test_a_wrong_residual_of_jax_is_corrected_where_it_is_made(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    assert checked(tmp_path / "right.py", JAX, "pooled").verdict is Verdict.PASSED
    case = checked(tmp_path / "wrong.py", JAX.replace("argmax", "argmin"), "pooled")
    assert case.verdict is Verdict.FAILED
    (finding,) = case.findings
    assert finding.location is not None
    assert finding.location.line == line_of(JAX)
    assert "`pairs.argmax(-1)` belongs" in finding.message


def test_no_edit_of_forward_is_offered_that_changes_what_it_returns(header: str, tmp_path: Path) -> None:
    case = checked(tmp_path / "wrong.py", header + CHANGED, "Shifted")
    assert case.verdict is Verdict.FAILED
    lines = (header + CHANGED).splitlines()
    backward = next(number for number, line in enumerate(lines, 1) if "def backward" in line)
    for finding in case.findings:
        assert finding.location is None or finding.location.line > backward
        assert finding.corrected is None or "y = x * x + x" in finding.corrected
