"""Domains of inferred inputs: limits in order, probabilities, and numbers for which an iteration converges."""

import textwrap
from typing import Any

import pytest

import gradcli
from gradcli.inputs.search.domains import OTHER_AXIS, pairs_of
from gradcli.verdict import Verdict

LIMITS = [("a", "b")]
FORMS = {
    "torch.clamp(x, a, b)": LIMITS,
    "torch.clamp(x, min=a, max=b)": LIMITS,
    "torch.clamp(x, a)": [],
    "torch.clamp(x, max=b)": [],
    "torch.clamp(a, min=x, max=b)": [("x", "b")],
    "x.clamp(a, b)": LIMITS,
    "x.clip(a, max=b)": LIMITS,
    "(x * 2).clamp(a, b) + 1": LIMITS,
    "np.clip(x, a, b)": LIMITS,
    "np.clip(x, a_min=a, a_max=b)": LIMITS,
    "np.clip(x, -1, b)": [],
    "clip(x, a, b)": LIMITS,
    "torch.minimum(torch.maximum(x, a), b)": LIMITS,
    "torch.maximum(torch.minimum(x, b), a)": LIMITS,
    "np.minimum(b, np.maximum(a, x))": LIMITS,
    "np.maximum(x, a) + np.minimum(x, b)": [],
    "torch.maximum(x, torch.maximum(a, b))": [],
    "torch.minimum(torch.maximum(x, 0.5), b)": [],
    "a + (b - a) * x": [],
    "torch.minimum(torch.maximum(x * 2, a), b)": LIMITS,
}
NAMES = {
    ("x", "low", "high"): [("low", "high")],
    ("x", "hi", "lo"): [("lo", "hi")],
    ("input", "min_val", "max_val"): [("min_val", "max_val")],
    ("x", "x_max", "x_min"): [("x_min", "x_max")],
    ("x", "vmin", "vmax"): [("vmin", "vmax")],
    ("x", "lower_bound", "upper_bound"): [("lower_bound", "upper_bound")],
    ("u", "left", "right"): [],
    ("slope", "flow", "fhigh"): [],
    ("x", "lo", "high"): [],
    ("terminal", "termaxal"): [],
}


@pytest.mark.parametrize("form", FORMS)
def test_limits_are_read_from_the_source_of_forward(form):
    source = f"def forward(ctx, x, a, b):\n    return {form}\n"
    assert pairs_of(source, ("x", "a", "b")) == FORMS[form]


def test_the_inner_call_may_have_a_name_of_its_own():
    source = textwrap.dedent(
        """
        def forward(ctx, x, a, b):
            above = torch.maximum(x, a)
            return torch.minimum(above, b)
        """
    )
    assert pairs_of(source, ("x", "a", "b")) == LIMITS


@pytest.mark.parametrize("names", [("a", "x", "b"), ("a", "b", "x"), ("x", "a", "b")], ids="".join)
@pytest.mark.parametrize("form", ["torch.minimum(torch.maximum(x, a), b)", "np.minimum(b, np.maximum(a, x))"])
def test_limits_may_stand_before_what_they_limit(names, form):
    assert pairs_of(f"def forward({', '.join(names)}):\n    return {form}\n", names) == LIMITS


@pytest.mark.parametrize("names", NAMES, ids="-".join)
def test_limits_are_known_by_their_names(names):
    assert pairs_of("", names) == NAMES[names]


class Written:
    """Clamps that are right where a is below b, and wrong ones."""

    def __init__(self, ns: Any) -> None:
        class Clamp(ns.autograd.Function):
            @staticmethod
            def forward(ctx, x, a, b):
                ctx.save_for_backward(x, a, b)
                return ns.clamp(x, a, b)

            @staticmethod
            def backward(ctx, g):
                x, a, b = ctx.saved_tensors
                return g * ((x >= a) & (x <= b)), g * (x < a), g * (x > b)

        class Swapped(Clamp):
            @staticmethod
            def backward(ctx, g):
                x, a, b = ctx.saved_tensors
                return g * ((x >= a) & (x <= b)), g * (x > b), g * (x < a)

        class Nested(Clamp):
            @staticmethod
            def forward(ctx, x, a, b):
                ctx.save_for_backward(x, a, b)
                return ns.minimum(ns.maximum(x, a), b)

        class Scaled(Clamp):
            @staticmethod
            def backward(ctx, g):
                x, a, b = ctx.saved_tensors
                return g * ((x >= a) & (x <= b)), g * (x < a), 1.001 * g * (x > b)

        self.right, self.wrong = (Clamp, Nested), (Swapped, Scaled)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("unexplained")
def test_a_right_clamp_passes_and_a_wrong_one_fails(ns, seed):
    written = Written(ns)
    for target in written.right:
        result = gradcli.check(target, seed=seed, order=1).cases[0]
        assert result.verdict is Verdict.PASSED, str(result)
        assert any("the lower of two limits" in note for note in result.notes)
    for target in written.wrong:
        failed = gradcli.check(target, seed=seed, order=1, shrink=False, only=["gradient"])
        assert failed.verdict is Verdict.FAILED


