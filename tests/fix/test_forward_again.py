"""A backward that runs forward again: with other values besides tensors, two outputs, and one tensor passed twice."""

import importlib
import runpy

import numpy as np
import pytest

from benchmarks.fix.corpus import HEADERS, Specimen
from benchmarks.fix.run import patched

MODES = """class Own(Function):
    @staticmethod
    def forward(ctx, x, reduction="sum"):
        ctx.save_for_backward(x)
        ctx.mode = reduction
        powers = torch.sin(x) * x**3
        return powers.sum() if reduction == "sum" else powers.mean()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (torch.cos(x) * x**3 + 3 * x**2 * torch.sin(x)) / x.numel(), None
"""
PARTS = """class Own(Function):
    @staticmethod
    def forward(ctx, x, y, rate):
        ctx.save_for_backward(y)
        ctx.rate = rate
        r = torch.sqrt(1 + x * x + y * y)
        return r * rate, torch.exp(-r) * torch.cos(x) / (1 + r)

    @staticmethod
    def backward(ctx, g, h):
        (y,) = ctx.saved_tensors
        return g * y, h * y, None
"""
BRANCHING = """class Own(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sigmoid()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        y = x.sigmoid()
        if x.dtype == torch.float16:
            return OF_HALF
        return g * y * (1 - y)
"""
FRAMEWORKS = ("engine", "torch")


def patch_of(text: str, framework: str, folder, *, recomputes: bool = True):
    pytest.importorskip(module_name(framework), reason="the Function is written on it")
    whole = HEADERS[framework] + text
    found = Specimen(f"own-{framework}", "", framework, "Own", whole, whole, frozenset(), inputs="")
    result, _ = patched(found, folder)
    assert result.patch is not None, result.reason
    assert result.patch.recomputes is recomputes
    return result.patch


def module_name(framework: str) -> str:
    return {"engine": "gradcli.engine"}.get(framework, framework)


def module(framework: str):
    return importlib.import_module(module_name(framework))


def function_in(patch, folder):
    (folder / "patched.py").write_text(patch.after, encoding="utf-8")
    return runpy.run_path(str(folder / "patched.py"))["Own"]


@pytest.mark.parametrize("framework", FRAMEWORKS[:1])
def test_a_mode_that_backward_ignores(framework, tmp_path, monkeypatch):
    """No formula of this backward is right for both modes, so the search would last as long as it may."""
    monkeypatch.setattr("benchmarks.fix.run.SECONDS", 3.0)
    patch, t = patch_of(MODES, framework, tmp_path), module(framework)
    assert "zip([x, ctx.mode], needed)" in patch.after
    own = function_in(patch, tmp_path)
    for mode in ("sum", "mean"):
        x = t.tensor(np.array([0.3, -1.2, 2.0]), requires_grad=True)
        (gradient,) = t.autograd.grad(own.apply(x, mode), x)
        powers = t.sin(x) * x**3
        (expected,) = t.autograd.grad(powers.sum() if mode == "sum" else powers.mean(), x)
        np.testing.assert_allclose(gradient.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_two_outputs_of_one_tensor_that_is_passed_twice(framework, tmp_path):
    """The gradients of the two arguments are added once, not twice, at both orders."""
    patch, t = patch_of(PARTS, framework, tmp_path), module(framework)
    assert "ctx.save_for_backward(x, y)" in patch.after
    own = function_in(patch, tmp_path)
    x = t.tensor(np.array([0.3, -1.2, 2.0]), requires_grad=True)

    def through(one, two):
        (first,) = t.autograd.grad((one * two.cos()).sum(), x, create_graph=True)
        (second,) = t.autograd.grad((first * first).sum(), x)
        return first.detach().numpy(), second.detach().numpy()

    r = t.sqrt(1 + x * x + x * x)
    expected = through(r * 0.7, t.exp(-r) * t.cos(x) / (1 + r))
    for found, right in zip(through(*own.apply(x, x, 0.7)), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-10)


LABELLED = """class Own(Function):
    @staticmethod
    def forward(ctx, x, labels, weight=2.0):
        \"\"\"x: (n, k) numbers; labels: (n,) indices in [0, k)\"\"\"
        ctx.save_for_backward(x, labels)
        chosen = torch.exp(torch.sin(x)) * torch.cos(weight * x)
        return chosen.gather(1, labels[:, None])[:, 0] * x[:, 0]

    @staticmethod
    def backward(ctx, g):
        x, labels = ctx.saved_tensors
        return g[:, None] * x, None, None
"""


@pytest.mark.parametrize("defaults", ["labels, weight=2.0", "labels"])
def test_no_gradient_is_asked_for_labels_and_defaults_are_kept(defaults, tmp_path):
    text = LABELLED.replace("labels, weight=2.0", defaults)
    if "weight" not in defaults:
        text = text.replace("weight * x", "2 * x").replace("None, None", "None")
    added = patch_of(text, "engine", tmp_path).after
    assert ("ctx.weight = weight" in added) is ("weight" in defaults)


@pytest.mark.parametrize(("of_half", "recomputes"), [("g * y", True), ("2 * g * y * (1 - y)", False)])
def test_a_patch_is_right_in_the_precisions_that_the_source_compares(of_half, recomputes, tmp_path):
    """With `~g * y` backward raises in half precision, which a check takes for a refusal."""
    patch = patch_of(BRANCHING.replace("OF_HALF", of_half), "torch", tmp_path, recomputes=recomputes)
    torch = module("torch")
    x = torch.tensor([0.5, -1.0], dtype=torch.float16, requires_grad=True)
    y = function_in(patch, tmp_path).apply(x)
    y.sum().backward()
    assert torch.allclose(x.grad, y * (1 - y), atol=1e-2)
