"""A gradient that is wrong only where entries are in order fails at drawn inputs; functions of sorted entries pass."""

import numpy as np
import pytest

import gradcli
from gradcli.cases import CheckSpec, InputsFrom
from gradcli.checks.other_points.failing import _in_order_of
from gradcli.inputs.flags import parse_input
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.other_points.planted import function_of


def drawn(target, flag):
    """The result for inputs drawn as a flag says; neither a smaller input nor a patch is searched."""
    spec = CheckSpec(target="orders:Target", inputs=(parse_input(flag),), inputs_from=InputsFrom.FLAGS)
    return check_object(target, case_of(spec, Settings(order=1, shrink=False, samples=1)))


ORDERS = {
    "rows ascend": lambda x: bool((x[..., 1:] >= x[..., :-1]).all()),
    "rows descend": lambda x: bool((x[..., 1:] <= x[..., :-1]).all()),
    "columns ascend": lambda x: bool((x[1:] >= x[:-1]).all()),
    "all ascend": lambda x: bool((x.reshape(-1)[1:] >= x.reshape(-1)[:-1]).all()),
    "the last of each row is the largest": lambda x: bool((x[..., -1:] >= x).all()),
}
FACTORS = {"twice": 2.0, "one percent": 1.01, "none": 0.0, "right": 1.0}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("factor", FACTORS)
def test_wrong_where_entries_are_in_order(backend, ns, order, factor):
    def backward(ns, x, g):
        y = ns.softmax(x, -1)
        right = y * (g - (g * y).sum(-1, keepdim=True))
        return right * FACTORS[factor] if ORDERS[order](x.detach()) else right

    target = function_of(ns, lambda ns, x: ns.softmax(x, -1), backward)
    result = drawn(target, "x=3x4")
    if factor == "right":
        assert result.verdict is Verdict.PASSED
        return
    assert result.verdict is Verdict.FAILED
    assert {e.check for e in result.evidence if e.verdict is Verdict.FAILED} == {"other-inputs"}
    messages = [finding.message for finding in result.findings]
    wanted = "descending" if order == "rows descend" else "ascending"
    assert all(f"the entries of x are in {wanted} order" in message for message in messages), messages


RIGHT = {
    "weighted order statistics": (
        lambda ns, x: (ns.sort(x, -1)[0] * ns.arange(1, x.shape[-1] + 1, dtype=x.dtype)).sum(-1),
        lambda ns, x, g: g[..., None] * (1.0 + ns.argsort(ns.argsort(x, -1), -1).to(x.dtype)),
    ),
    "the largest": (
        lambda ns, x: ns.amax(x, -1),
        lambda ns, x, g: g[..., None] * (x == ns.amax(x, -1, keepdim=True)).to(x.dtype),
    ),
    "steps between neighbours": (
        lambda ns, x: ns.abs(x[..., 1:] - x[..., :-1]),
        lambda ns, x, g: _of_steps(ns, x, g * ns.sign(x[..., 1:] - x[..., :-1])),
    ),
}


def _of_steps(ns, x, slopes):
    out = ns.zeros_like(x)
    out[..., 1:] += slopes
    out[..., :-1] -= slopes
    return out


@pytest.mark.parametrize("name", RIGHT)
def test_functions_of_the_order_of_entries_pass(backend, ns, name):
    result = drawn(function_of(ns, *RIGHT[name]), "x=3x4")
    assert result.verdict is Verdict.PASSED
    assert not [note for note in result.notes if "at inputs that gradcli chose" in note]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", RIGHT)
def test_the_same_off_by_one_percent_fails(backend, ns, name):
    forward, backward = RIGHT[name]
    assert (
        drawn(function_of(ns, forward, lambda ns, x, g: 1.01 * backward(ns, x, g)), "x=3x4").verdict is Verdict.FAILED
    )


def test_given_values_in_order_are_only_a_note(backend, ns):
    def backward(ns, x, g):
        return 2 * x * g * (2.0 if ORDERS["rows ascend"](x.detach()) else 1.0)

    target = function_of(ns, lambda ns, x: x * x, backward)
    result = drawn(target, "x=2x3,value=[[0.6,1.2,0.9],[1.7,0.3,0.8]]")
    assert result.verdict is Verdict.PASSED
    assert [note for note in result.notes if "only as a note" in note]


def test_values_close_by_are_in_the_same_order():
    rng = np.random.default_rng(0)
    for shape in ((7,), (3, 4)):
        value = rng.normal(size=shape)
        changed = _in_order_of(value, value * (1 + rng.uniform(-0.1, 0.1, shape)))
        assert (np.argsort(changed, axis=None) == np.argsort(value, axis=None)).all()
        assert changed.shape == shape
        assert np.abs(changed - value).max() <= 0.1 * np.abs(value).max()
    assert _in_order_of(np.array([1j, 2.0]), np.array([2.0, 1j])).tolist() == [2.0, 1j]


WASSERSTEIN = """from gradcli import engine as torch
from gradcli.engine.autograd import Function


class Own(Function):
    @staticmethod
    def forward(ctx, x, y):
        first, second = torch.argsort(x), torch.argsort(y)
        ctx.save_for_backward(x, y, first, second)
        return ((x[first] - y[second]) ** 2).mean()

    @staticmethod
    def backward(ctx, g):
        x, y, first, second = ctx.saved_tensors
        d = 2 * g * (x[first] - y[second]) / {size}
        return {by_x}, -d[torch.argsort(second)]
"""


@pytest.mark.parametrize(
    ("size", "by_x", "kind"),
    [
        ("len(x)", "d[torch.argsort(first)]", None),
        ("len(x)", "d[first]", "wrong-shift"),
        ("3", "d[torch.argsort(first)]", "batch-size"),
    ],
)
def test_what_is_wrong_in_another_order_at_the_same_size_is_no_matter_of_sizes(size, by_x, kind, tmp_path, monkeypatch):
    """The orders drawn first are their own inverses."""
    monkeypatch.chdir(tmp_path)
    own = f"own_{len(by_x)}_{len(size)}.py"
    (tmp_path / own).write_text(WASSERSTEIN.format(size=size, by_x=by_x))
    (case,) = gradcli.check(f"{own}:Own", order=1, shrink=False, samples=1, seed=1).cases
    assert case.verdict is (Verdict.PASSED if kind is None else Verdict.FAILED)
    assert {finding.kind.value for finding in case.findings} == ({kind} - {None})
