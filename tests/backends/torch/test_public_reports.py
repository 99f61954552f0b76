"""Public reports rebuilt in small on docs/gpu.md: PyTorch's gradcheck errs on both, and the page says what is wrong."""

import re
from pathlib import Path

import pytest

import gradcli
from gradcli.verdict import Verdict
from tests.test_gallery import words
from tools import screens

torch = pytest.importorskip("torch")
PAGE = (Path(__file__).parents[3] / "docs" / "gpu.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _uncorrected():
    """The page shows corrections, which other tests of this folder leave out."""


def listing(name):
    """The names that the listing of a file on the page defines."""
    found = {}
    exec(re.search(rf"<!-- file: {name} -->\n```python\n(.*?)```", PAGE, re.S)[1], found)
    return found


def test_the_page_shows_what_is_printed():
    assert PAGE.count("<!-- screen: ") == 4
    assert words(screens.played(PAGE)) == words(PAGE), "run python -m tools.screens docs/gpu.md"


def edges(dtype, *, size=4, depth=8):
    torch.manual_seed(0)
    three = [torch.randn(size, size, depth, dtype=dtype, requires_grad=True) for _ in range(3)]
    return (*three, torch.randn(size, size, dtype=dtype, requires_grad=True))


@pytest.mark.filterwarnings("ignore:Input #. requires gradient and is not a double")
def test_a_triangle_attention_in_float16_is_only_coarse():
    attention = listing("triangle.py")["TriangleAttention"]
    halves = edges(torch.float16)
    for step in (1e-6, 1e-3):
        assert not torch.autograd.gradcheck(
            attention.apply, halves, eps=step, atol=0.1, rtol=0.1, raise_exception=False, check_batched_grad=False
        )
    assert torch.autograd.gradcheck(attention.apply, edges(torch.float64))
    report = gradcli.check(attention, halves, order=1, shrink=False)
    assert report.verdict is Verdict.PASSED
    assert report.cases[0].resolution < 1e-9
    assert any("backward in float16 gives the same gradient" in note for note in report.cases[0].notes)


@pytest.mark.parametrize(
    ("right", "wrong", "input", "finding"),
    [
        ("ds, q) * ctx.scale", "ds, q)", "k", "wrong-factor"),
        (" - (do * o).sum(-1, keepdim=True)", "", "q", None),
        ("ds.sum(0)", "ds.mean(0)", "bias", "wrong-factor"),
        ("dv = torch.einsum", "dv = -torch.einsum", "v", "wrong-sign"),
    ],
)
def test_a_mistake_in_float16_is_named_at_the_accuracy_of_float64(right, wrong, input, finding):
    page = re.search(r"<!-- file: triangle.py -->\n```python\n(.*?)```", PAGE, re.S)[1]
    assert right in page
    found = {}
    exec(page.replace(right, wrong), found)
    halves = edges(torch.float16, size=3, depth=4)
    case = gradcli.check(found["TriangleAttention"], halves, order=1, shrink=False).cases[0]
    assert case.verdict is Verdict.FAILED
    assert input in {f.input for f in case.findings}
    if finding is not None:
        assert [(f.kind.value, f.input) for f in case.findings] == [(finding, input)]


def test_a_gradient_that_is_wrong_after_cat_is_found_without_cat():
    triple = listing("joined.py")["Triple"]
    x, y = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(triple.apply, (x,))
    weights = torch.randn(2, 6, dtype=torch.float64)
    (torch.cat([triple.apply(x), triple.apply(y)], 1) * weights).sum().backward()
    assert not torch.allclose(x.grad, 3 * weights[:, :3])
    case = gradcli.check(triple, (x.detach().requires_grad_(),), order=1, shrink=False).cases[0]
    assert [(f.kind.value, f.input) for f in case.findings] == [("non-contiguous", "x")]
