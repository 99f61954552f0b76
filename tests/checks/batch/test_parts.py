"""Long batches: judged by their first entries and by one more entry than the given one has."""

from functools import partial

import numpy as np
import pytest

from gradcli.checks.base import Situation
from gradcli.checks.batch.parts import follows_from_given
from gradcli.checks.batch.resizing import TOLERANCE, Batch
from gradcli.checks.batch.rows import entries_make_statistics, entries_stand_alone
from gradcli.findings import FindingKind
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.checks.batch.functions import GENERATOR, of_rows
from tests.checks.frameworks import examined, tensor

LONG = tensor("x", GENERATOR.normal(size=12_000))


def test_a_long_batch_is_known_by_its_first_entries(backend, ns) -> None:
    """A size written down shows at the others, and forward goes over all entries only where another size is tried."""
    seen: list[int] = []

    def square(x):
        seen.append(x.shape[0])
        return x * x

    wrong = of_rows(ns, square, lambda x, g: 2 * g * x * (x.shape[0] / 12_000))
    verdict, _, findings = examined(backend, wrong, LONG, sweep=True)
    assert verdict is Verdict.FAILED
    assert [f.kind for f in findings] == [FindingKind.BATCH_SIZE]
    seen.clear()
    right = of_rows(ns, square, lambda x, g: 2 * g * x)
    _, evidence, _ = examined(backend, right, LONG, sweep=True, only=("sizes",))
    assert [e.verdict for e in evidence if e.check == "sizes"] == [Verdict.PASSED]
    assert sum(size >= 10_000 for size in seen) <= 4, "the given call, another size, its steps and forward's body"


@pytest.mark.parametrize(
    "forward",
    [lambda x: x - x.mean(), lambda x: x.cumsum(0), lambda x: x * x[:1], lambda x: x * x[-1:]],
    ids=["all", "those before", "the first", "the last"],
)
def test_a_long_axis_whose_entries_depend_on_others_is_no_batch_of_independent_ones(backend, ns, forward) -> None:
    subject = backend.bind(of_rows(ns, forward, lambda x, g: g), [LONG])
    batch = Batch(size=12_000, name="x")
    situation = Situation(subject=subject, settings=Settings(), seed=0)
    with subject.session():
        outputs_of = partial(batch._outputs_of, situation)
        whole = entries_stand_alone(12_000, outputs_of, TOLERANCE) or entries_make_statistics(
            12_000, outputs_of, TOLERANCE
        )
        assert batch.is_one(situation) == whole


MANY = tensor("x", np.random.default_rng(5).normal(size=(12_000,)))


LONGER = {
    "right": (lambda x, g: 2 * x * g, Verdict.PASSED),
    "wrong above": (lambda x, g: 2 * x * g * (1.5 if len(x) > 12_000 else 1.0), Verdict.FAILED),
    "raises above": (lambda x, g: 2 * x * g[:12_000].expand(len(x)), Verdict.FAILED),
    "wrong below": (lambda x, g: 2 * x * g * (1.5 if 0 < len(x) < 12_000 else 1.0), Verdict.FAILED),
}


@pytest.mark.parametrize("name", LONGER)
def test_one_more_entry_of_a_long_batch_is_compared_with_the_given_one(backend, ns, name):
    backward, verdict = LONGER[name]
    found, _, _ = examined(backend, of_rows(ns, lambda x: x * x, backward), MANY, order=1, only=("gradient", "sizes"))
    assert found is verdict


def test_only_what_is_the_given_batch_and_one_more_entry_follows_from_it(backend, ns):
    for forward, backward, follows in (
        (lambda x: x * x, lambda x, g: 2 * x * g, True),
        (lambda x: x * x, lambda x, g: 2 * x * g * (1.01 if len(x) > 12_000 else 1.0), False),
        (lambda x: x * x / len(x), lambda x, g: 2 * x * g / len(x), False),
        (lambda x: (x * x).sum(), lambda x, g: 2 * x * g, False),
    ):
        subject = backend.bind(of_rows(ns, forward, backward), (MANY,))
        situation = Situation(subject=subject, settings=Settings(order=1), seed=0)
        assert follows_from_given(situation, Batch(size=12_000, name="x")) is follows
