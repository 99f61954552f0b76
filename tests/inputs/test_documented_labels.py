"""Documented labels get no gradient where backward returns none or zeros, whatever its source shows."""

import inspect

import numpy as np
import pytest

import gradcli
from gradcli.engine import relu, zeros_like
from gradcli.engine.autograd import Function
from gradcli.inputs.hints.documented_values import documented_values
from gradcli.verdict import Verdict


def survival(returned, is_right, text="score: (N,). seen: (N,) binary, 1 if the end was seen."):
    class Survival(Function):
        @staticmethod
        def forward(ctx, score, seen):
            ctx.save_for_backward(score, seen)
            return -(seen * score.log_softmax(0)).sum()

        @staticmethod
        def backward(ctx, g):
            score, seen = ctx.saved_tensors
            found = [None, None]
            found[0] = g * (score.softmax(0) * (seen.sum() if is_right else 1) - seen)
            if returned != "none":
                found[1] = zeros_like(seen) if returned == "zeros" else -g * score.log_softmax(0)
            return tuple(found)

    Survival.__doc__ = text
    return Survival


def wrong_inputs(case):
    return {each.input for each in case.evidence if each.verdict is Verdict.FAILED}


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("returned", ["none", "zeros", "gradient"])
def test_the_gradient_of_documented_labels(returned):
    (case,) = gradcli.check(survival(returned, is_right=True), order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED, case.findings
    assert (case.inputs[1].domain, case.inputs[1].requires_grad) == (
        "binary",
        None if returned == "gradient" else False,
    )
    (case,) = gradcli.check(survival(returned, is_right=False), order=1, shrink=False).cases
    assert wrong_inputs(case) == {"score"}


@pytest.mark.usefixtures("unexplained")
def test_a_gradient_is_missing_where_nothing_calls_an_argument_labels():
    (case,) = gradcli.check(
        survival("zeros", is_right=True, text="score: (N,). seen: (N,)."), order=1, shrink=False
    ).cases
    assert wrong_inputs(case) == {"seen"}


@pytest.mark.parametrize(
    ("text", "is_binary"),
    [
        ("seen: (N,) binary, 1 if the end was seen", True),
        ("seen: (N,) event indicator (1: observed, 0: censored)", True),
        ("seen: (N,), 0 = censored, 1 = observed", True),
        ("seen: (N,) indicators", True),
        ("seen (N,) mask of 0 and 1", True),
        ("seen (N,) mask of 1s and 0s, score (N,)", True),
        ("seen (N,) mask of score, 0 and 1 included", False),
        ("seen: (N,) with values between 0 and 1", False),
        ("seen: (N,) argument of the indicator function", False),
        ("seen: (2, N), 0: real part, 1: imaginary part", False),
        ("seen: (N,) input, the step is 1 if seen > 0, 0 otherwise", False),
    ],
)
def test_what_is_called_binary(text, is_binary):
    found = documented_values(["score", "seen"], "", text, shapes={"seen": ("N",)}).domains
    assert (found.get("seen") == "binary") is is_binary


def loss(score, seen):
    """score: (N,) scores. seen: (N,) indicator (1: observed, 0: censored)"""
    return -(seen * (score - np.log(np.exp(score).sum()))).sum()


def loss_vjp(score, seen, g):
    return g * (np.exp(score) / np.exp(score).sum() * seen.sum() - seen), np.zeros_like(seen)


def wrong_loss_vjp(score, seen, g):
    return g * (np.exp(score) / np.exp(score).sum() - seen), np.zeros_like(seen)


@pytest.mark.usefixtures("unexplained")
def test_a_derivative_in_numpy_that_returns_zeros_for_labels():
    for gradient, verdict in ((loss_vjp, Verdict.PASSED), (wrong_loss_vjp, Verdict.FAILED)):
        (case,) = gradcli.check(loss, grad=gradient, shrink=False).cases
        assert case.verdict is verdict, case.findings
        assert wrong_inputs(case) <= {"score"}


def discounted(name, is_right=True):
    class Discounted(Function):
        @staticmethod
        def forward(ctx, reward, value, end):
            left = 1.0 - end
            ctx.save_for_backward(left)
            return reward + 0.9 * left * value

        @staticmethod
        def backward(ctx, g):
            (left,) = ctx.saved_tensors
            return g, 0.9 * (left if is_right else 1.0) * g, None

    parameters = list(inspect.signature(Discounted.forward).parameters.values())
    parameters[-1] = parameters[-1].replace(name=name)
    Discounted.forward.__signature__ = inspect.Signature(parameters)
    return Discounted


@pytest.mark.usefixtures("unexplained")
@pytest.mark.parametrize("name", ["done", "gt"])
def test_what_is_called_as_labels_needs_no_gradient_where_backward_returns_none(name):
    (case,) = gradcli.check(discounted(name), shrink=False).cases
    assert case.verdict is Verdict.PASSED, case.findings
    assert case.inputs[2].requires_grad is False
    assert any(f"give -i {name}=3x4" in note for note in case.notes)
    (case,) = gradcli.check(discounted(name, is_right=False), order=1, shrink=False).cases
    assert wrong_inputs(case) == {"value"}


@pytest.mark.usefixtures("unexplained")
def test_other_names_need_one():
    (case,) = gradcli.check(discounted("end"), order=1, shrink=False).cases
    assert wrong_inputs(case) == {"end"}


def hinge(is_right):
    class Hinge(Function):
        @staticmethod
        def forward(ctx, logits, labels):
            left = 1 - logits * (2 * labels - 1)
            ctx.save_for_backward(left, labels)
            return relu(left).dot(labels)

        @staticmethod
        def backward(ctx, g):
            left, labels = ctx.saved_tensors
            return -g * (2 * labels - 1) * (labels if is_right else 1) * (left > 0), None

    return Hinge


@pytest.mark.usefixtures("unexplained")
def test_labels_are_real_numbers_where_forward_takes_no_class_numbers():
    (case,) = gradcli.check(hinge(True), order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED, case.findings
    assert case.inputs[1].requires_grad is False
    assert case.inputs[1].domain != "indices"
    (case,) = gradcli.check(hinge(False), order=1, shrink=False).cases
    assert wrong_inputs(case) == {"logits"}


def margin(code, factor):
    torch = pytest.importorskip("torch")

    class Margin(torch.autograd.Function):
        """score: (N,), label: (N,) in {0, 1}"""

        @staticmethod
        def forward(ctx, score, label):
            sign = 1 - (label << 1) if code == "shifted" else 1 - 2.0 * label
            ctx.save_for_backward(score, sign)
            return torch.nn.functional.softplus(sign * score).sum()

        @staticmethod
        def backward(ctx, g):
            score, sign = ctx.saved_tensors
            return factor * g * torch.sigmoid(sign * score) / sign, None

    return Margin


@pytest.mark.parametrize("factor", [1.0, 1.01])
@pytest.mark.parametrize(("code", "domain"), [("shifted", "indices"), ("plain", "binary")])
def test_documented_labels_of_two_classes(code, domain, factor):
    (case,) = gradcli.check(margin(code, factor), order=1, shrink=False).cases
    label = case.inputs[1]
    assert (label.domain, label.parameters) == (domain, (("high", 2),) if code == "shifted" else ())
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.findings
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"score"})


