"""The line that fills in what is wrong is shown, also where a list is stacked or an array is reshaped."""

from pathlib import Path

import pytest

import gradcli
from gradcli.verdict import Verdict

HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
LISTED = """
class Listed(Function):
    @staticmethod
    def forward(ctx, rate, start):
        level = [start]
        for t in range(len(rate)):
            level.append(torch.sin(level[-1] * rate[t]))
        ctx.save_for_backward(rate, torch.stack(level))
        return torch.stack(level)

    @staticmethod
    def backward(ctx, g):
        rate, level = ctx.saved_tensors
        of_rate, along = [None] * len(rate), g[-1]
        for t in range(len(rate) - 1, -1, -1):
            inner = along * torch.cos(level[t] * rate[t])
            of_rate[t] = {wrong}  # here
            along = g[t] + inner * rate[t]
        return torch.stack(of_rate), along
"""
RESHAPED = """
class Reshaped(Function):
    @staticmethod
    def forward(ctx, table, place):
        ctx.save_for_backward(table, place)
        return table.reshape(-1)[place] ** 2

    @staticmethod
    def backward(ctx, g):
        table, place = ctx.saved_tensors
        of_table = torch.zeros_like(table.reshape(-1))
        slope = 2 * table.reshape(-1)[place] * g
        for n in range(len(place)):
            of_table[place[n]] = {wrong}  # here
        shape = table.shape
        return of_table.reshape(shape), None
"""
COLUMNS = """
class Columns(Function):
    @staticmethod
    def forward(ctx, p):
        ctx.save_for_backward(p)
        x, y, z = p[:, 0], p[:, 1], p[:, 2]
        return x * y * y + torch.sin(z) * torch.exp(y) * y

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        y, z = p[:, 1], p[:, 2]
        of_z = {wrong}  # here
        of_y = g * (2 * p[:, 0] * y + torch.sin(z) * torch.exp(y) * (1 + y))
        of_x = g * y * y
        return torch.stack([of_x, of_y, of_z], -1)
"""
FUNCTIONS = {
    "Listed": (LISTED, "inner * level[t]", "torch.tanh(inner) * level[t].exp()"),
    "Reshaped": (RESHAPED, "of_table[place[n]] + slope[n]", "torch.tanh(slope[n]).exp()"),
    "Columns": (COLUMNS, "g * torch.cos(z) * torch.exp(y) * y", "g * torch.exp(torch.sin(z)) * torch.tanh(y)"),
}
INPUTS = {
    "Listed": {"rate": {"shape": [3]}, "start": {"shape": []}},
    "Reshaped": {"table": {"shape": [3, 4]}, "place": {"shape": [3], "domain": "indices", "high": 12}},
    "Columns": {"p": {"shape": [4, 3]}},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_line_that_fills_in_the_wrong_entries_is_shown(name: str, framework: str, tmp_path: Path) -> None:
    pytest.importorskip(framework.partition(".")[0])
    text, *parts = FUNCTIONS[name]
    cases = []
    for kind, part in zip(("right", "wrong"), parts, strict=True):
        file = tmp_path / f"{kind}.py"
        file.write_text(HEADER.replace("{framework}", framework) + text.replace("{wrong}", part))
        made = gradcli.check(f"{file}:{name}", INPUTS[name], order=1, samples=1, shrink=False, only=["gradient"])
        cases += made.cases
    assert [case.verdict for case in cases] == [Verdict.PASSED, Verdict.FAILED]
    finding = cases[1].findings[0]
    assert finding.location is not None
    assert finding.location.line == next(
        n for n, line in enumerate(file.read_text().splitlines(), 1) if "# here" in line
    )
