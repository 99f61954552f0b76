"""Searches at long inputs run backward at a part of them, and prove what they find at the whole."""

import numpy as np
import pytest

from gradcli import engine as torch
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.slips.naming import with_correction
from gradcli.diagnosis.slips.shortened import shortened
from gradcli.findings import FindingKind
from gradcli.results import Finding, Mismatch
from tests.programs.planted import ENGINE, function, subject_of

WRONG = Finding(kind=FindingKind.WRONG_GRADIENT, message="", input="x")


def mismatch_at(column, point, place=0):
    """A mismatch that was measured at one entry of an input."""
    one = np.ones((1, 1))
    rows, columns = np.array([0]), np.array([column])
    return Mismatch(
        input=place, output=0, order=1, claimed=one, numeric=2 * one, bound=0 * one, rows=rows, columns=columns,
        complete=False, point=point, input_value=point, output_value=point,
    )  # fmt: skip


def test_the_part_contains_the_wrong_entry():
    subject = subject_of(function(lambda x: x * x, lambda g, x, y: g * x), (20_000,))
    short = shortened(Facts(subject, 0), 0, mismatch_at(17_000, subject.point))
    (value,) = (a.value for a in short.subject.arguments)
    assert value.size <= 1000
    assert subject.point[17_000] in value


@pytest.mark.parametrize("column", [0, 19_999])
def test_the_part_lies_inside(column):
    subject = subject_of(function(lambda x: x * x, lambda g, x, y: g * x), (20_000,))
    short = shortened(Facts(subject, 0), 0, mismatch_at(column, subject.point))
    assert subject.point[column] in short.subject.arguments[0].value


def test_axes_of_equal_size_are_cut_alike():
    made = function(lambda a, b: a @ b, lambda g, a, b, y: (g @ b.T, a.T @ g))
    subject = subject_of(made, (150, 90), (90, 70))
    one, other = (a.value for a in shortened(Facts(subject, 0), 0, None).subject.arguments)
    assert one.shape[1] == other.shape[0]
    assert one.size + other.size <= 1000


def test_short_inputs_are_not_cut():
    subject = subject_of(function(lambda x: x * x, lambda g, x, y: g * x), (10_000,))
    assert shortened(Facts(subject, 0), 0, None) is None


def test_indices_are_not_cut():
    made = function(lambda x, i: x[i], lambda g, x, i, y: (torch.zeros_like(x).index_add(0, i, g), None))
    subject = subject_of(made, (20_000,), np.arange(19_999, -1, -1))
    assert shortened(Facts(subject, 0), 0, None) is None


def test_none_where_forward_refuses_the_part():
    def forward(x):
        if x.numel() < 15_000:
            raise ValueError("too short")
        return x * x

    subject = subject_of(function(forward, lambda g, x, y: g * x), (20_000,))
    assert shortened(Facts(subject, 0), 0, None) is None


class Halved(torch.autograd.Function):
    """x², with half of its gradient."""

    @staticmethod
    def forward(ctx, x):
        """The square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        """Lacks a factor."""
        (x,) = ctx.saved_tensors
        return g * x


class HalvedIfLong(torch.autograd.Function):
    """x², with half of its gradient where x is long."""

    @staticmethod
    def forward(ctx, x):
        """The square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        """Right for a short x."""
        (x,) = ctx.saved_tensors
        return g * x * (2 if x.numel() < 10_000 else 1)


def bound(target, entries):
    """A Function bound to random numbers."""
    return ENGINE.bind(target, ENGINE.adopt([np.random.default_rng(0).normal(size=entries)]))


@pytest.mark.parametrize("name", ["returned_for", "returned_again"])
def test_a_slip_at_long_inputs_is_corrected_in_few_long_runs(name, monkeypatch):
    facts, own, sizes = Facts(bound(Halved, 20_000), 0), getattr(Facts, name), []

    def counted(self, cotangent):
        sizes.append(self.subject.domain.size)
        return own(self, cotangent)

    monkeypatch.setattr(Facts, name, counted)
    text = with_correction(WRONG, facts, 0).corrected
    assert text is not None
    assert "2 * " in text or "* 2" in text or "x + x" in text
    assert sizes.count(20_000) < 10 < len(sizes) - sizes.count(20_000)


def test_a_mistake_that_only_long_inputs_show_is_searched_for_there(monkeypatch):
    # A loaded machine needs longer than a case may take; what is searched for does not depend on it.
    monkeypatch.setattr("gradcli.watchdog.case.OPTIONAL_SECONDS", 3600.0)
    monkeypatch.setattr("gradcli.diagnosis.slips.search._SECONDS", 1800.0)
    facts = Facts(bound(HalvedIfLong, 20_000), 0)
    with_correction(WRONG, facts, 0)
    assert not facts.searches["expressions of backward, at smaller inputs"].shows(0)
    assert facts.searches["expressions of backward"].shows(0)