WEIGHED = """
import gradcli.engine as torch
from gradcli.engine.autograd import Function


class Weighed(Function):
    @staticmethod
    def forward(ctx, score, {name}):
        ctx.save_for_backward(score, {name})
        return ({name} * score**2).sum()

    @staticmethod
    def backward(ctx, g):
        score, other = ctx.saved_tensors
        return {factor} * g * other * score, None
"""


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize(
    ("name", "is_data"),
    [
        ("noise", True),
        ("advantages", True),
        ("old_log_probs", True),
        ("logp_old", True),
        ("teacher_logits", True),
        ("sample_weight", True),
        ("old_cell", False),
        ("weight", False),
        ("cosine", False),
    ],
)
def test_what_is_data_by_its_name_may_have_no_gradient(tmp_path, name, is_data, factor):
    file = tmp_path / "weighed.py"
    file.write_text(WEIGHED.format(name=name, factor=factor))
    (case,) = gradcli.check(f"{file}:Weighed", order=1, shrink=False).cases
    assert wrong_inputs(case) == ({"score"} if factor == 3 else set()) | (set() if is_data else {name})
    assert any("because of its name" in note for note in case.notes) is is_data


def weighted_entropy(ns, divisor):
    """A binary cross entropy with labels of the logits' shape."""

    class Weighted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, logits, labels, pos_weight=3.0):
            ctx.save_for_backward(logits, labels)
            ctx.weight = pos_weight
            weight = 1 + (pos_weight - 1) * labels
            return ((1 - labels) * logits + weight * ns.nn.functional.softplus(-logits)).mean()

        @staticmethod
        def backward(ctx, g):
            logits, labels = ctx.saved_tensors
            weight = 1 + (ctx.weight - 1) * labels
            return g * ((1 - labels) - weight * ns.sigmoid(-logits)) / divisor(labels), None, None

    return Weighted


@pytest.mark.parametrize("is_right", [True, False])
def test_labels_that_are_taken_from_one_are_no_class_numbers(ns, is_right):
    target = weighted_entropy(ns, lambda labels: labels.numel() if is_right else len(labels))
    (case,) = gradcli.check(target, order=1, shrink=False).cases
    assert [(spec.shape, spec.domain) for spec in case.inputs[:2]] == [((3, 4), "normal")] * 2
    assert case.verdict is (Verdict.PASSED if is_right else Verdict.FAILED)
