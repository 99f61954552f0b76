"""State between calls: what forward leaves outside ctx for backward is found, and harmless memory passes."""

from types import SimpleNamespace

import numpy as np
import pytest

import gradcli
from gradcli.checks.other_points.calls import few_disturbing_calls
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, decided, examined, tensor

MIXED = [[0.6, -1.2, 0.9], [-1.7, 0.3, 2.2], [0.4, 1.1, -0.8], [1.3, -0.5, 0.7]]
POSITIVE = [[0.6, 1.2, 0.9], [1.7, 0.3, 2.2], [0.4, 1.1, 0.8], [1.3, 0.5, 0.7]]
X, P = tensor("x", MIXED), tensor("x", POSITIVE)
V = tensor("x", [0.6, -1.2, 0.9, -1.7, 0.3])
ROWS = tensor("index", np.array([2, 0, 2, 1]), grad=False)


def of(ns, forward, backward, *, shared):
    """A Function whose forward keeps what backward needs on ctx, or in a place that all calls share."""
    place = SimpleNamespace()

    class Kept(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, *rest):
            ctx.save_for_backward(x)
            ctx.rest = rest
            return forward(ns, place if shared else ctx, x, *rest)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return backward(ns, place if shared else ctx, x, g), *[None] * len(ctx.rest)

    return Kept


def leaky(ns, kept, x):
    kept.mask = x.detach() > 0
    return ns.where(kept.mask, x, 0.1 * x)


def ordered(ns, kept, x):
    kept.order = ns.argsort(x.detach())
    return x[kept.order] * ns.arange(1, x.numel() + 1, dtype=x.dtype)


def unordered(ns, kept, x, g):
    out = ns.zeros_like(x)
    out[kept.order] = g * ns.arange(1, x.numel() + 1, dtype=x.dtype)
    return out


def largest(ns, kept, x):
    kept.place = int(x.detach().argmax())
    return x[kept.place] ** 2


def of_largest(ns, kept, x, g):
    out = ns.zeros_like(x)
    out[kept.place] = 2 * g * x[kept.place]
    return out


def picked(ns, kept, x, index):
    kept.index = index
    return x[index] * 2


def put_back(ns, kept, x, g):
    out = ns.zeros_like(x)
    for row, place in enumerate(kept.index.tolist()):
        out[place] = out[place] + 2 * g[row]
    return out


def mean_of_rows(ns, kept, x):
    kept.rows = x.shape[0]
    return (x * x).sum(0) / x.shape[0]


def mean_of_columns(ns, kept, x):
    kept.columns = x.shape[-1]
    return (x * x).sum(-1) / x.shape[-1]


def branch(ns, kept, x):
    kept.all_positive = bool((x.detach() > 0).all())
    return x * x if kept.all_positive else 3 * x


def scaled(ns, kept, x, scale):
    kept.scale = scale
    return x * scale


def flagged(ns, kept, x, double):
    kept.double = double
    return 2 * x if double else x * 1


def stepped(ns, kept, x):
    kept.scale = 2.0 ** round(float(np.log2(float(ns.abs(x.detach()).max()))))
    return x * kept.scale


def by_shape(ns, kept, x):
    if "masks" not in vars(kept):
        kept.masks = {}
    kept.masks[tuple(x.shape)] = x.detach() > 0
    return ns.where(x > 0, x, 0.2 * x)


def counted_negatives(ns, kept, x):
    kept.count = int((x.detach() < 0).sum())
    return x * (1 + kept.count)


def shortened(ns, kept, x):
    length = float((x.detach() ** 2).sum()) ** 0.5
    kept.limit = 1.0 if length > 1 else None
    return x / (x * x).sum() ** 0.5 if length > 1 else x * 1.0


def of_shortened(ns, kept, x, g):
    if kept.limit is None:
        return g
    length = (x * x).sum() ** 0.5
    return (g - x * (x * g).sum() / length**2) / length


def shifted(ns, kept, x):
    highest = float(x.detach().max())
    kept.shift = highest if highest > 25 else 0.0
    return kept.shift + ns.log(ns.exp(x - kept.shift).sum())


def of_shifted(ns, kept, x, g):
    return g * ns.exp(x - kept.shift) / ns.exp(x).sum()


