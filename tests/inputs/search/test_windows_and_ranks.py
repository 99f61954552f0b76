"""Inferred inputs reach what a mistake needs to show: overlapping windows, a layer's vectors, other ranks and modes."""

from typing import Any

import pytest

from gradcli.cases import CheckSpec
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.results import CheckResult
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict


def checked(target: Any) -> CheckResult:
    return check_object(target, case_of(CheckSpec(target="module:Target"), Settings(order=1, samples=1, shrink=False)))


def shapes_of(result: CheckResult) -> dict[str, tuple[int, ...] | None]:
    return {spec.name: spec.shape for spec in result.inputs}


def correlation(ns: Any, *, wrong: bool) -> Any:
    class Correlation(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kernel: Any) -> Any:
            ctx.save_for_backward(x, kernel)
            k = kernel.shape[-1]
            if kernel.dim() != 1:
                raise ValueError(f"expected a kernel of one axis, got {kernel.dim()}")
            windows = [(x[..., i : i + k] * kernel).sum(-1) for i in range(x.shape[-1] - k + 1)]
            return ns.stack(windows, -1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, kernel = ctx.saved_tensors
            k = kernel.shape[-1]
            gx, gk = ns.zeros_like(x), ns.zeros_like(kernel)
            for i in range(g.shape[-1]):
                part = g[..., i : i + 1]
                if wrong:
                    gx[..., i : i + k] = part * kernel
                else:
                    gx[..., i : i + k] += part * kernel
                gk += (part * x[..., i : i + k]).reshape(-1, k).sum(0)
            return gx, gk

    return Correlation


def pooled(ns: Any, *, wrong: bool) -> Any:
    class Pooled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kernel_size: int = 2, stride: int = 1) -> Any:
            ctx.shape, ctx.k, ctx.stride = x.shape, kernel_size, stride
            starts = range(0, x.shape[-1] - kernel_size + 1, stride)
            return ns.stack([x[..., i : i + kernel_size].mean(-1) for i in starts], -1)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            gx = ns.zeros(ctx.shape, dtype=g.dtype)
            for i in range(g.shape[-1]):
                at = slice(i * ctx.stride, i * ctx.stride + ctx.k)
                part = g[..., i : i + 1] / ctx.k
                if wrong:
                    gx[..., at] = part.expand(*part.shape[:-1], ctx.k)
                else:
                    gx[..., at] += part
            return gx, None, None

    return Pooled


def layer(ns: Any, *, wrong: bool) -> Any:
    class Layer(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any, bias: Any) -> Any:
            ctx.save_for_backward(x, scale)
            return x * scale + bias

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, scale = ctx.saved_tensors
            gs = (g * x).sum(0)
            return g * scale, gs.flip(0) if wrong else gs, g.sum(0)

    return Layer


