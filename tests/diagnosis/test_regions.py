"""The rule by which entries are wrong is told where it holds at other inputs too, with the edge where it lies."""

import numpy as np
import pytest

from gradcli.findings import FindingKind as K
from tests.programs.planted import assert_told, found, function, ns

EVERY = function(lambda x: x.clamp(-0.6, 0.6), lambda g, x, y: g * 1)
UPPER = function(lambda x: x.clamp(-0.5, 0.8), lambda g, x, y: g * (x > -0.5))
INSIDE = function(lambda x: x.clamp(-0.5, 0.8), lambda g, x, y: g * ((x > 0) & (x < 0.8)))
SMALLER = function(lambda a, b: ns.maximum(a, b), lambda g, a, b, y: (g * 1, g * (b >= a)))
MASKED = function(lambda x, mask: x.masked_fill(mask, -1.0), lambda g, x, mask, y: (g * 1, None))
GATED = function(lambda x, z: x * z.clamp(min=0), lambda g, x, z, y: (g * z, g * x * (z > 0)))
LARGEST = function(lambda x: x.max(), lambda g, x, y: g * ns.ones_like(x))
ROWS = function(lambda x: x.max(1)[0], lambda g, x, y: g.unsqueeze(1) * ns.ones_like(x))
BORDER = function(lambda x: x.exp(), lambda g, x, y: ns.nn.functional.pad((g * y)[1:-1, 1:-1], (1, 1, 1, 1)))
HUBER = function(
    lambda x: ns.where(x.abs() < 0.75, 0.5 * x * x, 0.75 * (x.abs() - 0.375)),
    lambda g, x, y: g * x,
)  # fmt: skip


def picks(scores, target):
    return -scores.log_softmax(-1).gather(1, target.unsqueeze(1)).mean()


TARGETS = np.array([0, 3, 2, 0, 1])
PICKED = function(picks, lambda g, x, target, y: (g * x.softmax(-1) / 5, None))

