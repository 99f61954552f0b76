"""A batch that is as long as another axis by coincidence is varied alone; axes that belong together fail nothing."""

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.batch.functions import of_rows
from tests.checks.frameworks import examined, tensor

GENERATOR = np.random.default_rng(5)


def given(**shapes):
    return [tensor(name, GENERATOR.normal(size=shape)) for name, shape in shapes.items()]


def moved(pose, points):
    return points * pose[0] + pose[1:]


def moved_back(pose, points, g, rows):
    total = g.sum(0) * rows / len(points)
    return put_together(pose, (g * points).sum(), total), g * pose[0]


def put_together(pose, first, rest):
    made = pose * 0
    made[0] = first
    made[1:] = rest
    return made


def product(x, a):
    return x @ a


def product_back(x, a, g, rows):
    return g @ a.t(), x.t() @ g * rows / len(x)


def pairs(x, y, w):
    return (x - y) * w[0] + w[1:]


def pairs_back(x, y, w, g, rows):
    total = g.sum(0) * rows / len(x)
    return g * w[0], -g * w[0], put_together(w, (g * (x - y)).sum(), total)


COINCIDENT = {
    "points and a pose": (moved, moved_back, given(pose=(3,), points=(3, 2)), "points"),
    "rows and the columns of a matrix": (product, product_back, given(x=(4, 3), a=(3, 4)), "x"),
    "two arguments beside a third": (pairs, pairs_back, given(x=(4, 3), y=(4, 3), w=(4,)), "x and y"),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", COINCIDENT)
@pytest.mark.parametrize("twin", ["right", "wrong"])
def test_a_batch_as_long_as_another_axis(backend, ns, name, twin):
    forward, backward, arguments, batch = COINCIDENT[name]
    rows = arguments[-1 if name.startswith("points") else 0].value.shape[0]

    def own(*values):
        g = values[-1]
        count = rows if twin == "wrong" else len(values[1 if name.startswith("points") else 0])
        return backward(*values[:-1], g, count)

    verdict, _, findings = examined(backend, of_rows(ns, forward, own), *arguments, sweep=True)
    if twin == "right":
        assert verdict is Verdict.PASSED, findings
        return
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.BATCH_SIZE}
    assert f"leading axis of {batch} has size" in findings[0].message


def discrepancy(x, y):
    return x.mean(0) - y.mean(0)


def discrepancy_back(x, y, g):
    both = (g / len(x)).expand(x.shape)
    return both, -(both[:1].expand(y.shape))


def centred(a):
    return a - a.mean(1, keepdim=True)


def quadratic(a, x):
    return a @ x * x


TOGETHER = {
    "two samples of one size": (discrepancy, discrepancy_back, given(x=(4, 3), y=(4, 3)), True),
    "a square matrix": (centred, lambda a, g: g - g.sum(1, keepdim=True) / a.shape[0], given(a=(4, 4)), True),
    "a matrix and a vector": (
        quadratic,
        lambda a, x, g: ((g * x)[:, None] * x, a.t() @ (g * x) + g * (a @ x)),
        given(a=(3, 3), x=(3,)),
        False,
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_axes_that_belong_together_fail_nothing(backend, ns, name):
    forward, backward, arguments, is_noted = TOGETHER[name]
    verdict, evidence, _ = examined(backend, of_rows(ns, forward, backward), *arguments, sweep=True)
    assert verdict is Verdict.PASSED
    notes = [e.note for e in evidence if e.check == "sizes" and e.note]
    assert [("may be meant to be" in note) for note in notes] == [True] * is_noted


@pytest.mark.parametrize(
    ("words", "verdict"), [("a: (n, n)", Verdict.PASSED), ("a: (n, d)", Verdict.FAILED), ("a: (4, d)", Verdict.PASSED)]
)
def test_documentation_tells_whether_axes_belong_together(ns, words, verdict):
    class Centred(ns.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.rows = a.shape[0]
            return centred(a)

        @staticmethod
        def backward(ctx, g):
            return g - g.sum(1, keepdim=True) / ctx.rows

    Centred.__doc__ = words
    a = ns.tensor(GENERATOR.normal(size=(4, 4)).tolist(), dtype=ns.float64, requires_grad=True)
    (case,) = gradcli.check(Centred, (a,), order=1, shrink=False).cases
    assert case.verdict is verdict, case.findings
