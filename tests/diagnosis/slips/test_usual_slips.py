"""Usual slips are named where they are made: a sum that includes the entry itself, a mask left out, a sign turned."""

from pathlib import Path

import pytest

import gradcli
from gradcli.verdict import Verdict

pytestmark = pytest.mark.usefixtures("unshrunk")
HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
WAITING = """
class Waiting(Function):
    @staticmethod
    def forward(ctx, rate, value):
        ctx.save_for_backward(rate, value)
        past = rate.cumsum(1) - rate
        return (torch.exp(-past) * (1 - torch.exp(-rate)) * value).sum(1)

    @staticmethod
    def backward(ctx, g):
        rate, value = ctx.saved_tensors
        reached = torch.exp(rate - rate.cumsum(1))
        part = reached * (1 - torch.exp(-rate))
        gain = part * value * g[:, None]
        later = gain.flip(1).cumsum(1).flip(1) - gain  # marked
        return reached * torch.exp(-rate) * value * g[:, None] - later, part * g[:, None]
"""
READING = """
class Reading(Function):
    @staticmethod
    def forward(ctx, score, value, hidden):
        weight = torch.softmax(score.masked_fill(hidden, -1e9), -1)
        ctx.save_for_backward(score, value, hidden)
        return (weight * value).sum(-1)

    @staticmethod
    def backward(ctx, g):
        score, value, hidden = ctx.saved_tensors
        weight = torch.softmax(score.masked_fill(hidden, -1e9), -1)  # marked
        each = g[:, None] * value
        return weight * (each - (weight * each).sum(-1, keepdim=True)), g[:, None] * weight, None
"""
AGREEING = """
class Agreeing(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        eye = torch.eye(a.shape[1], dtype=a.dtype)
        return ((a.T @ b - eye) ** 2).sum()

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        eye = torch.eye(a.shape[1], dtype=a.dtype)
        error = 2 * g * (a.T @ b - eye)
        return b @ error.T, a @ error  # marked
"""
SMOOTHED = """
class Smoothed(Function):
    @staticmethod
    def forward(ctx, z, scale=0.1, mix=0.05):
        ctx.save_for_backward(z)
        ctx.scale, ctx.mix = scale, mix
        return torch.log(1 + torch.exp(-scale * z)) + mix * scale * z

    @staticmethod
    def backward(ctx, g):
        (z,) = ctx.saved_tensors
        return -g * ctx.scale * (1 / (1 + torch.exp(ctx.scale * z)) - ctx.mix), None, None  # marked
"""
ROOT = """
class Root(Function):
    @staticmethod
    def forward(ctx, a, b, c):
        inside = b * b - 4 * a * c
        real = inside > 0
        width = torch.where(real, inside, torch.ones_like(inside)).sqrt()
        ctx.save_for_backward(a, b, c, width, real)  # marked
        return torch.where(real, (-b - width) / (2 * a), torch.zeros_like(a))

    @staticmethod
    def backward(ctx, g):
        a, b, c, width, real = ctx.saved_tensors
        g = g * real / a
        root = (-b - width) / (2 * a)
        along = g * a / width
        return along * root * root, along * root, along * 1
"""
CHAIN = """
class Chain(Function):
    @staticmethod
    def forward(ctx, x, keep):
        state = [x[0]]
        for t in range(1, len(x)):
            state.append(keep[t] * state[t - 1] + x[t])
        ctx.save_for_backward(keep, torch.stack(state))
        return torch.stack(state)

    @staticmethod
    def backward(ctx, g):
        keep, state = ctx.saved_tensors
        of_x, of_keep = torch.zeros_like(state), torch.zeros_like(keep)
        along = g[-1]
        of_x[-1] += along
        for t in range(len(g) - 2, -1, -1):
            of_keep[t + 1] += along * state[t]
            along = g[t] + keep[t + 1] * along  # marked
            of_x[t] += along
        return of_x, of_keep
"""
SPECTRUM = """
class Spectrum(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.fft.ifft(torch.fft.fft(x) * torch.fft.fft(w)).real

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        of_g, of_w = torch.fft.fft(g + 0j), torch.fft.fft(w + 0j)
        of_x = torch.fft.fft(x + 0j)
        back = torch.fft.ifft(of_g * of_w.conj()).real
        return back, torch.fft.ifft(of_g * of_x.conj()).real  # marked
"""
FUNCTIONS = {
    "Chain": (CHAIN, "keep[t + 1] * along", "keep[t] * along", "`g[t] + keep[t + 1] * along` belongs"),
    "Spectrum": (SPECTRUM, "of_x.conj()", "of_x", "`torch.fft.ifft(of_g * of_x.conj()).real` belongs"),
    "Waiting": (WAITING, ".flip(1) - gain", ".flip(1)", "`gain.flip(1).cumsum(1).flip(1) - gain` belongs"),
    "Reading": (
        READING,
        "score.masked_fill(hidden, -1e9), -1)  #",
        "score, -1)  #",
        "`torch.softmax(score.masked_fill(hidden, -1000000000.0), -1)` belongs",
    ),
    "Agreeing": (AGREEING, "b @ error.T", "b @ error", "`b @ error.T` belongs"),
    "Smoothed": (SMOOTHED, "z)) - ctx.mix)", "z)))", "lacks the term `-ctx.mix`"),
    "Root": (
        ROOT,
        "(-b - width) / (2 * a)\n        along = g",
        "(-b + width) / (2 * a)\n        along = -g",
        "`ctx.save_for_backward(a, b, c, -width, real)` belongs",
    ),
}
INPUTS: dict[str, dict[str, object]] = {
    "Waiting": {"rate": {"shape": [3, 5], "domain": "positive"}, "value": {"shape": [3, 5]}},
    "Reading": {
        "score": {"shape": [3, 4]},
        "value": {"shape": [3, 4]},
        "hidden": {"shape": [3, 4], "domain": "boolean"},
    },
    "Chain": {"x": {"shape": [5]}, "keep": {"shape": [5]}},
    "Spectrum": {"x": {"shape": [5]}, "w": {"shape": [5]}},
    "Agreeing": {"a": {"shape": [3, 4]}, "b": {"shape": [3, 4]}},
    "Smoothed": {"z": {"shape": [3, 4]}},
    "Root": {name: {"shape": [3, 4]} for name in "abc"},
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_slip_is_named_at_its_line(name: str, framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework.partition(".")[0])
    if name == "Spectrum" and framework != "torch":
        pytest.skip("the engine has no Fourier transform")
    text, old, new, says = FUNCTIONS[name]
    right = HEADER.replace("{framework}", framework) + text
    wrong = right.replace(old, new)
    assert wrong != right
    cases = []
    for kind, source in (("right", right), ("wrong", wrong)):
        file = tmp_path / f"{kind}.py"
        file.write_text(source)
        made = gradcli.check(f"{file}:{name}", INPUTS[name], order=1, samples=1, only=["gradient"])
        cases += made.cases
    assert [case.verdict for case in cases] == [Verdict.PASSED, Verdict.FAILED]
    marked = next(n for n, line in enumerate(right.splitlines(), 1) if "# marked" in line)
    finding = cases[1].findings[0]
    assert says in finding.message
    assert finding.location is not None
    assert finding.location.line == marked
