"""What forward stores for the size of its last call: shown by a call of another size, also where only a shorter one is.

An array that forward refers to may be a constant, past whose end compiled code reads for longer axes, so that those of
its length do not grow.
"""

import numpy as np
import pytest

from gradcli.checks.other_points.calls import disturbing_calls
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import decided, examined, tensor

ROW = tensor("x", [0.6, -1.2, 0.9, -1.7])
ROWS = tensor("x", [[0.6, -1.2, 0.9, -1.7], [0.3, 2.2, -0.4, 1.1], [-0.8, 1.3, -0.5, 0.7]])
LARGE = tensor("x", np.random.default_rng(3).uniform(0.3, 2.2, (400, 40)))


def transform(ns, *, last):
    """A transform by a matrix that is made once for each size; backward uses that of its own size, or of the last."""
    made, latest = {}, {}

    def matrix(size):
        if size not in made:
            steps = ns.arange(size, dtype=ns.float64)
            made[size] = ns.cos(steps[:, None] * steps * (2 * np.pi / size))
        return made[size]

    class Transform(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.size = x.shape[-1]
            latest["matrix"] = matrix(ctx.size)
            return x @ latest["matrix"]

        @staticmethod
        def backward(ctx, g):
            return g @ (latest["matrix"] if last else matrix(ctx.size))

    return Transform


@pytest.mark.parametrize("x", [ROW, ROWS, LARGE], ids=["a vector", "a matrix", "many entries"])
@pytest.mark.parametrize("last", [True, False], ids=["last", "own"])
def test_a_matrix_of_the_last_size(backend, ns, x, last):
    verdict, evidence, findings = examined(backend, transform(ns, last=last), x, order=1, only=("repeat", "gradient"))
    assert verdict is (Verdict.FAILED if last else Verdict.PASSED)
    assert {finding.kind for finding in findings} == ({FindingKind.STATEFUL} if last else set())
    (message,) = [f.message for f in findings] if last else ["backward raises when"]
    assert message.startswith("backward raises when")
    assert all(e.check == "repeat" for e in evidence if e.verdict is Verdict.FAILED)


def weighted(ns, *, rebuilt):
    """Weights of the last size; backward makes them anew where the size is another, or takes their mean."""
    kept = {}

    def weights(size, *, own):
        if own and (not kept or len(kept["weights"]) != size):
            kept["weights"] = ns.linspace(1.0, 2.0, size, dtype=ns.float64)
        found = kept["weights"]
        return found if len(found) == size else found.mean() + ns.zeros(size, dtype=ns.float64)

    class Weighted(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * weights(x.shape[-1], own=True)

        @staticmethod
        def backward(ctx, g):
            return g * weights(g.shape[-1], own=rebuilt)

    return Weighted


@pytest.mark.parametrize("x", [ROW, ROWS], ids=["a vector", "a matrix"])
@pytest.mark.parametrize("rebuilt", [True, False])
def test_weights_that_are_made_anew_for_another_size(backend, ns, x, rebuilt):
    verdict, evidence = decided(backend, weighted(ns, rebuilt=rebuilt), x, order=1)
    assert verdict is (Verdict.PASSED if rebuilt else Verdict.FAILED)
    assert all(e.check == "repeat" for e in evidence if e.verdict is Verdict.FAILED)


def test_axes_as_long_as_a_constant_never_grow(backend, ns):
    """They shrink, but not where indices could point past their end."""
    constant = ns.tensor([1.0, 2.0, 3.0, 4.0], dtype=ns.float64)
    seen = []

    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, *index):
            seen.append(tuple(x.shape))
            return x * constant[: x.shape[-1]]

        @staticmethod
        def backward(ctx, g):
            return g * constant[: g.shape[-1]], *[None] * (len(ctx.needs_input_grad) - 1)

    index = tensor("index", np.array([3, 0]), grad=False)
    for given, shapes in (((ROWS,), {(3, 4), (4, 3)}), ((ROWS, index), {(3, 4), (4, 4)})):
        subject = backend.bind(Scaled, list(given))
        del seen[:]
        for others in disturbing_calls(subject, frozenset({4})):
            others.run_one(subject.call_at)
        assert set(seen) == shapes
        verdict, _ = decided(backend, Scaled, *given, order=1)
        assert verdict is Verdict.PASSED
