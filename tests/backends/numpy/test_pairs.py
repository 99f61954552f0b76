"""A forward function and the backward function written for it: arguments bound, right ones pass, wrong ones fail."""

import textwrap

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.__main__ import main
from gradcli.backends.tensor.pairs import Pair, spread
from gradcli.errors import UsageError
from gradcli.verdict import Verdict

TORCH = """
import torch

def layer_norm(x, weight, bias, eps: float = 1e-5):
    mean = x.mean(-1, keepdim=True)
    rstd = ((x - mean).pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (x - mean) * rstd * weight + bias, mean, rstd

def right(grad_out, x, mean, rstd, weight):
    h, g = (x - mean) * rstd, grad_out * weight
    dx = rstd * (g - g.mean(-1, keepdim=True) - h * (g * h).mean(-1, keepdim=True))
    return dx, (grad_out * h).sum(0), grad_out.sum(0)

def wrong(grad_out, x, mean, rstd, weight):
    dx, dw, db = right(grad_out, x, mean, rstd, weight)
    return dx, 1.001 * dw, db

def too_few(grad_out, x, mean, rstd, weight):
    return right(grad_out, x, mean, rstd, weight)[:2]
"""
JAX = """
import jax.numpy as jnp

def softmax(x, axis: int = -1):
    e = jnp.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)

def right(g, x, axis):
    y = softmax(x, axis)
    return y * (g - (g * y).sum(axis, keepdims=True))

def wrong(g, x, axis):
    return softmax(x, axis) * g
"""
ENGINE = """
from gradcli import engine

def scale(x, w):
    return x * w.exp()

def right(grad_output, a, b):
    return grad_output * b.exp(), (grad_output * a * b.exp()).sum(0)

def wrong(grad_output, a, b):
    return grad_output * a, (grad_output * a * b.exp()).sum(0)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a source and return what names an object in it."""

    def written(name: str, source: str):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        return lambda attribute: f"{tmp_path / name}.py:{attribute}"

    return written


def finding(report):
    (case,) = report.cases
    return case.verdict, [found.kind.value for found in case.findings]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("framework", "source", "forward", "saved", "kind"),
    [
        ("torch", TORCH, "layer_norm", ("mean", "rstd"), "wrong-factor"),
        ("torch", TORCH, "layer_norm", ("x", "mean", "rstd", "weight"), "wrong-factor"),
        ("jax", JAX, "softmax", (), "missing-term"),
        ("engine", ENGINE, "scale", (), None),
    ],
)
def test_a_right_one_passes_and_a_wrong_one_fails(module, framework, source, forward, saved, kind):
    pytest.importorskip("gradcli.engine" if framework == "engine" else framework)
    named = module(f"apart_{framework}_{len(saved)}", source)
    inputs = {"x": np.linspace(-1.0, 2.0, 8).reshape(2, 4)}
    further = {"layer_norm": ("weight", "bias"), "scale": ("w",)}
    inputs |= {name: np.linspace(0.5, 1.0, 4) for name in further.get(forward, ())}
    options = {"saved": saved, "samples": 1, "shrink": False, "only": ("returns", "gradient")}
    passed, none = finding(gradcli.check(named(forward), inputs, grad=named("right"), **options))
    assert (passed, none) == (Verdict.PASSED, [])
    failed, kinds = finding(gradcli.check(named(forward), inputs, grad=named("wrong"), **options))
    assert failed is Verdict.FAILED
    assert kind is None or kind in kinds


def test_a_backward_that_returns_too_few_gradients_fails(module):
    pytest.importorskip("torch")
    named = module("apart_few", TORCH)
    inputs = {"x": np.ones((2, 4)), "weight": np.ones(4), "bias": np.ones(4)}
    report = gradcli.check(
        named("layer_norm"), inputs, grad=named("too_few"), saved=("mean", "rstd"), samples=1, shrink=False
    )
    assert finding(report)[0] is Verdict.FAILED


def forward(x, weight, eps=0.1):
    return x + weight, "mean"


@pytest.mark.parametrize(
    ("backward", "saved", "expected"),
    [
        (lambda g, a, b: (g, a, b), (), ("g", "x", "w")),
        (lambda weight, x, g: (weight, x, g), (), ("w", "x", "g")),
        (lambda g, mean, x: (g, mean, x), ("mean",), ("g", "m", "x")),
        (lambda g, *others: (g, *others), ("weight", "mean"), ("g", "w", "m")),
        (lambda g, *others: (g, *others), (), ("g", "x", "w")),
        (lambda dy, m, y: (dy, m, y), ("mean", "x"), ("g", "m", "x")),
    ],
)
def test_arguments_are_bound_by_name_and_else_by_position(backward, saved, expected):
    pair = Pair(forward=forward, backward=backward, saved=saved)
    extra = pair.split(forward("x", "w"))[1] if "mean" in saved else ()
    assert pair.call_backward(["g"], ["x", "w"], ["m"] * len(extra)) == expected


def test_too_few_saved_values_are_refused():
    pair = Pair(forward=forward, backward=forward, saved=("mean", "rstd"))
    with pytest.raises(UsageError, match="its outputs and then mean, rstd, got 2 values"):
        pair.split(forward("x", "w"))


