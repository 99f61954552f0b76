"""What docstrings and comments say of the values of arguments, and the checks with inputs of these values."""

import numpy as np
import pytest

import gradcli
from gradcli.engine import tensor
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict

_NAMES = ("x", "w", "p", "A", "mask", "alpha")


@pytest.mark.parametrize(
    ("text", "domains"),
    [
        (":param x: A symmetric matrix of size (M, M).\n:param w: The right-hand side.", {"x": "spd"}),
        (
            "Args:\n    x: [N] float array.\n    w: categorical one-hot targets [N, C] float\n    array.",
            {"w": "one-hot"},
        ),
        ("Solves A x = w for a symmetric positive definite A: (n, n), w: (n,).", {"A": "spd"}),
        ("x: (N, M), mask: (N, M) bool.", {"mask": "boolean"}),
        (
            "x: (n,) probabilities\nw: (m,) weights that sum to one\np: rates in (0, 1)",
            {"x": "simplex", "w": "simplex", "p": "unit"},
        ),
        ("x : ndarray\n    Covariance matrix of noise.\nw : array\n    Positive rates.", {"x": "spd", "w": "positive"}),
        (
            "x (Tensor): the rates, which must be strictly positive.\nw: an orthogonal matrix",
            {"x": "positive", "w": "orthogonal"},
        ),
        (
            "x: class labels, w: indices of the neighbours; p: a lower triangular matrix",
            {"x": "indices", "w": "indices", "p": "triangular"},
        ),
        ("A must be positive definite.", {"A": "spd"}),
        (
            "x is +1 or -1\nw: labels in {-1, 1}\np: (N,), targets of ±1\nA: -1/+1 labels",
            dict.fromkeys("xwpA", "signs"),
        ),
        (
            "x: rates in (0.1, 0.6)\nw: angles in [-3.14, 3.14]\np: values between -1 and 1\nA: grid in [-1, 1]",
            {
                "x": "open-interval(0.1, 0.6)",
                "w": "open-interval(-3.14, 3.14)",
                "p": "open-interval(-1, 1)",
                "A": "open-interval(-1, 1)",
            },
        ),
        ("The root of y^3 = x, x positive", {"x": "positive"}),
        ("Clamps x in (2, 3).\nw: offset of ±1 pixels\np: within ±1\nReturns 1 or -1.", {}),
        ("x: not necessarily symmetric matrix\nw: need not be positive\np: non-positive numbers", {}),
        ("x: log-probabilities\nw: unnormalized probabilities\np: logits or probabilities", {}),
        ("Returns x if x is positive, w otherwise, where p is positive.", {}),
        ("x: the input. Positive entries are passed, negative ones are scaled\nw: positive samples", {}),
        ("x: a tensor that is gathered at the indices w\np: upper triangular matrix", {}),
        ("Returns:\n    x: probabilities\n\nArgs:\n    w: weights", {}),
    ],
)
def test_domains_in_a_text(text: str, domains: dict[str, str]) -> None:
    assert documented_values(_NAMES, "", text).domains == domains


def test_numbers_in_a_text() -> None:
    text = (
        "x: number of steps\nw: the scalar field (N, N)\nalpha: a coefficient for the loss\np: scalar\nA (int): width"
    )
    found = documented_values(_NAMES, "def f(x):\n    # mask (float, optional): strength\n    return x", text)
    assert found.types == {"alpha": "float", "p": "scalar", "A": "int"}
    assert documented_values(_NAMES, "", "x: pairs whose last dimension is two").shapes == {"x": ("...", 2)}
    assert documented_values(_NAMES, "", "The root of a PSD matrix.", only="x").domains == {"x": "spd"}


class Form(Function):
    """Args:
    kernel (Tensor): symmetric matrix, of any size.
    v (Tensor): what it is applied to.
    """

    factor = 2.0

    @classmethod
    def forward(cls, ctx, kernel, v):
        ctx.kept = kernel.numpy(), v.numpy()
        return tensor((ctx.kept[1] * (ctx.kept[0] @ ctx.kept[1])).sum(0))

    @classmethod
    def backward(cls, ctx, g):
        kernel, v = ctx.kept
        g = g.numpy()
        return tensor((v * g) @ v.T), tensor(cls.factor * (kernel @ v) * g)


class FormOff(Form):
    """Args:
    kernel (Tensor): symmetric matrix.
    v (Tensor): what it is applied to.
    """

    factor = 1.0


class SoftLoss(Function):
    """The loss of soft labels, and a penalty.

    Parameters
    ----------
    x : Tensor
        Scores.
    soft : Tensor
        One-hot rows.
    gain : coefficient
        Of the penalty.
    """

    factor = 1.0

    @classmethod
    def forward(cls, ctx, x, soft, gain):
        scores = x.numpy()
        ctx.kept = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True), soft.numpy(), scores, gain
        total = np.log(np.exp(scores).sum(-1))
        return tensor(total - (soft.numpy() * scores).sum(-1) + gain * scores.sum(-1))

    @classmethod
    def backward(cls, ctx, g):
        p, soft, _, gain = ctx.kept
        return tensor((p - soft + cls.factor * gain) * g.numpy()[:, None]), None, None