MISTAKES = {
    "whether it is long": (shortened, of_shortened, (X,)),
    "a shift of large entries": (shifted, of_shifted, (X,)),
    "a mask of signs": (leaky, lambda ns, k, x, g: ns.where(k.mask, g, 0.1 * g), (X,)),
    "an order": (ordered, unordered, (V,)),
    "the place of the largest": (largest, of_largest, (V,)),
    "indices": (picked, put_back, (X, ROWS)),
    "the number of rows": (mean_of_rows, lambda ns, k, x, g: 2 * x * g / k.rows, (X,)),
    "the number of columns": (mean_of_columns, lambda ns, k, x, g: 2 * x * g[:, None] / k.columns, (X,)),
    "whether all are positive": (branch, lambda ns, k, x, g: 2 * x * g if k.all_positive else 3 * g, (P,)),
    "whether all are positive, of mixed": (branch, lambda ns, k, x, g: 2 * x * g if k.all_positive else 3 * g, (X,)),
    "a number": (scaled, lambda ns, k, x, g: g * k.scale, (X, constant("scale", 2.5))),
    "a whole number": (scaled, lambda ns, k, x, g: g * k.scale, (X, constant("scale", 3))),
    "a flag": (flagged, lambda ns, k, x, g: 2 * g if k.double else g, (X, constant("double", True))),
    "a power of two": (stepped, lambda ns, k, x, g: g * k.scale, (X,)),
    "masks by shape": (by_shape, lambda ns, k, x, g: ns.where(k.masks[tuple(x.shape)], g, 0.2 * g), (X,)),
    "a count": (counted_negatives, lambda ns, k, x, g: g * (1 + k.count), (X,)),
}
STEPWISE = ("a power of two",)
"""Forward jumps where the state changes, so that its gradient is compared away from there."""


@pytest.mark.parametrize("name", MISTAKES)
def test_what_forward_leaves_outside_ctx_for_backward_is_found(backend, ns, name):
    forward, backward, given = MISTAKES[name]
    verdict, evidence, findings = examined(backend, of(ns, forward, backward, shared=True), *given, order=1)
    assert verdict is Verdict.FAILED
    assert [(finding.kind, finding.input) for finding in findings] == [(FindingKind.STATEFUL, "x")]
    assert [e.check for e in evidence if e.verdict is Verdict.FAILED] == ["repeat"]


@pytest.mark.parametrize("name", MISTAKES)
def test_the_same_kept_on_ctx_passes(backend, ns, name):
    forward, backward, given = MISTAKES[name]
    verdict, evidence = decided(backend, of(ns, forward, backward, shared=False), *given, order=1)
    assert verdict is Verdict.PASSED
    assert [e.verdict for e in evidence if e.check == "repeat"] == [Verdict.PASSED]


def many(argument):
    """An argument with thousands of rows in place of a few, none of its entries close to zero."""
    if not argument.is_tensor or not argument.requires_grad:
        return argument
    generator = np.random.default_rng(argument.value.ndim)
    size = generator.uniform(0.3, 2.2, (12_000, *argument.shape[1:]))
    positive = bool((argument.value > 0).all())
    return tensor(argument.name, size if positive else size * generator.choice([-1.0, 1.0], size.shape))


@pytest.mark.sampled(32)
@pytest.mark.parametrize("shared", [True, False], ids=["outside ctx", "on ctx"])
@pytest.mark.parametrize("name", MISTAKES)
def test_of_many_entries_fewer_calls_show_the_same(backend, ns, name, shared):
    """Two sets of other calls, one of few entries, in place of three of the given size."""
    forward, backward, given = MISTAKES[name]
    function = of(ns, forward, backward, shared=shared)
    _, evidence = decided(backend, function, *map(many, given), order=1, only=("repeat",))
    found = {e.finding.kind for e in evidence if e.finding is not None}
    assert [e.verdict for e in evidence if e.check == "repeat"] == [Verdict.FAILED if shared else Verdict.PASSED]
    assert found == ({FindingKind.STATEFUL} if shared else set())


def test_many_entries_are_cut_to_few_only_where_that_is_safe(backend, ns):
    """Kernels, indices and numbers may rely on a size, and so may a sum over all entries."""
    rows, named = (
        [],
        {
            "entries": (lambda x: 2 * x, (V,), True),
            "a number": (lambda x, n: n * x, (V, constant("n", 3)), False),
            "indices": (lambda x, index: x[index], (X, ROWS), False),
            "a sum": (lambda x: (x * x).sum(), (V,), False),
        },
    )

    for run, given, cut in named.values():
        sizes = []

        class Seen(ns.autograd.Function):
            @staticmethod
            def forward(ctx, x, *rest, run=run, sizes=sizes):
                sizes.append(x.shape[0])
                ctx.save_for_backward(x)
                return run(x, *rest)

            @staticmethod
            def backward(ctx, g):
                raise NotImplementedError

        arguments = [many(a) for a in given]
        subject = backend.bind(Seen, arguments)
        del sizes[:]
        for others in few_disturbing_calls(subject):
            others.run_one(subject.call_at)
        rows.append((sizes[0], min(sizes) < 12_000, cut))
    assert all(first == 12_000 and found is cut for first, found, cut in rows), rows


def table_by_size(ns, kept, x):
    if "tables" not in vars(kept):
        kept.tables = {}
    kept.tables.setdefault(x.shape[-1], ns.arange(1, x.shape[-1] + 1, dtype=x.dtype))
    return x * kept.tables[x.shape[-1]]


