"""Sizes that nobody chose: a gradient has to be right for tall matrices, and for odd and even numbers of entries."""

import pytest

import gradcli
from gradcli import engine
from gradcli.verdict import Verdict

FRAMEWORKS = ("gradcli.engine", "torch")
HEADER = """
import {framework} as torch
from {framework}.autograd import Function


def function(forward, backward):
    class Checked(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            return backward(*ctx.saved_tensors, g)

    return Checked
"""
GRAM = """
def gram(x):
    return x @ x.t() if x.shape[0] <= x.shape[1] else x.t() @ x

def of_gram(x, g, tall=1.0):
    h = g + g.t()
    return h @ x if x.shape[0] <= x.shape[1] else {factor} * x @ h

Checked = function(gram, of_gram)
"""
SIMPSON = """
def weights(n, inner):
    w = [4.0 if i % 2 else 2.0 for i in range(n)] if not inner else [4.0] * n
    w[0] = w[-1] = 1.0
    return torch.tensor(w, dtype=torch.float64)

def simpson(x):
    return (weights(x.shape[0], False) * x.exp()).sum()

Checked = function(simpson, lambda x, g: g * weights(x.shape[0], {inner}) * x.exp())
"""
MEDIAN = """
def of_median(x, g):
    order, n = x.argsort(), x.shape[0]
    d = torch.zeros(n, dtype=x.dtype)
    d[order[n // 2]] += g / 2
    d[order[(n - 1) // 2 + {shift}]] += g / 2
    return d

def median(x):
    order, n = x.argsort(), x.shape[0]
    return (x[order[n // 2]] + x[order[(n - 1) // 2]]) / 2

Checked = function(median, lambda x, g: of_median(x, g) if x.shape[0] % 2 == 0 else of_median(x, g))
"""
LOUD = """
def of_cumulative(x, g):
    if x.shape[0] != 3:
        raise ValueError("three rows, please")
    return g.flip(0).cumsum(0).flip(0) * x.cos()

Checked = function(lambda x: (x.reshape(3, 4) if x.shape[0] == 3 else x).sin().cumsum(0), of_cumulative)
"""
LIMITS = """
class Checked(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x, low, high)
        return torch.clamp(x, low, high)

    @staticmethod
    def backward(ctx, g):
        x, low, high = ctx.saved_tensors
        zero = torch.zeros_like(g)
        inside = (x > low) & (x < high)
        d = torch.where(inside, g, zero), torch.where(x <= low, g, zero), torch.where(x >= high, g, zero)
        return tuple(each.sum_to_size(a.shape) for each, a in zip(d, (x, low, high)))
"""

LAGGED = """
class Checked(Function):
    @staticmethod
    def forward(ctx, x, lag=3):
        y = []
        for t in range(x.shape[1]):
            y.append(x[:, t] + (y[t - lag] ** 2 / 2 if t >= lag else 0))
        y = torch.stack(y, 1)
        ctx.save_for_backward({kept})
        ctx.lag = lag
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        d = [g[:, t] for t in range(g.shape[1])]
        for t in reversed(range(len(d) - ctx.lag)):
            d[t] = d[t] + y[:, t] * d[t + ctx.lag]
        return torch.stack(d, 1), None
"""

SHIFTED = """
class Checked(Function):
    @staticmethod
    def forward(ctx, x, shift):
        ctx.save_for_backward(x, shift)
        return (x - shift).sin()

    @staticmethod
    def backward(ctx, g):
        x, shift = ctx.saved_tensors
        d = g * (x - shift).cos()
        kept = {kept}
        return d, -d.sum(1 - kept)
"""
SUFFIX_SUMS = """
def of_sums(x, g):
    d = x.cos()
    rows = [g[i : min(i + {most}, len(g))].sum() for i in range(len(g))]
    return torch.stack(rows) * d

Checked = function(lambda x: x.reshape(-1).sin().cumsum(0), lambda x, g: of_sums(x.reshape(-1), g).reshape(x.shape))
"""
UNIT_ROWS = """
class Checked(Function):
    '''x (N, T, K): each row divided by its length'''

    @staticmethod
    def forward(ctx, x):
        lengths = (x * x).sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x / lengths, lengths)
        return x / lengths

    @staticmethod
    def backward(ctx, g):
        y, lengths = ctx.saved_tensors
        along = (g * y).sum(-1, keepdim=True){dropped}.unsqueeze(-1)
        return (g - along * y) / lengths
"""


