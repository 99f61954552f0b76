"""What is a batch: rows that stand alone and statistics of them are one, entries that belong together are not."""

import pytest

from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.batch.functions import GENERATOR, W, X, of_rows
from tests.checks.frameworks import decided, examined, tensor


def written_for_these_sizes(ns):
    """Functions whose backward is right at the sizes given, of inputs whose leading axis is no batch, with an input."""
    differences = ns.tensor([[-1.0, 1.0, 0.0, 0.0], [0.0, -1.0, 1.0, 0.0], [0.0, 0.0, -1.0, 1.0]], dtype=ns.float64)
    return {
        "a matrix": (lambda x: x.diagonal().sum(), lambda x, g: g * ns.eye(3, dtype=g.dtype), (3, 3)),
        "a sequence": (
            lambda x: ((x[1:] - x[:-1]) ** 2).sum(),
            lambda x, g: 2 * g * differences.t().mm(differences).mv(x),
            (4,),
        ),
        "one row": (lambda x: x * x, lambda x, g: 2 * g.reshape(1, 3) * x, (1, 3)),
        "positions": (
            lambda x: x * ns.arange(x.shape[0], dtype=x.dtype)[:, None],
            lambda x, g: g * differences.new_tensor([[0.0], [1.0], [2.0], [3.0]]),
            (4, 2),
        ),
    }


@pytest.mark.parametrize("name", ["a matrix", "a sequence", "one row", "positions"])
def test_what_is_no_batch_may_insist_on_its_size(backend, ns, name):
    forward, backward, shape = written_for_these_sizes(ns)[name]
    x = tensor("x", GENERATOR.normal(size=shape))
    verdict, evidence = decided(backend, of_rows(ns, forward, backward), x, sweep=True, order=1)
    assert verdict is Verdict.PASSED
    assert not [e for e in evidence if e.check in ("sizes", "empty")]


def test_fewer_entries_are_not_tried_where_they_are_added_up(backend, ns):
    def of_three_at_least(x, g):
        return 2 * g * x + 0 * x[2]

    function = of_rows(ns, lambda x: (x * x).sum(), of_three_at_least)
    verdict, evidence = decided(backend, function, tensor("x", [0.5, -1.5, 2.0]), sweep=True, order=1)
    assert verdict is Verdict.PASSED
    assert {e.check for e in evidence} & {"sizes", "empty"} == {"sizes"}


def pairs(ns):
    """Functions of axes that are no batch, each with a backward for the size given, and an input.

    Two numbers that stand for a complex one, a quaternion, a plane's coordinates, and entries that are taken together.
    """

    def two(x, g, by_x, by_y):
        return ns.stack([g * by_x, g * by_y])

    pair, quad = [0.6, -0.8], [0.5, -1.5, 2.0, 0.7]
    return {
        "the absolute value of a complex number": (
            lambda x: (x * x).sum() ** 0.5,
            lambda x, g: two(x, g, *[x[k] / (x[0] ** 2 + x[1] ** 2) ** 0.5 for k in (0, 1)]),
            pair,
        ),
        "its logarithm": (
            lambda x: 0.5 * ns.log((x**2).sum()),
            lambda x, g: two(x, g, *[x[k] / (x[0] ** 2 + x[1] ** 2) for k in (0, 1)]),
            pair,
        ),
        "absolute values of complex numbers": (
            lambda x: (x[0] ** 2 + x[1] ** 2) ** 0.5,
            lambda x, g: ns.stack([g * x[k] / (x[0] ** 2 + x[1] ** 2) ** 0.5 for k in (0, 1)]),
            [pair * 2, [1.0, 2.0, -0.5, 0.25]],
        ),
        "the first and the last": (lambda x: x[0] * 2 + x[-1] * 2, lambda x, g: two(x, g, 2.0, 2.0), pair),
        "a product of two": (lambda x: x.prod(), lambda x, g: two(x, g, x[1], x[0]), pair),
        "a unit vector": (
            lambda x: x / (x * x).sum() ** 0.5,
            lambda x, g: (
                (g - x * (x[0] * g[0] + x[1] * g[1]) / (x[0] ** 2 + x[1] ** 2)) / (x[0] ** 2 + x[1] ** 2) ** 0.5
            ),
            pair,
        ),
        "a softmax of two": (
            lambda x: ns.softmax(x, 0),
            lambda x, g: (g[0] - g[1]) * ns.softmax(x, 0).prod() * ns.tensor([1.0, -1.0], dtype=x.dtype),
            pair,
        ),
        "a quaternion's norm": (
            lambda x: (x * x).sum() ** 0.5,
            lambda x, g: g * x.reshape(4) / (x[0] ** 2 + x[1] ** 2 + x[2] ** 2 + x[3] ** 2) ** 0.5,
            quad,
        ),
        "the largest of two": (
            lambda x: x.max(),
            lambda x, g: two(x, g, (x[0] > x[1]).to(x.dtype), (x[1] > x[0]).to(x.dtype)),
            pair,
        ),
        "a cloud of points by coordinates": (
            lambda x: ((x * x).sum(0) ** 0.5).sum(),
            lambda x, g: g * ns.stack([x[k] / (x[0] ** 2 + x[1] ** 2 + x[2] ** 2) ** 0.5 for k in (0, 1, 2)]),
            [pair * 2, [1.0, 2.0, -0.5, 0.25], [0.3, 0.1, 0.7, -0.2]],
        ),
    }


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", pairs(None))
def test_entries_that_are_one_thing_together_are_no_batch(backend, ns, name):
    forward, backward, value = pairs(ns)[name]
    verdict, evidence, findings = examined(
        backend, of_rows(ns, forward, backward), tensor("x", value), sweep=True, order=1
    )
    assert verdict is Verdict.PASSED, findings
    assert not [e for e in evidence if e.check in ("sizes", "empty") and e.verdict is not Verdict.SKIPPED]
    wrong = of_rows(ns, forward, lambda *saved: 1.5 * backward(*saved))
    assert decided(backend, wrong, tensor("x", value), order=1)[0] is Verdict.FAILED