def calls_counted(ns, kept, x):
    kept.calls = vars(kept).get("calls", 0) + 1
    return x * x


def first_needed(ns, kept, x):
    if "weights" not in vars(kept):
        kept.weights = ns.tensor([1.0, 2.0, 3.0], dtype=x.dtype)
    return x * kept.weights


def workspace(ns, kept, x):
    if "buffer" not in vars(kept) or kept.buffer.numel() < x.numel():
        kept.buffer = ns.empty(x.numel(), dtype=x.dtype)
    return x * x


def filled(ns, kept, x, g):
    kept.buffer[: x.numel()] = (2 * x * g).reshape(-1)
    return kept.buffer[: x.numel()].reshape(x.shape).clone()


def last_seen(ns, kept, x):
    kept.last = x.detach().clone()
    return ns.sin(x)


HARMLESS = {
    "a table for each size": (table_by_size, lambda ns, k, x, g: g * k.tables[x.shape[-1]], (X,)),
    "a count of calls": (calls_counted, lambda ns, k, x, g: 2 * x * g, (X,)),
    "weights made when first needed": (first_needed, lambda ns, k, x, g: g * k.weights, (X,)),
    "a workspace that grows": (workspace, filled, (X,)),
    "the last input, for a look": (last_seen, lambda ns, k, x, g: g * ns.cos(x), (X,)),
    "constants of a name": (scaled, lambda ns, k, x, g: g * 2.5, (X, constant("scale", 2.5))),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_memory_that_changes_no_gradient_passes(backend, ns, name):
    forward, backward, given = HARMLESS[name]
    function = of(ns, forward, backward, shared=True)
    verdict, _ = decided(backend, function, *given, order=1, skip=("constants", "sizes"))
    assert verdict is Verdict.PASSED


def test_a_backward_that_raises_on_what_another_call_left_is_stateful(backend, ns):
    def forward(ns, kept, x):
        kept.value = x.detach().reshape(-1)
        return x * x

    def backward(ns, kept, x, g):
        return 2 * kept.value.reshape(x.shape) * g if kept.value.numel() == x.numel() else kept.value.missing

    verdict, _, findings = examined(backend, of(ns, forward, backward, shared=True), X, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.STATEFUL}


def test_a_forward_that_refuses_all_but_small_changes_is_disturbed_by_those(backend, ns):
    def forward(ns, kept, x):
        if x.shape != (4, 3) or bool((ns.abs(x.detach() - x.detach().new_tensor(MIXED)) > 0.2).any()):
            raise ValueError("expected the values that this was made for")
        kept.value = x.detach()
        return x * x

    function = of(ns, forward, lambda ns, k, x, g: 2 * k.value * g, shared=True)
    verdict, _, findings = examined(backend, function, X, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.STATEFUL}


def test_a_forward_that_never_ends_elsewhere_is_passed_over(backend, ns, monkeypatch):
    monkeypatch.setattr("gradcli.watchdog.case.FLOOR_SECONDS", 0.1)

    def forward(ns, kept, x):
        while bool((x.detach() < 0).all()) or x.shape[0] > 4:
            kept.turns = True
        return x * x

    verdict, _ = decided(backend, of(ns, forward, lambda ns, k, x, g: 2 * x * g, shared=True), X, order=1)
    assert verdict is Verdict.PASSED


def test_a_module_that_keeps_it_is_found(ns, backend):
    class Own(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, owner):
            ctx.owner = owner
            owner.mask = x > 0
            return ns.where(owner.mask, x, 0.1 * x)

        @staticmethod
        def backward(ctx, g):
            return ns.where(ctx.owner.mask, g, 0.1 * g), None

    class Layer(ns.nn.Module):
        def forward(self, x):
            return Own.apply(x, self)

    verdict, _, findings = examined(backend, Layer(), X, order=1)
    assert verdict is Verdict.FAILED
    assert {finding.kind for finding in findings} == {FindingKind.STATEFUL}


def test_numpy_functions_that_share_a_cache_are_found():
    def pair(shared):
        place = {}

        def value(x, power=2):
            key = 0 if shared else (x.tobytes(), power)
            place[key] = (np.sign(x), power)
            return np.abs(x) ** power

        def gradient(x, power=2):
            sign, kept = place[0] if shared else (np.sign(x), power)
            return kept * sign * np.abs(x) ** (kept - 1)

        return value, gradient

    for x in ([0.5, -1.5, 2.0], [0.5, 1.5, 2.0]):
        value, gradient = pair(shared=True)
        (case,) = gradcli.check(value, (np.array(x),), grad=gradient, shrink=False).cases
        assert {finding.kind for finding in case.findings} == {FindingKind.STATEFUL}
        value, gradient = pair(shared=False)
        assert gradcli.check(value, (np.array(x),), grad=gradient, shrink=False).ok
