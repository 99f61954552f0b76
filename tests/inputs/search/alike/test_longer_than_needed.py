"""Forward ignores the ends of long tensors, or takes a matrix for a vector: backward tells what is meant."""

from collections.abc import Callable
from typing import Any

import pytest

from gradcli.results import CheckResult
from gradcli.verdict import Verdict
from tests.inputs.search.test_shapes_that_fit import checked
from tests.pairs import in_turn

Rule = tuple[Callable[..., Any], Callable[..., Any]]
Shape = tuple[int, ...] | None


def result_of(ns: Any, rule: Rule) -> tuple[CheckResult, list[Shape]]:
    forward, backward = map(staticmethod, rule)
    result = checked(type("Own", (ns.autograd.Function,), {"forward": forward, "backward": backward}))
    return result, [spec.shape for spec in result.inputs if spec.kind == "tensor"]


def recurrence(ns: Any, wrong: bool) -> Rule:
    """Backward runs the recurrence in the other direction, over all decays: forward alone takes more of them."""

    def states(decay: Any, impulse: Any, start: Any) -> Any:
        found = [start + 0 * impulse[:, 0]]
        for t in range(impulse.shape[1]):
            found.append(decay[:, t] * found[-1] + impulse[:, t])
        return ns.stack(found, 1)

    def forward(ctx: Any, decay: Any, impulse: Any, initial_state: Any) -> Any:
        n_dims, _ = decay.shape
        assert initial_state.shape == (n_dims,)
        out = states(decay, impulse, initial_state)
        ctx.save_for_backward(decay, out)
        return out[:, 1:] + 0

    def backward(ctx: Any, g: Any) -> Any:
        decay, out = ctx.saved_tensors
        later = ns.cat([decay[:, 1:], ns.zeros_like(decay[:, :1])], 1)
        carry = states(later.flip(1), g.flip(1), ns.zeros_like(g[:, 0]))[:, 1:].flip(1)
        return carry * out[:, 1:] if wrong else carry * out[:, :-1], carry, decay[:, 0] * carry[:, 0]

    return forward, backward


def prediction(ns: Any, wrong: bool) -> Rule:
    """A filter whose coefficients change: more of them than steps, and of a higher order, are ignored."""

    def forward(ctx: Any, x: Any, A: Any, zi: Any) -> Any:
        order, past = zi.shape[1], [zi[:, i] for i in range(zi.shape[1])]
        for t in range(x.shape[1]):
            past.append(x[:, t] - sum(A[:, t, i] * past[t + order - 1 - i] for i in range(order)))
        y = ns.stack(past, 1)
        ctx.save_for_backward(A, y)
        return y[:, order:] + 0

    def backward(ctx: Any, g: Any) -> Any:
        A, y = ctx.saved_tensors
        _, steps, order = A.shape
        carry = ns.cat([ns.zeros_like(y[:, :order]), g], 1)
        of_a = ns.zeros_like(A)
        for t in reversed(range(steps)):
            for i in range(order):
                at = t + order - 1 - i
                of_a[:, t, i] = -carry[:, t + order] * y[:, at + wrong]
                carry[:, at] = carry[:, at] - carry[:, t + order] * A[:, t, i]
        return carry[:, order:], of_a, carry[:, :order]

    return forward, backward


def gains(ns: Any, wrong: bool) -> Rule:
    """`factors.view(1, -1)` takes a matrix of as many entries; backward sums over the axes of three."""

    def forward(ctx: Any, x: Any, factors: Any) -> Any:
        ctx.save_for_backward(x, factors)
        return x**2 * factors.view((1,) * (x.dim() - 1) + (x.shape[-1],))

    def backward(ctx: Any, g: Any) -> Any:
        x, factors = ctx.saved_tensors
        of_factors = (g * x**2).sum(tuple(range(3)))
        return 2 * x * g * factors.view((1,) * (x.dim() - 1) + (-1,)), of_factors.flip(0) if wrong else of_factors

    return forward, backward


@pytest.mark.sampled(3)
@in_turn("rule", [recurrence, prediction, gains])
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_no_tensor_is_longer_or_of_lower_rank_than_backward_takes(
    ns: Any, rule: Callable[..., Rule], wrong: bool
) -> None:
    result, shapes = result_of(ns, rule(ns, wrong))
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), (result.findings, result.error)
    assert not any("shape" in finding.kind.value for finding in result.findings)
    assert all(len(set(shape or ())) == len(shape or ()) for shape in shapes), shapes


def weighted(ns: Any, factor: float) -> Rule:
    """Weights of classes without a gradient."""

    def forward(ctx: Any, logits: Any, weights: Any) -> Any:
        y = logits * weights.view([1, -1]).exp()
        ctx.save_for_backward(weights)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        (weights,) = ctx.saved_tensors
        return factor * g * weights.view([1, -1]).exp(), None

    return forward, backward


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_weights_that_forward_flattens_are_a_vector(ns: Any, factor: float) -> None:
    result, shapes = result_of(ns, weighted(ns, factor))
    assert shapes == [(3, 4), (4,)]
    assert ("logits" in {finding.input for finding in result.findings}) is (factor != 1)