class SoftLossOff(SoftLoss):
    """x: scores, soft: one-hot rows, gain: coefficient"""

    factor = 0.5


class Magnitude(Function):
    """The size of a positive signal."""

    factor = 1.0

    @classmethod
    def forward(cls, ctx, signal):  # signal: strictly positive
        ctx.save_for_backward(signal)
        return signal.abs() ** 1.5

    @classmethod
    def backward(cls, ctx, g):
        (signal,) = ctx.saved_tensors
        return cls.factor * 1.5 * g * signal.abs() ** 0.5


class MagnitudeOff(Magnitude):
    """The size."""

    factor = 1.01


class Margin(Function):
    """The hinge loss of scores x (N, C) and w: labels of 1 or -1."""

    signed = True

    @classmethod
    def forward(cls, ctx, x, w):
        ctx.save_for_backward(x, w)
        return (1 - w * x).clamp(min=0).sum()

    @classmethod
    def backward(cls, ctx, g):
        x, w = ctx.saved_tensors
        return -g * (w if cls.signed else w * w) * (1 - w * x > 0), None


class MarginOff(Margin):
    """The hinge loss of scores x (N, C) and w: labels of 1 or -1."""

    signed = False


class Whitened(Function):
    """:param basis: an orthogonal matrix, (n, n)
    :param x: (n, k)
    """

    reduces = True

    @classmethod
    def forward(cls, ctx, basis, x, shift):
        """shift: (n,)"""
        ctx.kept = basis.numpy(), x.numpy()
        return tensor(np.linalg.inv(ctx.kept[0]) @ x.numpy() + shift.numpy()[:, None])

    @classmethod
    def backward(cls, ctx, g):
        basis, x = ctx.kept
        g = g.numpy()
        back = basis @ g
        shift = g.sum(1) if cls.reduces else g[:, 0]
        return tensor(-back @ (basis.T @ x).T), tensor(back), tensor(shift)


class WhitenedOff(Whitened):
    """:param basis: an orthogonal matrix, (n, n)
    :param x: (n, k)
    """

    reduces = False


@pytest.mark.parametrize(
    ("right", "wrong", "domains"),
    [
        (Form, FormOff, {"kernel": "spd"}),
        (SoftLoss, SoftLossOff, {"soft": "one-hot"}),
        (Magnitude, MagnitudeOff, {"signal": "positive"}),
        (Margin, MarginOff, {"w": "signs"}),
        (Whitened, WhitenedOff, {"basis": "orthogonal"}),
    ],
)
def test_right_functions_pass_at_what_is_documented(
    right: type[Function], wrong: type[Function], domains: dict[str, str]
) -> None:
    case = gradcli.check(right, shrink=False, order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    assert domains.items() <= {spec.name: spec.domain for spec in case.inputs}.items()
    assert any("documentation says so" in note for note in case.notes)
    assert gradcli.check(wrong, shrink=False, order=1).cases[0].verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "Args:\n    w (torch.Tensor):\n        The averaged (scalar) value.\n    x (torch.Tensor):\n        Rows.",
        "w (np.ndarray, optional): The energy, a scalar.",
        "w : torch.Tensor, scalar\n    The energy.",
    ],
)
def test_the_type_before_a_description_is_not_its_begin(text: str) -> None:
    found = documented_values(_NAMES, "", text)
    assert found.types == {"w": "scalar"}
    assert documented_values(_NAMES, "", text.replace("scalar", "scaled")).types == {}


def with_decay(factor: float) -> type[Function]:
    class WithDecay(Function):
        """Adds a decay to an energy.

        Args:
            energy (gradcli.engine.Tensor):
                The already summed (scalar) energy of the batch.
            points (gradcli.engine.Tensor):
                The points, of shape `[N, D]`.
        """

        @staticmethod
        def forward(ctx, energy, points):
            ctx.save_for_backward(points)
            return energy + (points**2).sum()

        @staticmethod
        def backward(ctx, g):
            (points,) = ctx.saved_tensors
            return g, factor * g * points

    return WithDecay


def test_a_single_number_behind_its_type() -> None:
    right = gradcli.check(with_decay(2.0), shrink=False, order=1).cases[0]
    assert right.verdict is Verdict.PASSED
    assert right.inputs[0].shape == ()
    wrong = gradcli.check(with_decay(2.5), shrink=False, order=1).cases[0]
    assert [(finding.kind.value, finding.input) for finding in wrong.findings] == [("wrong-factor", "points")]