PLANTED = {
    "magnitude": (EVERY, ((4, 5),), "where |arg0| > 0.6 "),
    "upper edge": (UPPER, ((4, 5),), "where arg0 > 0.8 "),
    "between": (INSIDE, ((4, 5),), "where arg0 lies between -0.5 and 0 "),
    "huber": (HUBER, ((4, 5),), "where |arg0| > 0.75 "),
    "another input": (SMALLER, ((4, 3), (4, 3)), "where arg0 < arg1 "),
    "of another input": (GATED, ((3, 4), (3, 4)), "where arg1 < 0 "),
    "mask": (MASKED, ((4, 3), np.random.default_rng(5).random((4, 3)) < 0.5), "for which arg1 is True "),
    "not largest": (LARGEST, ((3, 5),), "where arg0 is not largest "),
    "not largest of rows": (ROWS, ((3, 5),), "where arg0 is not largest along axis 1 "),
    "border": (BORDER, ((5, 5),), "in the border "),
    "from an index on": (
        function(lambda x: (x * x)[:4].sum() + x.sum(), lambda g, x, y: g * (2 * x + 1)),
        ((6,),),
        "from index 4 of axis 0 on ",
    ),
    "picked": (PICKED, ((5, 4), TARGETS), "that arg1 selects along axis 1 "),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_rule_is_told(name, seed):
    made, shapes, says = PLANTED[name]
    assert_told(K.WRONG_ENTRIES, f"wrong only {says}" if "where" in says else says, made, shapes, seed)


@pytest.mark.parametrize("values", [[3.0, -1.0, 2.0, 1.0, 0.5], [-0.2, -3.0, -2.0, 5.0, -0.5]])
def test_one_entry_by_place_is_not_told_by_its_value(values):
    lost = ns.tensor(np.array([1.0, 1.0, 1.0, 0.0, 1.0]))
    made = function(lambda x: x.sin(), lambda g, x, y: g * x.cos() * lost)
    (finding,) = found(made, np.array(values))
    assert finding.predicate == "index 3 along axis 0", finding.message


def test_one_wrong_entry_is_told_by_its_value_where_it_moves_with_it():
    made = function(lambda x: x.clamp(max=2.0), lambda g, x, y: g * 1)
    (finding,) = found(made, np.linspace(-1.9, 2.3, 14))
    assert finding.kind is K.WRONG_ENTRIES
    assert finding.predicate == "arg0 > 2"


def test_the_sign_of_one_entry_is_told():
    turned = ns.tensor(np.array([1.0, 1.0, -1.0, 1.0]))
    made = function(lambda x: x.sin(), lambda g, x, y: g * x.cos() * turned)
    (finding,) = found(made, (4,))
    assert (finding.kind, finding.factor) == (K.WRONG_SIGN, "-1")


def test_the_quotient_of_one_wrong_entry_is_no_factor():
    added = ns.tensor(np.array([0.0, 0.0, 0.3, 0.0]))
    made = function(lambda x: x.sin(), lambda g, x, y: g * (x.cos() + added))
    (finding,) = found(made, (4,))
    assert (finding.kind, finding.factor) == (K.WRONG_ENTRIES, None)


def test_an_entry_that_is_right_at_this_number_alone_is_not_called_right():
    made = function(lambda x: x**3, lambda g, x, y: g * (x * x + x + 1))
    (finding,) = found(made, np.array([1.0, 2.0, 3.0]))
    assert finding.kind is K.WRONG_GRADIENT, finding.message


def test_a_wrong_term_that_is_small_at_small_values_is_not_told_by_a_threshold():
    values = np.array([[0.004, -0.003, 1.3, 0.9], [0.002, -1.1, 0.7, -0.001], [1.9, -0.6, 0.003, 0.5]])
    made = function(lambda x: x + 0.1 * (x**4 + x.tanh()), lambda g, x, y: g * (1.1 + 0.3 * x**3 - 0.1 * x.tanh() ** 2))
    (finding,) = found(made, values)
    assert finding.predicate is None, finding.message


def test_an_entry_that_is_right_does_not_hide_what_the_others_lack():
    made = function(lambda x: x.cumsum(0), lambda g, x, y: g * 1)
    assert_told(K.MISSING_TERM, "only the diagonal of the Jacobian", made, ((5,),), 0)


def test_entries_wrong_for_one_output_each_are_told_together():
    made = function(
        lambda x: (x[:2] * 3, x[2:] * 2), lambda g, h, x, y, z: ns.cat([g[:1] * 3, g[1:], h[:1], 2 * h[1:]])
    )
    (finding,) = found(made, (5,))
    assert finding.kind is K.WRONG_ENTRIES
    assert "[1], [2] (2 of 5 entries)" in finding.message


def upwinded(down):
    """Fluxes that take the value of one side or the other, by the sign of a velocity, whose gradient `down` returns."""

    def forward(u, c):
        return ns.where(c > 0, c * u, c * ns.roll(u, -1, 0))

    return function(forward, lambda g, u, c, y: (down(g, c), g * ns.where(c > 0, u, ns.roll(u, -1, 0))))


def split(shift):
    def back(g, c):
        zero = ns.zeros_like(g)
        return ns.where(c > 0, g * c, zero) + ns.roll(ns.where(c > 0, zero, g * c), shift, 0)

    return back


@pytest.mark.parametrize(("shift", "right"), [(1, True), (-1, False)])
def test_few_entries_that_are_permuted_alone_prove_no_rule(shift, right):
    """Which of three is the smaller of two inputs stays so, however their pairs are permuted."""
    u, c = np.array([0.174, -1.376, -1.249]), np.array([1.136, -1.452, 0.437])
    for finding in (findings := found(upwinded(split(shift)), u, c)):
        assert finding.predicate is None
    assert (not findings) is right


@pytest.mark.parametrize(("factor", "right"), [(6, True), (3, False), (2, False)])
def test_a_term_that_is_too_small_to_count_at_small_values_has_no_rule(factor, right):
    made = function(lambda x: x + 0.2 * x**6, lambda g, x, y: g * (1 + factor * 0.2 * x**5))
    findings = found(made, np.array([0.03, -0.9, 0.05, 1.4, 0.09, -0.16, 0.3, -1.2]))
    assert (not findings) is right
    assert all(finding.predicate is None and "wrong only" not in finding.message for finding in findings)
