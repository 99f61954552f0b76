"""Blocks longer than inferred axes: the second one is reached, so that a mistake there fails."""

from types import SimpleNamespace
from typing import Any

import pytest

import gradcli
from gradcli.checks.batch.blocks import block_sizes
from gradcli.verdict import Verdict

BLOCK, OTHER = 16, 24


class Sizes:
    tile = 20


def in_range(ctx: Any, x: Any) -> Any:
    return [x[j] for j in range(0, len(x), BLOCK)]


def in_slices(ctx: Any, x: Any, j: int) -> Any:
    return x[:, j : min(j + OTHER, 9)], x[j * BLOCK : (j + 1) * BLOCK]


def in_slice_call(ctx: Any, x: Any, j: int) -> Any:
    size = 12
    return x[slice(j, size + j)]


def in_split(ctx: Any, x: Any) -> Any:
    return x.split(Sizes.tile, dim=1), x.narrow(1, 0, min(OTHER, len(x)))


def by_default(ctx: Any, x: Any, block_size: int = 32, count: int = 50) -> Any:
    return x


def in_a_loop(ctx: Any, x: Any) -> Any:
    j = 0
    while j < len(x):
        j += BLOCK
    return j


def kept(ctx: Any, x: Any) -> Any:
    ctx.block = OTHER
    return x


def reads_kept(ctx: Any, g: Any) -> Any:
    return [g[j : j + ctx.block] for j in range(0, len(g), ctx.block)]


def calls_another(ctx: Any, x: Any) -> Any:
    return in_range(ctx, x)


def by_remainder(ctx: Any, x: Any) -> Any:
    return [step for step in range(len(x)) if (step + 1) % 8 == 0]


def gives_a_number(ctx: Any, x: Any) -> Any:
    return cut(x, 24)


def cut(x: Any, block: int) -> Any:
    return [step % block for step in range(len(x))]


def without(ctx: Any, x: Any) -> Any:
    return x[1:3], x[: len(x) // 2], [x[i : i + 1] for i in range(len(x))], range(0, 400, 200)


@pytest.mark.parametrize(
    ("forward", "backward", "sizes"),
    [
        (in_range, None, (16,)),
        (in_slices, None, (24, 16)),
        (in_slice_call, None, (12,)),
        (in_split, None, (24, 20)),
        (by_default, None, (32,)),
        (in_a_loop, None, (16,)),
        (kept, reads_kept, (24,)),
        (calls_another, None, (16,)),
        (by_remainder, None, (8,)),
        (gives_a_number, None, (24,)),
        (without, in_range, (16,)),
        (without, None, ()),
        (None, None, ()),
    ],
)
def test_what_is_a_block(forward: Any, backward: Any, sizes: tuple[int, ...]) -> None:
    info: Any = SimpleNamespace(forward=forward, backward=backward, inner=False)
    assert block_sizes(info) == sizes


TILED = """
import {framework} as torch
from {framework}.autograd import Function

BLOCK = 16


def tiles(n, size):
    return range(0, n, size)


class Tiled(Function):
    size = BLOCK

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        total = torch.zeros_like(x[:, 0])
        for j in tiles(x.shape[1], Tiled.size):
            total = total + x[:, j : j + Tiled.size].sin().sum(1)
        return total

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        d = torch.empty_like(x)
        for j in tiles(x.shape[1], Tiled.size):
            part = slice(j, j + Tiled.size)
            d[:, part] = {factor} * g[:, None] * x[:, part].cos()
        return d
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        ("1", Verdict.PASSED),
        ("(1 if j == 0 else 1.01)", Verdict.FAILED),
        ("(1 if j == 0 else 0)", Verdict.FAILED),
        ("(1 if j < 32 else 2)", Verdict.FAILED),
        ("(0.5 if j == 16 else 1)", Verdict.FAILED),
    ],
)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_the_second_block(tmp_path: Any, framework: str, factor: str, verdict: Verdict) -> None:
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "tiled.py"
    file.write_text(TILED.format(framework=framework, factor=factor))
    (case,) = gradcli.check(f"{file}:Tiled", order=1, shrink=False).cases
    assert case.verdict is verdict, (case.findings, case.error)
    failed = [e.check for e in case.evidence if e.verdict is Verdict.FAILED]
    assert failed == ([] if verdict is Verdict.PASSED else ["sizes"])
    assert all("x of shape [3, 33]" in f.message for f in case.findings)


def test_sizes_that_the_user_gave_make_it_a_note(tmp_path: Any) -> None:
    file = tmp_path / "tiled.py"
    file.write_text(TILED.format(framework="gradcli.engine", factor="(1 if j == 0 else 0)"))
    (case,) = gradcli.check(f"{file}:Tiled", {"x": {"shape": [3, 4]}}, order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED
    assert any("because you gave the sizes" in note for note in case.notes)


SCAN = """
import {framework} as torch
from {framework}.autograd import Function


class Scan(Function):
    @staticmethod
    def forward(ctx, a, x):
        h, each = torch.zeros_like(x[0]), []
        for t in range(x.shape[0]):
            h = a[t] * h + x[t]
            each.append(h)
        h = torch.stack(each)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, g):
        return Scan.reverse(*ctx.saved_tensors, g, {block})

    @staticmethod
    def reverse(a, h, g, block):
        carried, of_a, of_x = torch.zeros_like(g[0]), [], []
        for t in range(len(g) - 1, -1, -1):
            if (t + 1) % block == 0:
                carried = torch.zeros_like(carried)
            carried = g[t] + (a[t + 1] * carried if t + 1 < len(g) else 0)
            of_x.append(carried)
            of_a.append(carried * h[t - 1] if t > 0 else 0 * carried)
        return torch.stack(of_a[::-1]), torch.stack(of_x[::-1])
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("block", "verdict"), [(10**9, Verdict.PASSED), (5, Verdict.FAILED)])
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_scan_that_loses_what_it_carries_from_block_to_block(
    tmp_path: Any, framework: str, block: int, verdict: Verdict
) -> None:
    if framework == "torch":
        pytest.importorskip("torch")
    file = tmp_path / "scan.py"
    file.write_text(SCAN.format(framework=framework, block=block))
    (case,) = gradcli.check(f"{file}:Scan", order=1, shrink=False).cases
    assert case.verdict is verdict, case.findings
    if verdict is Verdict.FAILED:
        assert f"of shape [{2 * block + 1}, 4]" in case.findings[0].message


def test_a_name_around_a_function_may_have_no_value_yet() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        return [x[i : i + 4] for i in range(0, len(x), 4)] if unknown() else x

    block_size = 4  # a block for those that come before
    info: Any = SimpleNamespace(forward=forward, backward=None, inner=False)
    assert block_sizes(info) == (block_size,)
    unknown = bool
    assert unknown() is False