@pytest.fixture(params=FRAMEWORKS)
def case_of(request, tmp_path):
    """A function that checks a program."""
    if request.param == "torch":
        pytest.importorskip("torch")

    def case(text, inputs=None, **values):
        file = tmp_path / "written.py"
        file.write_text(HEADER.format(framework=request.param) + text.format(**values))
        (found,) = gradcli.check(f"{file}:Checked", inputs, order=1).cases
        return found

    return case


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (GRAM, {"factor": 0.9}),
        (GRAM, {"factor": 0.99}),
        (SIMPSON, {"inner": True}),
        (LAGGED, {"kept": "x"}),
        (SHIFTED, {"kept": "list(x.shape).index(len(shift))"}),
        (SUFFIX_SUMS, {"most": 12}),
        (UNIT_ROWS, {"dropped": ".squeeze()"}),
    ],
)
def test_a_gradient_that_is_wrong_at_other_sizes_alone_fails(case_of, text, wrong):
    case = case_of(text, **wrong)
    assert case.verdict is Verdict.FAILED
    assert [e.check for e in case.evidence if e.verdict is Verdict.FAILED] == ["sizes"]
    (finding,) = case.findings
    assert "sizes that gradcli tried in addition to the inferred ones" in finding.message
    assert case.smallest


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("text", "right"),
    [
        (GRAM, {"factor": 1.0}),
        (SIMPSON, {"inner": False}),
        (MEDIAN, {"shift": 0}),
        (LOUD, {}),
        (LIMITS, {}),
        (LAGGED, {"kept": "y"}),
        (SHIFTED, {"kept": "1"}),
        (SUFFIX_SUMS, {"most": "len(g)"}),
        (UNIT_ROWS, {"dropped": ".squeeze(-1)"}),
    ],
)
def test_a_right_gradient_passes(case_of, text, right):
    case = case_of(text, **right)
    assert case.verdict is Verdict.PASSED, (case.findings, case.error)


def test_sizes_that_the_user_gave_make_it_a_note(case_of):
    case = case_of(GRAM, {"x": {"shape": [3, 4]}}, factor=0.9)
    assert case.verdict is Verdict.PASSED
    (note,) = [note for note in case.notes if "because you gave the sizes" in note]
    assert "the gradient of x is wrong" in note
    assert "backward gives" in note


@pytest.mark.sampled(1)
def test_a_number_that_is_a_size_keeps_the_sizes(case_of):
    case = case_of(
        """
class Checked(Function):
    @staticmethod
    def forward(ctx, x, n=4):
        ctx.n = n
        return x.reshape(-1)[: 3 * n].reshape(3, n).sin().sum(0), x * 1

    @staticmethod
    def backward(ctx, g, h):
        raise NotImplementedError
"""
    )
    assert case.verdict is not Verdict.PASSED


class Products(engine.autograd.Function):
    """The products of rows; for tall matrices the gradient of the last row is `FACTOR` times the right one."""

    FACTOR = 1.01

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x.t()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        found = (g + g.t()) @ x
        found[x.shape[1] :] *= Products.FACTOR
        return found


@pytest.mark.parametrize("seed", [0, 2, 10])
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_one_per_cent_in_one_row_fails_in_whatever_direction_it_is_looked_for(factor, seed, monkeypatch):
    """A quotient that was allowed to be off by 0.1 % missed it at these seeds."""
    monkeypatch.setattr(Products, "FACTOR", factor)
    (case,) = gradcli.check(Products, order=1, seed=seed, only=["gradient", "sizes"], shrink=False).cases
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED)


KEPT = """
SIGNS = {{}}

def signs(x):
    return torch.tensor([1.0 if i % 3 else -2.0 for i in range(x.shape[0])], dtype=x.dtype)

def kept(x):
    known = SIGNS.setdefault({key}, signs(x))
    return known[[min(i, len(known) - 1) for i in range(x.shape[0])]]

Checked = function(lambda x: signs(x)[:, None] * x.sin(), lambda x, g: g * kept(x)[:, None] * x.cos())
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("key", "verdict"), [("x.shape", Verdict.PASSED), ("x.shape[1]", Verdict.FAILED)])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_values_kept_for_the_size_of_another_axis(tmp_path, framework, key, verdict):
    pytest.importorskip(framework.partition(".")[0])
    file = tmp_path / "kept.py"
    file.write_text(HEADER.format(framework=framework) + KEPT.format(key=key))
    (case,) = gradcli.check(f"{file}:Checked", {"x": {"shape": [3, 4]}}, order=1, shrink=False, seed=1).cases
    assert (case.verdict is verdict) or any("you gave the sizes" in note for note in case.notes), case.findings
    (case,) = gradcli.check(f"{file}:Checked", order=1, shrink=False).cases
    assert case.verdict is verdict, case.findings
