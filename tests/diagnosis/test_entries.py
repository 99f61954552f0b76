"""Which entries of a wrong gradient are shown."""

from types import SimpleNamespace

import numpy as np
import pytest

import gradcli
from gradcli.checks.battery import run_battery
from gradcli.diagnosis.entries import _columns, shows
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.naming import without_names
from gradcli.results import Entry, Mismatch
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.programs.planted import found, function, ns, subject_of


def test_the_wrong_entries_are_shown_where_their_sum_over_the_outputs_is_unknown():
    right = np.diag([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    wrong, bound = right.copy(), np.where(right == 0, np.inf, 1e-6)
    wrong[7, 7] = wrong[6, 6] = 0.5
    subject = SimpleNamespace(
        domain=SimpleNamespace(blocks=[SimpleNamespace(entries=8)]), codomain=SimpleNamespace(slices=[slice(0, 8)])
    )
    mismatch = Mismatch(
        input=0,
        output=0,
        order=1,
        claimed=wrong,
        numeric=right,
        bound=bound,
        rows=np.arange(8),
        columns=np.arange(8),
        complete=True,
        point=np.ones(8),
        input_value=np.ones(8),
        output_value=np.ones(8),
    )
    assert _columns(SimpleNamespace(subject=subject, cotangents=np.ones((1, 8))), 0, mismatch, 1, 0) == [6, 7]
    known = Mismatch(
        **{name: getattr(mismatch, name) for name in Mismatch.__slots__} | {"bound": np.full((8, 8), 1e-6)}
    )
    assert _columns(SimpleNamespace(subject=subject, cotangents=np.ones((1, 8))), 0, known, 1, 0) == [6, 7]


def test_where_every_error_is_within_its_bound_the_entries_with_the_largest_in_bounds_are_shown():
    """An error that autodiff shows may be below the bound of a single entry: the others are right to twelve digits."""
    right, off = np.diag([1e-6, 1.0, 2e-6, 3.0]), np.diag([1e-6, 4e-14, 2e-6, 0.0])
    bound = np.where(right > 0, np.diag([7e-6, 1e-12, 8e-6, 1e-12]), 1e-12)
    subject = SimpleNamespace(
        domain=SimpleNamespace(blocks=[SimpleNamespace(entries=4)]), codomain=SimpleNamespace(slices=[slice(0, 4)])
    )
    mismatch = Mismatch(
        input=0,
        output=0,
        order=1,
        claimed=right + off,
        numeric=right,
        bound=bound,
        rows=np.arange(4),
        columns=np.arange(4),
        complete=True,
        point=np.ones(4),
        input_value=np.ones(4),
        output_value=np.ones(4),
    )
    shown = SimpleNamespace(subject=subject, cotangents=np.ones((1, 4)))
    assert _columns(shown, 0, mismatch, 1, 0) == [0, 2]


@pytest.mark.parametrize("lost", ["all", "some"])
def test_entries_that_were_measured_are_listed_first(lost, monkeypatch):
    """Where no time is left to measure entries of all outputs, those of the table of one output are shown."""
    measured = Facts.entry_slope

    def entry_slope(self, place, coordinate, row):
        late = lost == "all" or coordinate < 2
        return (0.0, np.inf) if late else measured(self, place, coordinate, row)

    monkeypatch.setattr(Facts, "entry_slope", entry_slope)
    made = function(lambda x: (x.sin(), x.exp()), lambda g, h, x, *y: 1.3 * g * x.cos() + h * x.exp() * x.cos())
    entries = [entry for finding in found(made, (5,)) for entry in finding.entries]
    known = [bool(np.isfinite(entry.bound)) for entry in entries]
    assert any(known)
    assert known == sorted(known, reverse=True)
    assert all(known) or lost == "some"


def test_the_number_of_a_gradient_with_an_axis_too_many_is_shown():
    swish = function(lambda x, b: x * (b * x).sigmoid(), lambda g, x, b, y: (g, (2 * g * x).sum().reshape(1)))
    shown = {finding.input: finding.entries for finding in found(swish, (3, 4), ())}
    (entry,) = shown["arg1"]
    assert entry.returned_shape is None
    assert isinstance(entry.analytic, float)


def off(entry):
    return abs((entry.analytic or 0.0) - entry.numeric) / abs(entry.numeric)


def clipped(torch, conjugated):
    """Complex numbers clipped to the unit disc; outside, the derivative along conj(z) takes the conjugate."""

    class Clipped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z / z.abs().clamp(min=1.0)

        @staticmethod
        def backward(ctx, g):
            (z,) = ctx.saved_tensors
            r = z.abs().clamp(min=1.0)
            along = ((g.conj() if conjugated else g) * z).real
            return g / r - (z.abs() > 1) * along * z / r**3

    return Clipped


@pytest.mark.parametrize(("conjugated", "verdict"), [(True, Verdict.PASSED), (False, Verdict.FAILED)])
def test_an_error_of_imaginary_cotangents_shows_in_the_entries(conjugated, verdict):
    torch = pytest.importorskip("torch", reason="the engine has no complex numbers")
    z = torch.tensor([0.3 - 0.7j, -1.2 + 0.4j, 0.5 + 1.1j, 0.1 - 2j], dtype=torch.complex128, requires_grad=True)
    options = {"order": 1, "shrink": False, "only": "gradient"}
    (case,) = gradcli.check(clipped(torch, conjugated), (z,), **options).cases
    assert case.verdict is verdict
    for finding in case.findings:
        assert finding.factor is None
        assert "only for a grad_output with an imaginary part" in finding.message
        assert max(map(off, finding.entries)) > 0.1


@pytest.mark.parametrize(("small", "large", "output"), [(1, 3, 0), (3, 1, None), (3, 3, None)])
def test_an_error_of_a_small_output_shows_for_that_output(small, large, output):
    made = function(lambda x: (1e-18 * x**3, x**3), lambda g, h, x, *y: small * 1e-18 * g * x**2 + large * h * x**2)
    findings = found(made, np.linspace(0.5, 2.0, 5))
    assert bool(findings) is (small != large)
    for finding in findings:
        assert ("comes from output 0, which is far smaller" in finding.message) is (output == 0)
        assert max(map(off, finding.entries)) > 0.5


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
@pytest.mark.parametrize(("factor", "shown"), [(1.01, 0.01), (1.0, 0.5)])
def test_an_error_that_a_sum_over_outputs_hides_shows_for_one_of_them(factor, shown, framework):
    """Half of each element of grad_output goes to another entry; a factor of all shows in the sum as well."""
    own = pytest.importorskip(framework)

    class Blurred(own.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return factor * g if factor > 1 else 0.995 * (g + g.flip(0)) / 2

    (finding,) = gradcli.check(Blurred, {"x": {"shape": [4]}}, order=1, samples=1, shrink=False).cases[0].findings
    assert max(abs(e.analytic - e.numeric) for e in finding.entries) == pytest.approx(shown, rel=0.02)
    assert all((e.output_index != ()) == (factor == 1.0) for e in finding.entries)


@pytest.mark.parametrize("framework", ["gradcli.engine", "torch"])
def test_a_gradient_that_the_framework_sums_is_shown_as_summed(framework):
    own = pytest.importorskip(framework)

    def case(factor):
        class Scaled(own.autograd.Function):
            @staticmethod
            def forward(ctx, x, alpha):
                ctx.save_for_backward(x, alpha)
                return alpha * x

            @staticmethod
            def backward(ctx, g):
                x, alpha = ctx.saved_tensors
                return g * alpha, factor * (g * x).sum(1, keepdim=True)

        inputs = {"x": {"shape": [3, 4]}, "alpha": {"shape": []}}
        return gradcli.check(Scaled, inputs, order=1, samples=1, shrink=False).cases[0]

    assert case(1).verdict is Verdict.PASSED
    (entry,) = case(1.5).findings[0].entries
    assert entry.analytic == pytest.approx(1.5 * entry.numeric)


def test_a_complex_nan_is_an_error_after_an_overflow_too():
    """Python's abs takes the overflow that an earlier call left in errno for one of its own."""
    with pytest.raises(OverflowError):
        abs(complex(1e308, 1.7e308))
    assert shows(Entry(index=(0,), analytic=complex("nan+nanj"), numeric=1.0 + 2.0j, bound=1e-9))
    assert not shows(Entry(index=(0,), analytic=1.0 + 2.0j, numeric=1.0 + 2.0j, bound=1e-9))


@pytest.mark.parametrize(("lost", "kind"), [(np.nan, "non-finite-gradient"), (2.0, "wrong-gradient")])
def test_without_time_for_a_name_what_is_not_finite_is_called_so(lost, kind):
    made = function(lambda x: x.sin(), lambda g, x, y: g * x.cos() * ns.where(x > 1, lost, 1.0))
    subject = subject_of(made, np.array([0.5, 0.25, 1.5]))
    evidence = run_battery(subject, Settings(order=1), seed=0)
    (finding,) = without_names([e for e in evidence if e.verdict is Verdict.FAILED and e.check == "gradient"], subject)
    assert finding.kind.value == kind
    assert ("not finite, although the derivative is" in finding.message) is (kind == "non-finite-gradient")
    assert "inf times" not in finding.message