def test_where_forward_takes_logarithms_the_limits_are_positive(ns):
    class Between(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, lower, upper):
            ctx.save_for_backward(x, lower, upper)
            return x * ns.log(upper / lower) + ns.log(lower)

        @staticmethod
        def backward(ctx, g):
            x, lower, upper = ctx.saved_tensors
            return g * ns.log(upper / lower), g * (1 - x) / lower, g * x / upper

    case = gradcli.check(Between, seed=0, order=1).cases[0]
    assert case.verdict is Verdict.PASSED, str(case)
    domains = {spec.name: (spec.domain, dict(spec.parameters)) for spec in case.inputs}
    assert domains["lower"] == ("open-interval", {"lo": 0.1, "hi": 0.9})
    assert domains["upper"] == ("open-interval", {"lo": 1.2, "hi": 3.0})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [[2, 3], []], ids=["for each entry", "scalar"])
@pytest.mark.usefixtures("unshrunk")
def test_where_shapes_are_given_a_note_says_which_domains_put_them_in_order(ns, shape):
    class Limited(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(x, low, high)
            return ns.clamp(x, low, high)

        @staticmethod
        def backward(ctx, g):
            x, low, high = ctx.saved_tensors
            below, above = g * (x < low), g * (x > high)
            if low.ndim == 0:
                below, above = below.sum(), above.sum()
            return g * ((x >= low) & (x <= high)), below, above

    class Doubled(Limited):
        @staticmethod
        def backward(ctx, g):
            by_x, below, above = Limited.backward(ctx, g)
            return by_x, 2 * below, above

    for target in (Limited, Doubled):
        inputs = {"x": {"shape": [2, 3]}, "low": {"shape": shape}, "high": {"shape": shape}}
        case = gradcli.check(target, inputs, seed=1, order=1).cases[0]
        assert case.verdict is Verdict.FAILED
        noted = [note for note in case.notes if "the gradient is wrong where low is above high" in note]
        assert bool(noted) is (target is Limited), case.notes
        if noted:
            ordered = {
                "x": {"shape": [2, 3]},
                "low": {"shape": shape, "domain": "open-interval", "lo": -1.0, "hi": 0.1},
                "high": {"shape": shape, "domain": "open-interval", "lo": 0.3, "hi": 1.0},
            }
            assert gradcli.check(target, ordered, seed=1, order=1, shrink=False).verdict is Verdict.PASSED


class Losses:
    """Cross entropies with probabilities for targets; right where these sum to 1."""

    def __init__(self, ns: Any) -> None:
        class Loss(ns.autograd.Function):
            @staticmethod
            def forward(ctx, logits, target):
                ctx.save_for_backward(logits, target)
                return -(target * ns.log_softmax(logits, -1)).sum()

            @staticmethod
            def backward(ctx, g):
                logits, target = ctx.saved_tensors
                return g * (ns.softmax(logits, -1) - target), None

        class WithBothGradients(Loss):
            @staticmethod
            def backward(ctx, g):
                logits, target = ctx.saved_tensors
                return g * (ns.softmax(logits, -1) - target), -g * ns.log_softmax(logits, -1)

        class OverRows(Loss):
            @staticmethod
            def backward(ctx, g):
                logits, target = ctx.saved_tensors
                return g * (ns.softmax(logits, 0) - target), None

        class Scaled(Loss):
            @staticmethod
            def backward(ctx, g):
                logits, target = ctx.saved_tensors
                return 1.001 * g * (ns.softmax(logits, -1) - target), None

        self.right, self.wrong = (Loss, WithBothGradients), (OverRows, Scaled)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.usefixtures("unexplained")
def test_targets_of_a_softmax_are_probabilities(ns, seed):
    losses = Losses(ns)
    for target in losses.right:
        case = gradcli.check(target, seed=seed, order=1).cases[0]
        assert case.verdict is Verdict.PASSED, str(case)
        assert case.inputs[1].domain == "simplex"
        assert (case.inputs[1].requires_grad is False) is (target is losses.right[0])
    for target in losses.wrong:
        failed = gradcli.check(target, seed=seed, order=1, shrink=False, only=["gradient"])
        assert failed.verdict is Verdict.FAILED


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("words", "domain"), [("non-negative", "positive"), ("non-negative rows that sum to 1", "simplex"), ("", "simplex")]
)
def test_targets_that_are_said_to_be_non_negative_have_any_sum(ns, words, domain):
    class AnySum(ns.autograd.Function):
        assumes_one = False

        @staticmethod
        def forward(ctx, scores, soft_targets):
            ctx.save_for_backward(scores, soft_targets)
            return (ns.logsumexp(scores, 1) * soft_targets.sum(1) - (soft_targets * scores).sum(1)).sum()

        @classmethod
        def backward(cls, ctx, g):
            scores, soft_targets = ctx.saved_tensors
            total = 1.0 if cls.assumes_one else soft_targets.sum(1)[:, None]
            return g * (total * ns.softmax(scores, 1) - soft_targets), None

    class SumOfOne(AnySum):
        assumes_one = True

    AnySum.__doc__ = SumOfOne.__doc__ = f"scores: (N, V); soft_targets: (N, V), {words}"
    case, of_one = (gradcli.check(each, order=1, shrink=False).cases[0] for each in (AnySum, SumOfOne))
    assert case.verdict is Verdict.PASSED, str(case)
    assert case.inputs[1].domain == domain
    assert (of_one.verdict is Verdict.PASSED) is (domain == "simplex"), str(of_one)