def test_a_saved_value_that_was_not_named_is_no_gradient():
    pair = Pair(forward=forward, backward=lambda grad_out, mean, x: (grad_out, mean, x))
    with pytest.raises(UsageError, match="give --saved mean"):
        pair.call_backward(["g1", "g2"], ["x", "w"], [])
    pair = Pair(forward=forward, backward=lambda grad_out, dmean, x: (grad_out, dmean, x))
    assert pair.call_backward(["g1", "g2"], ["x", "w"], []) == ("g1", "g2", "x")


def test_a_spec_names_saved_values(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "apart_spec.py").write_text(TORCH)
    (tmp_path / "a.yaml").write_text(
        "target: apart_spec.py:layer_norm\ngrad: apart_spec.py:right\nsaved: [mean, rstd]\ndefaults: {samples: 1}\n"
        "cases:\n  - inputs: &all {x: {shape: [2, 3]}, weight: {shape: [3]}, bias: {shape: [3]}}\n"
        "  - {name: wrong, grad: apart_spec.py:wrong, expect: failed, inputs: *all}\n"
    )
    report = gradcli.check(str(tmp_path / "a.yaml"), shrink=False)
    assert [case.verdict for case in report.cases] == [Verdict.PASSED, Verdict.PASSED]


def test_gradients_are_spread_over_the_floating_tensors():
    assert spread(("a", "b"), [True, False, True]) == ("a", None, "b")
    assert spread("a", [False, True]) == (None, "a")
    assert spread(("a", "b", "c"), [True, False, True]) == ("a", "b", "c")
    assert spread(("a",), [True, True]) == ("a",)


def test_saved_values_are_refused_for_numpy():
    with pytest.raises(UsageError, match=r"--saved is for functions of PyTorch, JAX or gradcli\.engine"):
        gradcli.check(np.sin, (np.ones(3),), grad=np.cos, saved="y")


def scaled(x, w):
    y = engine.tanh(x)
    return y * w, {"y": y}


def scaled_backward(g, state, w):
    y = state["y"]
    return g * w * (1 - y * y), (g * y).sum(0)


def scaled_backward_of_half(g, state, w):
    y = state["y"]
    return g * w * (1 - y * y), (g * y).sum(0) / 2


@pytest.mark.parametrize(("backward", "verdict"), [(scaled_backward, "passed"), (scaled_backward_of_half, "failed")])
def test_a_saved_value_need_not_be_a_tensor(backward, verdict):
    generator = np.random.default_rng(3)
    inputs = tuple(engine.tensor(generator.normal(size=size), requires_grad=True) for size in ((3, 4), (4,)))
    report = gradcli.check(scaled, inputs, grad=backward, saved=("state", "w"), shrink=False)
    (case,) = report.cases
    assert (case.verdict.value, case.error) == (verdict, None)
    assert {finding.input for finding in case.findings} == ({"w"} if verdict == "failed" else set())


def test_saved_values_without_a_backward_are_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(UsageError, match="saved lists state as parameters of a backward function, but no backward"):
        gradcli.check(scaled, (np.ones((2, 2)), np.ones(2)), saved=("state",))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alone.py").write_text("def cube(x):\n    return x**3\n")
    (tmp_path / "alone.yaml").write_text("target: alone.py:cube\nsaved: [y]\n")
    for given in (["alone.py:cube", "--saved", "y"], ["alone.yaml"]):
        monkeypatch.setattr("sys.argv", ["gradcli", "check", "--in-process", *given])
        assert main() == 2
        assert "add --grad MODULE:BACKWARD" in capsys.readouterr().err


UNFIT = """
def affine(x, gain, bias):
    return x * gain + bias

def right(g, x, gain):
    return g * gain, (g * x).sum(0), g.sum()

def unfit(g, x, gains):
    return right(g, x, gains)

def more(g, x, gain, bias, rate):
    return right(g, x, gain)
"""


SIZES = ("-i", "x=3x4", "-i", "gain=4", "-i", "bias=scalar")


@pytest.mark.parametrize(("framework", "given"), [("torch", ()), ("torch", SIZES), ("jax", SIZES)])
@pytest.mark.parametrize(("backward", "code"), [("right", 0), ("unfit", 2), ("more", 2)])
def test_a_backward_whose_parameters_fit_nothing_is_no_error_of_the_target(
    tmp_path, monkeypatch, capsys, framework, given, backward, code
):
    pytest.importorskip(framework)
    monkeypatch.chdir(tmp_path)
    name = f"unfit_{framework}"
    (tmp_path / f"{name}.py").write_text(f"import {framework}\n{UNFIT}")
    arguments = [f"{name}.py:affine", "--grad", backward, "--samples", "1", *given]
    monkeypatch.setattr("sys.argv", ["gradcli", "check", "--in-process", *arguments])
    assert main() == code
    assert ("cannot be called as the" in capsys.readouterr().err) == (code == 2)


def test_a_value_saved_twice_is_refused():
    with pytest.raises(UsageError, match="--saved lists state twice"):
        gradcli.check(
            scaled, (np.ones((2, 2)), np.ones(2)), grad=scaled_backward, saved=("state", "state"), shrink=False
        )
