"""State that only a call with other defaults, with the same entries in another order, or one of many calls changes."""

import hashlib
from itertools import count

import numpy as np
import pytest

import gradcli
from gradcli.findings import FindingKind
from gradcli.verdict import Verdict
from tests.checks.frameworks import constant, decided, examined, tensor

ROW = tensor("x", [0.6, -1.2, 0.9, -1.7, 0.3])
ROWS = tensor("x", [[0.6, -1.2, 0.9, -1.7], [0.3, 2.2, -0.4, 1.1], [-0.8, 1.3, -0.5, 0.7]])
MANY = tensor("x", np.random.default_rng(3).uniform(0.3, 2.2, (120, 100)))


def mask_of(ns, seed, x):
    return ns.tensor(np.random.default_rng(seed).random(tuple(x.shape)) > 0.3, dtype=x.dtype)


FACTORS = {
    "a number": (2.0, lambda ns, k, x: k * ns.ones_like(x)),
    "a whole number": (2, lambda ns, k, x: k * ns.ones_like(x)),
    "a flag": (False, lambda ns, k, x: (3.0 if k else 2.0) * ns.ones_like(x)),
    "a seed": (5, mask_of),
    "several numbers": ((2.0, 0.5), lambda ns, k, x: (k[0] - k[1]) * ns.ones_like(x)),
}


def multiple(ns, default, factor, *, shared):
    """x times a factor, which the last call's argument gives, or this one's."""

    class Multiple(ns.autograd.Function):
        last = None

        @staticmethod
        def forward(ctx, x, k=default):
            Multiple.last = ctx.kept = k
            return x * factor(ns, k, x)

        @staticmethod
        def backward(ctx, g):
            kept = Multiple.last if shared else ctx.kept
            return (g * factor(ns, kept, g), None)[: len(ctx.needs_input_grad)]

    return Multiple


@pytest.mark.sampled(20)
@pytest.mark.parametrize("x", [ROWS, MANY], ids=["few", "many"])
@pytest.mark.parametrize("shared", [True, False], ids=["on the class", "on ctx"])
@pytest.mark.parametrize("name", FACTORS)
def test_an_argument_left_at_its_default(backend, ns, name, shared, x):
    function = multiple(ns, *FACTORS[name], shared=shared)
    verdict, _, findings = examined(backend, function, x, order=1, only=("repeat", "gradient"), shrink=False)
    assert verdict is (Verdict.FAILED if shared else Verdict.PASSED)
    assert {finding.kind for finding in findings} == ({FindingKind.STATEFUL} if shared else set())


@pytest.mark.parametrize("shared", [True, False], ids=["on the class", "on ctx"])
def test_the_last_axis_left_at_its_default(backend, ns, shared):
    """The next whole number is no axis of a matrix."""

    class Centred(ns.autograd.Function):
        last = None

        @staticmethod
        def forward(ctx, x, dim=1):
            Centred.last = ctx.kept = dim
            return x - x.mean(dim, keepdim=True)

        @staticmethod
        def backward(ctx, g):
            kept = Centred.last if shared else ctx.kept
            return (g - g.mean(kept, keepdim=True), None)[: len(ctx.needs_input_grad)]

    verdict, _ = decided(backend, Centred, ROWS, order=1, only=("repeat", "gradient"))
    assert verdict is (Verdict.FAILED if shared else Verdict.PASSED)


@pytest.mark.parametrize("shared", [True, False], ids=["on the class", "on ctx"])
def test_defaults_of_which_forward_accepts_no_other(backend, ns, shared):
    """The others change without them."""

    class Power(ns.autograd.Function):
        last = None

        @staticmethod
        def forward(ctx, x, power=2, strict=True, scale=1.5):
            if power != 2 or not strict:
                raise ValueError("expected the power 2")
            Power.last = ctx.kept = scale
            ctx.save_for_backward(x)
            return x * x * scale

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * (Power.last if shared else ctx.kept), *[None] * (len(ctx.needs_input_grad) - 1)

    for given in ((ROW,), (ROW, constant("power", 2))):
        verdict, _ = decided(backend, Power, *given, order=1, only=("repeat", "gradient"))
        assert verdict is (Verdict.FAILED if shared else Verdict.PASSED)