@pytest.mark.sampled(1)
def test_where_a_gradient_is_wrong_for_another_reason_the_order_of_limits_is_not_blamed(ns):
    class Absolute(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, low, high):
            ctx.save_for_backward(low, high)
            return x + low * low + high

        @staticmethod
        def backward(ctx, g):
            low, _ = ctx.saved_tensors
            return g, 2 * g * low.abs(), g

    inputs = {name: {"shape": [2, 3]} for name in ("x", "low", "high")}
    case = gradcli.check(Absolute, inputs, order=1).cases[0]
    assert case.verdict is Verdict.FAILED
    assert not any("above high" in note for note in case.notes), case.notes


@pytest.mark.parametrize("axis", ["0", "ctx.dim", "dim=dim"])
def test_where_the_softmax_may_be_along_another_axis_no_probabilities_are_drawn(axis):
    for text in ("softmax(x, -1)", "log_softmax(logits, dim=-1)", "logsumexp(x, 1)"):
        assert OTHER_AXIS.search(text) is None
    assert OTHER_AXIS.search(f"torch.softmax(x, {axis})") is not None


def test_class_numbers_stay_class_numbers(ns):
    class Chosen(ns.autograd.Function):
        @staticmethod
        def forward(ctx, logits, target):
            ctx.save_for_backward(logits, target)
            return -ns.log_softmax(logits, -1)[ns.arange(len(target)), target].sum()

        @staticmethod
        def backward(ctx, g):
            logits, target = ctx.saved_tensors
            gradient = ns.softmax(logits, -1)
            gradient[ns.arange(len(target)), target] -= 1
            return g * gradient, None

    case = gradcli.check(Chosen, order=1).cases[0]
    assert (case.verdict, case.inputs[1].domain) == (Verdict.PASSED, "indices"), str(case)


def test_labels_without_a_gradient_are_told_how_to_be_given(ns):
    class Hinge(ns.autograd.Function):
        @staticmethod
        def forward(ctx, scores, y):
            ctx.save_for_backward(scores, y)
            return (1 - y * scores).clamp(min=0).mean()

        @staticmethod
        def backward(ctx, g):
            scores, y = ctx.saved_tensors
            return -g * y * (1 - y * scores > 0) / y.numel(), None

    case = gradcli.check(Hinge, order=1, shrink=False).cases[0]
    assert [finding.kind.value for finding in case.findings] == ["missing-gradient"]
    assert any(note.endswith("say so with -i y=3x4,grad=false") for note in case.notes), case.notes
    inputs = {"scores": {"shape": [3, 4]}, "y": {"shape": [3, 4], "requires_grad": False}}
    assert gradcli.check(Hinge, inputs, order=1).verdict is Verdict.PASSED


def fixed_point(ns: Any, *, wrong: bool, largest: int = 40) -> Any:
    class FixedPoint(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any, max_iter: int = largest) -> Any:
            z = ns.zeros_like(x)
            for _ in range(max_iter):
                z = ns.tanh(z @ w.t() + x)
            ctx.save_for_backward(z, w)
            return z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            z, w = ctx.saved_tensors
            slope = 1 - z * z
            jacobian = ns.eye(w.shape[0], dtype=w.dtype) - slope[:, :, None] * w
            solved = ns.linalg.solve(jacobian if wrong else jacobian.transpose(1, 2), g[:, :, None])[:, :, 0]
            return solved * slope, (solved * slope).t() @ z, None

    return FixedPoint


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.usefixtures("unexplained")
def test_an_iteration_converges_at_the_inputs_drawn(ns: Any, wrong: bool) -> None:
    target = fixed_point(ns, wrong=wrong)
    (case,) = gradcli.check(target, order=1, samples=1, shrink=False, only=["gradient"]).cases
    assert case.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), case
    assert any("did not converge at larger numbers" in note for note in case.notes)


@pytest.mark.sampled(1)
def test_an_iteration_that_has_converged_keeps_normal_numbers(ns: Any) -> None:
    class Root(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, max_iter: int = 30) -> Any:
            y = ns.ones_like(a)
            for _ in range(max_iter):
                y = y - (y * y * y + y - a) / (3 * y * y + 1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g / (3 * y * y + 1), None

    (case,) = gradcli.check(Root, order=1, shrink=False).cases
    assert case.verdict is Verdict.PASSED
    assert [spec.domain for spec in case.inputs] == ["normal"]
