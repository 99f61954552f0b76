"""Pointers to the rows of a compressed matrix: they do not decrease, and the last is the number of entries."""

import numpy as np
import pytest

import gradcli
from gradcli.inputs.drawing import DRAWING
from gradcli.verdict import Verdict

IMPORTS = "import {framework} as torch\nfrom {framework}.autograd import Function\n"
SUMS = """

class Sums(Function):
    @staticmethod
    def forward(ctx, entries, {name}):
        counts = {name}[1:] - {name}[:-1]
        rows = torch.repeat_interleave(torch.arange(counts.shape[0]), counts)
        ctx.save_for_backward(rows, counts)
        out = torch.zeros(counts.shape[0], entries.shape[1], dtype=entries.dtype)
        return out.index_add(0, rows, entries)

    @staticmethod
    def backward(ctx, g):
        rows, counts = ctx.saved_tensors
        return {gradient}, None
"""
PRODUCT = """

class Product(Function):
    @staticmethod
    def forward(ctx, row_ptr, col, data, v):
        rows = torch.repeat_interleave(torch.arange(len(row_ptr) - 1), row_ptr[1:] - row_ptr[:-1])
        ctx.save_for_backward(rows, col, data, v)
        return torch.zeros(len(row_ptr) - 1, dtype=v.dtype).index_add(0, rows, data * v[col])

    @staticmethod
    def backward(ctx, g):
        rows, col, data, v = ctx.saved_tensors
        return None, None, g[rows] * v[col], {gradient}
"""


def checked(file, text, name):
    file.write_text(text)
    (case,) = gradcli.check(f"{file}:{name}", order=1, shrink=False).cases
    return case


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["indptr", "cu_seqlens", "crow_indices", "batch_ptr", "offsets"])
@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [("g[rows]", Verdict.PASSED), ("g[rows] / counts.clamp(min=1)[rows].unsqueeze(1)", Verdict.FAILED)],
)
@pytest.mark.usefixtures("unexplained")
def test_sums_of_rows_are_checked_at_pointers(name, gradient, verdict, tmp_path):
    text = IMPORTS.format(framework="gradcli.engine") + SUMS.format(name=name, gradient=gradient)
    case = checked(tmp_path / "written.py", text, "Sums")
    assert case.verdict is verdict, case
    assert [spec.domain for spec in case.inputs] == ["normal", "pointers"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(
    ("gradient", "verdict"),
    [
        ("torch.zeros_like(v).index_add(0, col, data * g[rows])", Verdict.PASSED),
        ("torch.zeros_like(v).index_add(0, col, g[rows])", Verdict.FAILED),
    ],
)
@pytest.mark.usefixtures("unexplained")
def test_a_product_with_a_compressed_matrix_is_checked(framework, gradient, verdict, tmp_path):
    if framework == "torch":
        pytest.importorskip("torch")
    text = IMPORTS.format(framework=framework) + PRODUCT.format(gradient=gradient)
    case = checked(tmp_path / "written.py", text, "Product")
    assert case.verdict is verdict, case
    assert [spec.domain for spec in case.inputs] == ["pointers", "indices", "normal", "normal"]


PADDED = """

class Padded(Function):
    @staticmethod
    def forward(ctx, packed, {name}):
        if sum({name}) != packed.shape[0]:
            raise ValueError("the parts have to be all of it")
        ctx.parts = {name}
        out = torch.zeros(len({name}), max({name}), packed.shape[1], dtype=packed.dtype)
        for row, part in enumerate(torch.split(packed, {name})):
            out[row, : part.shape[0]] = part
        return out

    @staticmethod
    def backward(ctx, g):
        return torch.cat([g[row, {ends}] for row, n in enumerate(ctx.parts)]), None
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["lens", "split_sizes"])
@pytest.mark.parametrize(("ends", "verdict"), [(":n", Verdict.PASSED), ("-n:", Verdict.FAILED)])
@pytest.mark.usefixtures("unexplained")
def test_parts_of_an_axis_are_of_unequal_length(name, ends, verdict, tmp_path):
    """The last entries of a row that is full are its first ones."""
    text = IMPORTS.format(framework="gradcli.engine") + PADDED.format(name=name, ends=ends)
    assert checked(tmp_path / "written.py", text, "Padded").verdict is verdict


MEANS = """

class Means(Function):
    @staticmethod
    def forward(ctx, entries, offsets):
        counts = offsets[1:] - offsets[:-1]
        rows = torch.repeat_interleave(torch.arange(counts.shape[0]), counts)
        ctx.save_for_backward(rows, counts.clamp(min=1).double())
        sums = torch.zeros(counts.shape[0], entries.shape[1], dtype=entries.dtype).index_add(0, rows, entries)
        return sums / counts.clamp(min=1)[:, None]

    @staticmethod
    def backward(ctx, g):
        rows, counts = ctx.saved_tensors
        return {gradient}, None
"""


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("gradient", "wrong"), [("g[rows] / counts[rows][:, None]", []), ("g[rows]", ["entries"])])
def test_a_forgotten_size_of_a_part_is_no_constant_factor(seed, gradient, wrong, tmp_path):
    file = tmp_path / "written.py"
    file.write_text(IMPORTS.format(framework="gradcli.engine") + MEANS.format(gradient=gradient))
    (case,) = gradcli.check(f"{file}:Means", order=1, seed=seed).cases
    assert [finding.input for finding in case.findings] == wrong
    assert not any("everywhere" in finding.message for finding in case.findings), case.findings


@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize("high", [0, 2, 3, 4, 6])
def test_parts_have_unequal_sizes(parts, high):
    drawn = DRAWING["pointers"](np.random.default_rng(0), (50, parts + 1), {"high": high})
    counts = np.diff(drawn)
    assert (drawn[:, 0] == 0).all()
    assert (drawn[:, -1] == high).all()
    assert (counts >= 0).all()
    assert all(len(set(row[row > 0])) > 1 for row in counts) is (parts > 1 and high > 2)