def of_any_rank(ns: Any, *, wrong: bool) -> Any:
    class Linear(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight = ctx.saved_tensors
            if x.dim() == 2:
                gw = g.t() @ x
            else:
                rows, columns = g.reshape(-1, g.shape[-1]), x.reshape(-1, x.shape[-1])
                gw = rows.t() @ columns * (0.5 if wrong else 1.0)
            return g @ weight, gw

    return Linear


def signed_margin(ns: Any, *, wrong: bool) -> Any:
    class Margin(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            d = (x * x).sum(1)
            return ns.where(y == 1, d, ns.exp(-d)).mean()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            d = (x * x).sum(1)
            slope = ns.where(y == 1, ns.ones_like(d), -ns.exp(-d) * (2 if wrong else 1))
            return 2 * x * (slope * g / x.shape[0])[:, None], None

    return Margin


def of_a_kind(ns: Any, *, wrong: bool) -> Any:
    class Power(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, kind: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.kind = kind
            return x**2 if kind == 1 else x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * ((1 if wrong else 2) * x if ctx.kind == 1 else 3 * x**2), None

    return Power


def of_a_mode(ns: Any, *, wrong: bool) -> Any:
    class Wave(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, mode: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.mode = mode
            if mode == "sine":
                return ns.sin(x)
            if mode == "cosine":
                return ns.cos(x)
            raise ValueError(f"expected sine or cosine, got {mode!r}")

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * (ns.cos(x) if ctx.mode == "sine" else (1 if wrong else -1) * ns.sin(x)), None

    return Wave


def of_a_numbered_mode(ns: Any, *, wrong: bool) -> Any:
    class Wave(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, mode: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.mode = mode
            return ns.sin(x) if mode == 0 else ns.cos(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * ((0.5 if wrong else 1) * ns.cos(x) if ctx.mode == 0 else -ns.sin(x)), None

    return Wave


def with_a_flag(ns: Any, *, wrong: bool) -> Any:
    class Sum(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, rows: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.rows = rows
            return (x * x).sum(1 if rows else 0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            if not ctx.rows:
                return (1 if wrong else 2) * x * g[None], None
            return 2 * x * g[:, None], None

    return Sum


def of_an_order(ns: Any, *, wrong: bool) -> Any:
    class Norm(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, p: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.p = p
            return ns.abs(x).max() if p == float("inf") else (ns.abs(x) ** p).sum() ** (1 / p)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            size = ns.abs(x)
            if ctx.p == float("inf"):
                return (2 if wrong else 1) * g * ns.sign(x) * (size == size.max()).to(x.dtype), None
            total = (size**ctx.p).sum() ** (1 / ctx.p)
            return g * ns.sign(x) * (size / total) ** (ctx.p - 1), None

    return Norm


def by_labels(ns: Any, *, wrong: bool) -> Any:
    class Pairs(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, scores: Any, labels: Any) -> Any:
            gains = (labels[:, None] > labels[None, :]) * (2.0 ** labels.to(scores.dtype))[:, None]
            ctx.save_for_backward(gains)
            return (gains * (scores[:, None] - scores[None, :])).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (gains,) = ctx.saved_tensors
            return g * (gains.sum(1) - (0.5 if wrong else 1) * gains.sum(0)), None

    return Pairs


def with_two_flags(ns: Any, *, wrong: bool) -> Any:
    class Power(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, squared: bool = False, halved: bool = False) -> Any:
            ctx.save_for_backward(x)
            ctx.flags = squared, halved
            y = x * x if squared else x
            return y / 2 if halved else 1.0 * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            squared, halved = ctx.flags
            slope = 2 * x if squared else ns.ones_like(x)
            return g * slope / (2 if halved and not (wrong and squared) else 1), None, None

    return Power


def over_edges(ns: Any, *, wrong: bool) -> Any:
    class Messages(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, h: Any, edge_index: Any, a_src: Any, a_dst: Any) -> Any:
            ctx.save_for_backward(h, edge_index, a_src, a_dst)
            src, dst = edge_index[0], edge_index[1]
            return ns.tanh((h[src] * a_src).sum(1) + (h[dst] * a_dst).sum(1))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            h, edge_index, a_src, a_dst = ctx.saved_tensors
            src, dst = edge_index[0], edge_index[1]
            y = ns.tanh((h[src] * a_src).sum(1) + (h[dst] * a_dst).sum(1))
            d = (g * (1 - y * y))[:, None]
            gh = ns.zeros_like(h).index_add(0, src, d * a_src).index_add(0, dst, d * (a_src if wrong else a_dst))
            return gh, None, (d * h[src]).sum(0), (d * h[dst]).sum(0)

    return Messages


MADE = [
    by_labels,
    with_two_flags,
    over_edges,
    with_a_flag,
    of_an_order,
    of_a_kind,
    of_a_mode,
    of_a_numbered_mode,
    correlation,
    pooled,
    layer,
    of_any_rank,
    signed_margin,
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("make", MADE)
def test_a_right_one_passes(ns: Any, make: Any) -> None:
    assert checked(make(ns, wrong=False)).verdict is Verdict.PASSED


@pytest.mark.sampled(6)
@pytest.mark.parametrize("make", MADE)
@pytest.mark.usefixtures("unexplained")
def test_the_mistake_shows(ns: Any, make: Any) -> None:
    assert checked(make(ns, wrong=True)).verdict is Verdict.FAILED


def test_a_window_has_several_positions(ns: Any) -> None:
    shapes = shapes_of(checked(correlation(ns, wrong=False)))
    (window,), signal = shapes["kernel"] or (), shapes["x"] or ()
    assert 1 < window < signal[-1]
    assert len(set(signal)) == len(signal)


def test_tensors_that_must_be_alike_keep_their_sizes(ns: Any) -> None:
    class Product(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            return g @ b.t(), a.t() @ g

    shapes = shapes_of(checked(Product))
    assert (shapes["a"], shapes["b"]) == ((3, 4), (4, 5))


def test_a_signal_and_its_kernel_keep_one_length_where_backward_needs_it() -> None:
    torch = pytest.importorskip("torch")

    class Convolution(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, u: Any, k: Any) -> Any:
            n = u.shape[-1]
            ctx.save_for_backward(u, k)
            return torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(k, n=2 * n), n=2 * n)[..., :n]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            u, k = ctx.saved_tensors
            n = u.shape[-1]
            spectrum = torch.fft.rfft(g, n=2 * n)
            gu, gk = (
                torch.fft.irfft(spectrum * torch.fft.rfft(other, n=2 * n).conj(), n=2 * n)[..., :n] for other in (k, u)
            )
            return gu, gk.sum_to_size(k.shape) if gk.shape != k.shape else gk

    result = checked(Convolution)
    assert result.verdict is Verdict.PASSED
    assert shapes_of(result)["u"] == shapes_of(result)["k"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(ctx, x):\n    if x.dim() == 2:\n        return x", {"x"}),
        ("def f(ctx, x, w):\n    return x if len(x.shape) > w.ndim else w", {"x", "w"}),
        ("def f(ctx, x):\n    if np.ndim(x) == 1:\n        x = x[None]", {"x"}),
        ("def f(ctx, x):\n    if x.ndim != 2:\n        raise ValueError(x)\n    return x", set()),
        ("def f(ctx, x):\n    axes = range(x.dim())\n    return x", set()),
    ],
)
def test_branches_on_the_rank_are_read_from_the_source(source: str, names: set[str]) -> None:
    assert SourceHints(forward=source, backward="", gradients=()).branches_on_rank == names


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, Verdict.PASSED), (2.1, Verdict.FAILED)])
def test_no_label_is_the_blank(ns: Any, factor: float, verdict: Verdict) -> None:
    class Scores(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, labels: Any, blank: int = 0) -> Any:
            ctx.save_for_backward(x, labels)
            ctx.blank = blank
            return 2 * x[:, labels].sum(1) + x[:, blank]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, labels = ctx.saved_tensors
            grad = ns.zeros_like(x)
            for label in labels.tolist():
                grad[:, label] += factor * g
            grad[:, ctx.blank] = g
            return grad, None, None

    result = check_object(
        Scores, case_of(CheckSpec(target="module:Scores"), Settings(order=1, skip=("constants",), shrink=False))
    )
    assert result.verdict is verdict
    (labels,) = (spec for spec in result.inputs if spec.name == "labels")
    assert ("low", 1) in labels.parameters