def test_a_module_with_a_flag(backend, ns):
    def layer(*, shared):
        class Slope(ns.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight, owner, training):
                owner.last = ctx.kept = 0.3 if training else 0.1
                ctx.owner = owner
                ctx.save_for_backward(x, weight)
                return x * weight * ctx.kept

            @staticmethod
            def backward(ctx, g):
                x, weight = ctx.saved_tensors
                g = g * (ctx.owner.last if shared else ctx.kept)
                return g * weight, (g * x).sum(0), None, None

        class Layer(ns.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = ns.nn.Parameter(ns.tensor([1.0, 2.0, 0.5, -1.0], dtype=ns.float64))

            def forward(self, x, training=False):
                return Slope.apply(x, self.weight, self, training)

        return Layer()

    assert not gradcli.check(layer(shared=True), (ROWS.value,), order=1, only=("repeat",), shrink=False).ok
    assert gradcli.check(layer(shared=False), (ROWS.value,), order=1, only=("repeat", "gradient")).ok


KEYS = {
    "its sum": lambda x: round(float(x.sum()), 6),
    "its norm": lambda x: round(float((x * x).sum()), 6),
    "its first entry": lambda x: float(x.reshape(-1)[0]),
    "the sums of its rows": lambda x: tuple(round(each, 6) for each in x.sum(-1).reshape(-1).tolist()),
    "its entries": lambda x: hashlib.sha1(np.asarray(x.tolist()).tobytes()).hexdigest(),
}


@pytest.mark.parametrize("x", [ROW, ROWS], ids=["a vector", "a matrix"])
@pytest.mark.parametrize("key", KEYS)
def test_results_kept_by_a_key(backend, ns, key, x):
    """Right only where the key tells inputs apart."""
    kept = {}

    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.key = (tuple(x.shape), KEYS[key](x.detach()))
            kept[ctx.key] = ns.softmax(x.detach(), -1)
            return kept[ctx.key].clone()

        @staticmethod
        def backward(ctx, g):
            y = kept[ctx.key]
            return y * (g - (g * y).sum(-1, keepdim=True))

    verdict, evidence = decided(backend, Softmax, x, order=1)
    assert verdict is (Verdict.PASSED if key == "its entries" else Verdict.FAILED)
    assert all(e.check == "repeat" for e in evidence if e.verdict is Verdict.FAILED)


def in_slots(ns, slots, *, freed):
    """tanh, whose values are in one of a few slots, taken in turn or, if `freed`, once nothing needs them any more."""
    kept, turns = [None] * slots, count()

    class Ticket:
        def __init__(self, slot):
            self.slot = slot

        def __del__(self):
            kept[self.slot] = None

    class Tanh(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = ns.tanh(x)
            slot = kept.index(None) if freed else next(turns) % slots
            ctx.ticket = Ticket(slot) if freed else None
            ctx.slot, kept[slot] = slot, y.detach()
            return y * 1.0

        @staticmethod
        def backward(ctx, g):
            y = kept[ctx.slot]
            return g * (1 - y * y)

    return Tanh


@pytest.mark.parametrize("slots", [4, 8, 15])
@pytest.mark.parametrize("freed", [True, False])
def test_slots_that_are_taken_again(backend, ns, slots, freed):
    verdict, evidence = decided(backend, in_slots(ns, slots, freed=freed), ROWS, order=1, only=("repeat", "gradient"))
    assert verdict is (Verdict.PASSED if freed else Verdict.FAILED)
    assert all(e.check == "repeat" for e in evidence if e.verdict is Verdict.FAILED)


def test_random_numbers_of_another_mode_and_a_log_pass(backend, ns):
    """A flag that forward is tried with may draw random numbers: the given call does not."""
    log = []

    class Dropout(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, training=False, rate=0.25):
            log.append(float(x.detach().sum()))
            ctx.mask = (ns.rand_like(x) > rate).to(x.dtype) / (1 - rate) if training else ns.ones_like(x)
            return x * x * ctx.mask + 0 * len(log)

        @staticmethod
        def backward(ctx, g):
            return None

    class Right(Dropout):
        @staticmethod
        def forward(ctx, x, training=False, rate=0.25):
            ctx.save_for_backward(x)
            return Dropout.forward(ctx, x, training, rate)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g * ctx.mask, *[None] * (len(ctx.needs_input_grad) - 1)

    class Off(Right):
        @staticmethod
        def backward(ctx, g):
            first, *rest = Right.backward(ctx, g)
            return 1.01 * first, *rest

    for given in ((ROWS,), (ROWS, constant("training", True))):
        assert decided(backend, Right, *given, order=1)[0] is Verdict.PASSED
        assert decided(backend, Off, *given, order=1)[0] is Verdict.FAILED


def test_numpy_functions_that_share_a_default():
    def pair(*, shared):
        place = {}

        def value(x, scale=2.0):
            place["scale"] = scale
            return x * x * scale

        def gradient(x, scale=2.0):
            return 2 * x * (place["scale"] if shared else scale)

        return value, gradient

    for shared in (True, False):
        value, gradient = pair(shared=shared)
        x = np.array([0.5, -1.5, 2.0])
        report = gradcli.check(value, (x,), grad=gradient, only=("repeat", "gradient"), shrink=False)
        assert report.ok is not shared