def normalised(x):
    return (x - x.mean(0)) / ((x - x.mean(0)) ** 2).mean(0) ** 0.5


def of_normalised(rows):
    def backward(x, g):
        y, s = normalised(x), ((x - x.mean(0)) ** 2).mean(0) ** 0.5
        n = rows or x.shape[0]
        return (g - g.sum(0) / n - y * (g * y).sum(0) / n) / s

    return backward


def weighted(x, w):
    return ((x * x).sum(1) * w).sum() / w.sum()


def of_weighted(rows):
    def backward(x, w, g):
        whole = w.sum() * x.shape[0] / (rows or x.shape[0])
        return 2 * g * x * w[:, None] / whole, g * ((x * x).sum(1) - weighted(x, w)) / whole

    return backward


WEIGHTS = tensor("w", [0.5, 1.5, 2.0, 0.25])


STATISTICS = {
    "a normalisation over the batch": (normalised, of_normalised, 4, (X,)),
    "a weighted mean": (weighted, of_weighted, 4, (X, WEIGHTS)),
    "a sum with a penalty": (
        lambda x, w: (x * x).sum() + 9 * (w * w).sum(),
        lambda rows: lambda x, w, g: (2 * g * x, 18 * g * w * (1 if rows is None else x.shape[0] / rows)),
        4,
        (X, W),
    ),
    "rows of a linear layer": (
        lambda x, w: (x * w).sum(1),
        lambda rows: (
            lambda x, w, g: (
                g[:, None] * w,
                (g[:, None] * x).mean(0) * rows if rows else (g[:, None] * x).sum(0),
            )
        ),
        4,
        (X, W),
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", STATISTICS)
def test_rows_and_statistics_of_them_are_a_batch(backend, ns, name):
    forward, made, size, given = STATISTICS[name]
    verdict, evidence, findings = examined(backend, of_rows(ns, forward, made(None)), *given, sweep=True, order=1)
    assert verdict is Verdict.PASSED, findings
    assert "sizes" in {e.check for e in evidence}
    verdict, _, findings = examined(backend, of_rows(ns, forward, made(size)), *given, sweep=True, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.BATCH_SIZE}


def test_a_bias_of_one_row_is_no_batch(backend, ns):
    def summed(x, b, g):
        return g, g.sum(0, keepdim=True)

    function = of_rows(ns, lambda x, b: x + b, summed)
    for rows in (1, 4):
        x, b = tensor("x", GENERATOR.normal(size=(rows, 3))), tensor("b", GENERATOR.normal(size=(1, 3)))
        verdict, _ = decided(backend, function, x, b, sweep=True)
        assert verdict is Verdict.PASSED
