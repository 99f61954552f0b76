"""The battery: what each check says of Functions that keep or break its property."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from gradcli.checks.registry import CHECKS
from gradcli.errors import UserCodeError
from gradcli.findings import FindingKind
from gradcli.verdict import Reason, Verdict
from tests.checks.frameworks import constant, decided, examined, tensor


def scaled(ns, forward_extra=lambda x: x, backward=lambda ctx, g: g * ctx.k):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=2.0):
            ctx.k = k
            return forward_extra(x * k)

        @staticmethod
        def backward(ctx, g):
            return backward(ctx, g), None

    return Scaled


@pytest.mark.parametrize(("returned", "noted"), [(1, True), (2, False)])
def test_values_missing_for_parameters_left_at_their_defaults_are_noted(backend, ns, returned, noted):
    class Halved(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, mode="half"):
            return x / 2

        @staticmethod
        def backward(ctx, g):
            return (g / 2, None)[:returned]

    verdict, evidence = decided(backend, Halved, tensor("x", [1.0, 2.0]))
    assert verdict is Verdict.PASSED
    notes = [e.note for e in evidence if e.check == "returns"]
    expected = (
        "backward returns 1 value for 2 parameters: a call that passes mode will fail, unless backward returns more "
        "then; return one value for each parameter"
    )
    assert notes == [expected if noted else None]


def test_names_are_unique_and_every_check_says_what_it_holds():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(check.sentence for check in CHECKS)


def test_only_and_skip_choose_the_checks_and_a_skip_is_shown(backend, ns):
    _, evidence = decided(backend, scaled(ns), tensor("x", [1.0, 2.0]), only=("gradient",))
    assert {e.check for e in evidence if e.verdict is not Verdict.SKIPPED} == {"gradient"}
    _, evidence = decided(backend, scaled(ns), tensor("x", [1.0, 2.0]), skip=("linearity",))
    assert [e.verdict for e in evidence if e.check == "linearity"] == [Verdict.SKIPPED]


def test_a_forward_that_draws_unseeded_numbers_is_nondeterministic(backend, ns):
    noisy = scaled(ns, forward_extra=lambda y: y + float(np.random.default_rng().normal()))
    verdict, _, findings = examined(backend, noisy, tensor("x", [1.0, 2.0]))
    assert verdict is Verdict.FAILED
    assert findings[0].kind is FindingKind.NONDETERMINISTIC_FORWARD


def dropout(ns, of_cotangent):
    class Dropout(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = (ns.rand(4) > 0.25).to(x.dtype)
            ctx.save_for_backward(mask)
            return x * mask

        @staticmethod
        def backward(ctx, g):
            (mask,) = ctx.saved_tensors
            return of_cotangent(g) * mask

    return Dropout


def test_a_forward_that_draws_from_the_seeded_generator_passes(backend, ns):
    verdict, _ = decided(backend, dropout(ns, lambda g: g), tensor("x", [1.0, 2.0, -0.5, 0.25]))
    assert verdict is Verdict.PASSED


REDRAWS = {
    "a mask drawn again": lambda ns, ctx, g: 2 * g * (ns.rand(4) > 0.5).to(g.dtype),
    "noise added": lambda ns, ctx, g: ctx.k * g + 0.1 * ns.randn(4).to(g.dtype),
    "Gumbel's noise drawn again": lambda ns, ctx, g: g * ns.softmax(-ns.log(-ns.log(ns.rand(4))), 0).to(g.dtype),
}


@pytest.mark.parametrize("redraw", REDRAWS.values(), ids=REDRAWS.keys())
@pytest.mark.parametrize("draws", [True, False], ids=["forward draws too", "backward alone"])
def test_a_backward_that_draws_for_itself_is_nondeterministic_and_nothing_else(backend, ns, redraw, draws):
    noisy = scaled(
        ns,
        forward_extra=lambda y: y + ns.rand(4).to(y.dtype) if draws else y,
        backward=lambda ctx, g: redraw(ns, ctx, g),
    )
    verdict, _, findings = examined(backend, noisy, tensor("x", [1.0, 2.0, -0.5, 0.25]))
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.NONDETERMINISTIC_BACKWARD}


def test_a_nonlinear_backward_beside_a_mask_kept_from_forward_is_called_nonlinear(backend, ns):
    clipped = dropout(ns, lambda g: g.clamp(-1.0, 1.0))
    verdict, _, findings = examined(backend, clipped, tensor("x", [1.0, 2.0, -0.5, 0.25]))
    assert verdict is Verdict.FAILED
    assert findings[0].kind is FindingKind.NONLINEAR_BACKWARD


def test_a_backward_that_sets_the_seed_before_it_draws_again_passes(backend, ns):
    class Replayed(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ns.manual_seed(5)
            return x * (ns.rand(4) > 0.5).to(x.dtype)

        @staticmethod
        def backward(ctx, g):
            ns.manual_seed(5)
            return g * (ns.rand(4) > 0.5).to(g.dtype)

    verdict, _ = decided(backend, Replayed, tensor("x", [1.0, 2.0, -0.5, 0.25]))
    assert verdict is Verdict.PASSED


def test_float32_inputs_are_judged_in_float64_and_their_own_backward_is_compared(backend, ns):
    x = tensor("x", np.array([0.5, -1.25, 2.0], dtype=np.float32))
    verdict, evidence = decided(backend, scaled(ns), x)
    assert verdict is Verdict.PASSED
    assert any(e.check == "precision" and "float32" in (e.note or "") for e in evidence)

    def wrong_in_float32(ctx, g):
        return g * ctx.k if g.dtype == ns.float64 else g * (ctx.k + 0.1)

    verdict, _, findings = examined(backend, scaled(ns, backward=wrong_in_float32), x)
    assert verdict is Verdict.FAILED
    assert {f.kind for f in findings} == {FindingKind.LOW_PRECISION}


def test_once_differentiable_is_shown_and_not_failed(backend, ns):
    once = (ns.autograd.function if hasattr(ns.autograd, "function") else ns.autograd).once_differentiable

    class Square(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    verdict, evidence = decided(backend, Square, tensor("x", [1.0, 2.0]))
    assert verdict is Verdict.PASSED
    shown = [e for e in evidence if e.check == "higher-order"]
    assert [e.verdict for e in shown] == [Verdict.SKIPPED]
    assert "once_differentiable" in shown[0].note


def loss(ns, spoilt=False):
    class SquaredError(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, target):
            ctx.save_for_backward(x, target)
            return ((x - target) ** 2).sum()

        @staticmethod
        def backward(ctx, g):
            x, target = ctx.saved_tensors
            gx = 2 * g * (x - target)
            return (gx * 0.5 if spoilt and ctx.needs_input_grad[1] else gx), None

    return SquaredError


def test_an_input_without_gradient_is_left_alone_and_mentioned(backend, ns):
    given = tensor("x", [1.0, 2.0]), tensor("target", [0.5, 0.25], grad=False)
    verdict, evidence = decided(backend, loss(ns), *given)
    assert verdict is Verdict.PASSED
    assert any("target does not require a gradient" in (e.note or "") for e in evidence)


def test_an_input_whose_tracking_spoils_another_gradient_is_found(backend, ns):
    given = tensor("x", [1.0, 2.0]), tensor("target", [0.5, 0.25], grad=False)
    verdict, _, findings = examined(backend, loss(ns, spoilt=True), *given)
    assert verdict is Verdict.FAILED
    assert findings[0].input == "x"
    assert "requiring a gradient too" in findings[0].message


@pytest.mark.sampled(3)
@pytest.mark.parametrize("given", [(), (constant("k", 1.0),), (constant("k", 1),)])
def test_a_neutral_constant_does_not_hide_a_missing_factor(backend, ns, given):
    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, k=1.0):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g, None

    verdict, _, findings = examined(backend, Scaled, tensor("x", [1.0, 2.0]), *given)
    assert verdict is Verdict.FAILED
    assert findings[0].kind is FindingKind.WRONG_FACTOR
    assert "k=" in findings[0].message


def test_nothing_to_compare_is_no_signal(backend, ns):
    for value, grad in (([], True), ([1.0], False)):
        verdict, evidence = decided(backend, scaled(ns), tensor("x", value, grad=grad))
        assert verdict is Verdict.INCONCLUSIVE
        assert {e.reason for e in evidence if e.reason is not None} == {Reason.NO_SIGNAL}


def test_a_target_without_a_tracked_input_is_told_so(backend):
    _, evidence = decided(backend, lambda x: x * 2, tensor("x", [1.0], grad=False))
    assert "no input requires a gradient, so there is nothing to check" in {e.note for e in evidence}


def test_a_forward_that_is_not_finite_is_out_of_its_domain(backend, ns):
    verdict, evidence = decided(backend, scaled(ns, forward_extra=lambda y: y * float("nan")), tensor("x", [1.0, 2.0]))
    assert verdict is Verdict.INCONCLUSIVE
    assert Reason.DOMAIN in {e.reason for e in evidence}


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_what_the_users_code_raises_is_the_users_error(backend, ns, error):
    def raises(ctx, g):
        raise error

    with pytest.raises(UserCodeError, match="backward raised") as caught:
        examined(backend, scaled(ns, backward=raises), tensor("x", [1.0, 2.0]))
    assert caught.value.phase == "backward"
    assert caught.value.line is not None


def test_arguments_are_not_changed_by_a_check(backend, ns):
    class DoubleInPlace(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    given = tensor("x", np.array([1.0, -2.0]))
    kept = replace(given, value=given.value.copy())
    verdict, _ = decided(backend, DoubleInPlace, given)
    assert verdict is Verdict.PASSED
    np.testing.assert_array_equal(given.value, kept.value)


def test_the_users_random_generators_are_left_as_they_were(backend, ns):
    ns.manual_seed(123)
    before = ns.rand(3).tolist()
    ns.manual_seed(123)
    examined(backend, scaled(ns), tensor("x", [1.0, 2.0]))
    assert ns.rand(3).tolist() == before


def test_a_backward_that_returns_too_large_a_shape_is_noted_where_the_sum_is_right(backend, ns):
    class AddBias(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, bias):
            return x + bias

        @staticmethod
        def backward(ctx, g):
            return g, g

    verdict, evidence = decided(backend, AddBias, tensor("x", np.eye(3)), tensor("bias", [1.0, 2.0, 3.0]))
    assert verdict is Verdict.PASSED
    assert any("accepted, because the framework sums it" in (e.note or "") for e in evidence)


@pytest.mark.parametrize(("by", "verdict"), [(2.0**-50, Verdict.PASSED), (1e-11, Verdict.FAILED)])
def test_calls_may_part_by_what_rounding_does_and_no_more(backend, ns, by, verdict):
    calls = itertools.count()

    class Varying(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return ns.exp(x) * (1 + by * (next(calls) % 3))

        @staticmethod
        def backward(ctx, g):
            return g * ns.exp(ctx.saved_tensors[0])

    found, _, findings = examined(backend, Varying, tensor("x", [0.5, -1.0, 2.0]))
    assert found is verdict
    assert {f.kind for f in findings} == ({FindingKind.NONDETERMINISTIC_FORWARD} if found is Verdict.FAILED else set())


@pytest.mark.parametrize("real", [True, False])
def test_a_complex_gradient_of_a_real_input_is_a_finding(backend, ns, real):
    class Scale(ns.autograd.Function):
        @staticmethod
        def forward(ctx, r, z):
            ctx.save_for_backward(r, z)
            return r * z

        @staticmethod
        def backward(ctx, g):
            r, z = ctx.saved_tensors
            gradient = g * z.conj()
            return gradient.real if real else gradient, g * r

    verdict, _, findings = examined(backend, Scale, tensor("r", [0.5, 2.0]), tensor("z", [1 + 2j, 3 - 1j]))
    assert verdict is (Verdict.PASSED if real else Verdict.FAILED)
    assert [(f.kind, f.input) for f in findings] == ([] if real else [(FindingKind.WRONG_DTYPE, "r")])


@pytest.mark.parametrize(
    ("returned", "kind"),
    [(lambda g: (g.sum(), None), FindingKind.WRONG_SHAPE), (lambda g: (g, None, g), FindingKind.WRONG_ARITY)],
)
def test_what_the_framework_refuses_of_a_function_inside_is_a_finding_at_its_backward(backend, ns, returned, kind):
    class Inside(scaled(ns)):
        @staticmethod
        def backward(ctx, g):
            return returned(g)

    verdict, _, findings = examined(backend, lambda x: ns.sin(Inside.apply(x)), tensor("x", [1.0, 2.0]))
    assert verdict is Verdict.FAILED
    assert [finding.kind for finding in findings] == [kind]
    assert findings[0].message.startswith("in Inside, which the checked function calls, ")
    assert findings[0].location is not None
    assert findings[0].location.file == __file__


@pytest.mark.parametrize("check", ["gradient", "higher-order", "constants"])
def test_a_fault_of_the_checker_is_not_blamed_on_the_user(backend, ns, monkeypatch, check):
    def broken(*arguments, **keywords):
        raise TypeError("a fault of the numerics")

    module = "variants" if check == "constants" else "gradient"
    monkeypatch.setattr(f"gradcli.checks.{module}.verify", broken)
    with pytest.raises(TypeError, match="a fault of the numerics"):
        examined(backend, scaled(ns), tensor("x", [1.0, 2.0]), constant("k", 3.0), only=(check,))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", [0, 2, 5, 18, 30, 51])
def test_a_saturated_softmax_is_all_cancellation_and_passes(backend, ns, seed):
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = ns.softmax(x, 1)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return y * (g - (g * y).sum(1, keepdim=True))

    x = tensor("x", 30 * np.random.default_rng(seed).normal(size=(3, 4)))
    verdict, evidence = decided(backend, Softmax, x)
    assert verdict is not Verdict.FAILED, [e for e in evidence if e.verdict is Verdict.FAILED]
