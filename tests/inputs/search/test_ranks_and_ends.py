"""Forward also accepts vectors for matrices, matrices for vectors, or longer axes: what is meant is found."""

from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli.cases import CheckSpec
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.pairs import in_turn

Rule = tuple[Callable[..., Any], Callable[..., Any]]


def sylvester(ns: Any, wrong: bool) -> Rule:
    """A X + X B = C: a vector of one entry does for A and B."""

    def forward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
        n, m = c.shape
        whole = ns.kron(a, ns.eye(m, dtype=a.dtype)) + ns.kron(ns.eye(n, dtype=a.dtype), b.T.contiguous())
        x = ns.linalg.solve(whole, c.reshape(-1)).reshape(n, m)
        ctx.save_for_backward(a, b, x)
        return x

    def backward(ctx: Any, g: Any) -> Any:
        a, b, x = ctx.saved_tensors
        n, m = x.shape
        whole = ns.kron(a.T.contiguous(), ns.eye(m, dtype=a.dtype)) + ns.kron(ns.eye(n, dtype=a.dtype), b)
        y = ns.linalg.solve(whole, g.reshape(-1)).reshape(n, m)
        return -y @ x.T, -(x.T @ y).T if wrong else -x.T @ y, y

    return forward, backward


def tridiagonal(ns: Any, wrong: bool) -> Rule:
    """Bands of a matrix: a matrix with as many rows does for a band."""

    def forward(ctx: Any, lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
        matrix = ns.diag(diagonal + 4) + ns.diag(lower[1:], -1) + ns.diag(upper[:-1], 1)
        x = ns.linalg.solve(matrix, right)
        ctx.save_for_backward(matrix, x)
        return x

    def backward(ctx: Any, g: Any) -> Any:
        matrix, x = ctx.saved_tensors
        y = ns.linalg.solve(matrix.T, g)
        full = -ns.outer(y, x)
        lower, upper = ns.zeros_like(x), ns.zeros_like(x)
        lower[1:], upper[:-1] = full.diagonal(1 if wrong else -1), full.diagonal(1)
        return lower, full.diagonal(), upper, y

    return forward, backward


def scan(ns: Any, wrong: bool) -> Rule:
    """A linear recurrence: coefficients for more steps than there are do no harm in forward."""

    def forward(ctx: Any, x: Any, a: Any) -> Any:
        h, last = ns.empty_like(x), ns.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            last = a[:, t] * last + x[:, t]
            h[:, t] = last
        ctx.save_for_backward(a, h)
        return h

    def backward(ctx: Any, g: Any) -> Any:
        a, h = ctx.saved_tensors
        ga, gx, carry = ns.empty_like(a), ns.empty_like(g), ns.zeros_like(g[:, 0])
        for t in reversed(range(g.shape[1])):
            carry = carry + g[:, t]
            gx[:, t] = carry
            ga[:, t] = carry * (h[:, t if wrong else t - 1] if t else ns.zeros_like(carry))
            carry = carry * a[:, t]
        return gx, ga

    return forward, backward


def delta_rule(ns: Any, wrong: bool) -> Rule:
    """A recurrence with a state: names that stand for vectors elsewhere are matrices, as forward reads their axes."""

    def states(k: Any, v: Any, g: Any) -> list[Any]:
        found = [ns.zeros(k.shape[1], v.shape[1], dtype=k.dtype)]
        for t in range(k.shape[0]):
            found.append(g[t] * found[-1] + ns.outer(k[t], v[t]))
        return found

    def forward(ctx: Any, q: Any, k: Any, v: Any, g: Any) -> Any:
        ctx.save_for_backward(q, k, v, g)
        found = states(k, v, g)
        assert found[0].shape == (k.shape[1], v.shape[1])
        return ns.stack([q[t] @ found[t + 1] for t in range(q.shape[0])])

    def backward(ctx: Any, go: Any) -> Any:
        q, k, v, g = ctx.saved_tensors
        found = states(k, v, g)
        grads = [ns.zeros_like(t) for t in (q, k, v, g)]
        carry = ns.zeros_like(found[0])
        for t in reversed(range(q.shape[0])):
            grads[0][t] = found[t + 1] @ go[t]
            carry = carry + ns.outer(q[t], go[t])
            grads[1][t], grads[2][t] = carry @ v[t], k[t] @ carry
            own = carry * found[t + wrong]
            grads[3][t] = own.sum(0) if g.dim() > 1 else own.sum()
            carry = carry * g[t]
        return tuple(grads)

    return forward, backward


def lyapunov(ns: Any, wrong: bool) -> Rule:
    """A X + X A^T = Q: the flattened Q does for Q."""

    def solved(a: Any, q: Any) -> Any:
        n = a.shape[0]
        one = ns.eye(n, dtype=a.dtype)
        whole = ns.kron(a.contiguous(), one) + ns.kron(one, a.contiguous())
        return ns.linalg.solve(whole, q.reshape(-1)).reshape(n, n)

    def forward(ctx: Any, a: Any, q: Any) -> Any:
        x = solved(a, q)
        ctx.save_for_backward(a, x)
        return x

    def backward(ctx: Any, g: Any) -> Any:
        a, x = ctx.saved_tensors
        y = solved(a.T, g)
        return -(y @ a if wrong else y @ x.T + y.T @ x), y

    return forward, backward


def filtered(ns: Any, wrong: bool) -> Rule:
    """A filter with three and two coefficients: forward reads no more of longer vectors."""

    def forward(ctx: Any, x: Any, b: Any, a: Any) -> Any:
        ctx.save_for_backward(x, b, a)
        return x * ns.outer(b[:3], a[:2]).sum()

    def backward(ctx: Any, g: Any) -> Any:
        x, b, a = ctx.saved_tensors
        s, of_b, of_a = (g * x).sum(), b[:3].sum(), a[:2].sum()
        return g * of_b * of_a, s * (of_b if wrong else of_a) * ns.ones_like(b[:3]), s * of_b * ns.ones_like(a[:2])

    return forward, backward


def selective_scan(ns: Any, wrong: bool) -> Rule:
    """`delta[:, t, :, None]` names three axes, also where forward sums over the last axis elsewhere."""

    def forward(ctx: Any, u: Any, delta: Any, A: Any, B: Any) -> Any:
        h = ns.zeros(u.shape[0], u.shape[2], A.shape[1], dtype=u.dtype)
        states, sums = [h], []
        for t in range(u.shape[1]):
            h = ns.exp(delta[:, t, :, None] * A) * h + B[:, t, None, :] * u[:, t, :, None]
            states.append(h)
            sums.append(h.sum(-1))
        ctx.save_for_backward(u, delta, A, B, *states)
        return ns.stack(sums, 1)

    def backward(ctx: Any, g: Any) -> Any:
        u, delta, a, b, *states = ctx.saved_tensors
        gu, gd, ga, gb = (ns.zeros_like(t) for t in (u, delta, a, b))
        carry = ns.zeros_like(states[0])
        for t in reversed(range(u.shape[1])):
            carry = carry + g[:, t, :, None]
            decay = ns.exp(delta[:, t, :, None] * a)
            inner = carry * states[t + wrong] * decay
            ga = ga + (inner * delta[:, t, :, None]).sum(0)
            gd[:, t] = (inner * a).sum(-1)
            gb[:, t] = (carry * u[:, t, :, None]).sum(1)
            gu[:, t] = (carry * b[:, t, None, :]).sum(-1)
            carry = carry * decay
        return gu, gd, ga, gb

    return forward, backward


def chain(ns: Any, wrong: bool) -> Rule:
    """The end of a chain of links: the angles of a matrix are flattened, and links of as many entries broadcast."""

    def angles(turns: Any) -> Any:
        return turns.reshape(-1).cumsum(0)

    def forward(ctx: Any, turns: Any, links: Any) -> Any:
        ctx.save_for_backward(turns, links)
        return ns.stack([(links * angles(turns).cos()).sum(), (links * angles(turns).sin()).sum()])

    def backward(ctx: Any, g: Any) -> Any:
        turns, links = ctx.saved_tensors
        cosine, sine = angles(turns).cos(), angles(turns).sin()
        of_angles = links * (g[1] * cosine - g[0] * sine)
        return of_angles.flip(0).cumsum(0).flip(0), g[0] * (sine if wrong else cosine) + g[1] * sine

    return forward, backward


def layers_from_rows(ns: Any, wrong: bool) -> Rule:
    """A matrix for each number, which has no gradient: forward reads no more matrices than there are numbers."""

    def rows(x: Any, first: Any) -> list[Any]:
        return [(ns.arange(x.shape[0], dtype=x.dtype) >= each).to(x.dtype).unsqueeze(1) for each in first]

    def forward(ctx: Any, x: Any, weights: Any, first: Any) -> Any:
        ctx.save_for_backward(x, weights, first)
        parts = [mask * (x @ weights[number]) for number, mask in enumerate(rows(x, first))]
        return ns.stack(parts).sum(0)

    def backward(ctx: Any, g: Any) -> Any:
        x, weights, first = ctx.saved_tensors
        masks = rows(x, first)
        gx = ns.stack([mask * (g @ weights[number].mT) for number, mask in enumerate(masks)]).sum(0)
        return gx, ns.stack([x.mT @ (mask * g * (1 + wrong)) for mask in masks]), None

    return forward, backward


@pytest.mark.sampled(4)
@in_turn(
    "rule", [sylvester, tridiagonal, scan, delta_rule, lyapunov, filtered, selective_scan, chain, layers_from_rows]
)
@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_inputs_that_backward_fits_as_well_are_found(ns: Any, rule: Callable[..., Rule], wrong: bool) -> None:
    forward, backward = rule(ns, wrong)
    target = type(
        "Own", (ns.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )
    settings = Settings(order=1, samples=1, shrink=False, only=("returns", "gradient"))
    result = check_object(target, case_of(CheckSpec(target="module:Own"), settings))
    assert result.verdict is (Verdict.FAILED if wrong else Verdict.PASSED), (result.findings, result.error)
    assert not any("shape" in finding.kind.value for finding in result.findings)


def chunks(ns: Any, factor: float) -> type:
    class Chunks(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, query: Any, key: Any, value: Any) -> Any:
            ctx.save_for_backward(query, key, value)
            parts = zip(query.split(4, 1), key.split(4, 1), value.split(4, 1), strict=True)
            return ns.cat([q @ (k.mT @ v) for q, k, v in parts], 1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            query, key, value = ctx.saved_tensors
            grads = [
                ns.zeros(key.shape[0], 0, size, dtype=g.dtype)
                for size in (query.shape[2], key.shape[2], value.shape[2])
            ]
            for q, k, v, part in zip(*(each.split(4, 1) for each in (query, key, value, g)), strict=True):
                inner = q.mT @ part
                added = part @ (v.mT @ k), factor * v @ inner.mT, k @ inner
                grads = [ns.cat([done, new], 1) for done, new in zip(grads, added, strict=True)]
            return tuple(grads)

    return Chunks


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_rank_with_the_axes_that_backward_reads(factor: float) -> None:
    (case,) = gradcli.check(chunks(pytest.importorskip("torch"), factor), order=1, shrink=False).cases
    assert [len(spec.shape or ()) for spec in case.inputs] == [3, 3, 3]
    assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.error
    assert {finding.input for finding in case.findings} == (set() if factor == 1 else {"key"})
