"""Programs on in-place operations, views and version counters."""

from __future__ import annotations

from typing import Any

from tests.programs.semantics.table import case, caught, leaf, name, plain


@case
def changed_in_place(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 1
    z = y * y
    y.add_(1)
    first = caught(lambda: z.sum().backward())
    e = x.exp()
    e.mul_(2)
    second = caught(lambda: e.sum().backward())
    s = x + 1
    s.add_(1)
    s.sum().backward()
    m = x * 1
    n = m.sin()
    m.data.zero_()
    n.sum().backward()
    return [first, second, plain(x.grad)]


@case
def in_place_graphs(t: Any) -> Any:
    x = leaf(t, 1, 2)
    out = []
    for op in ("add_", "mul_", "sub_", "div_", "pow_"):
        y = x * 1
        getattr(y, op)(3)
        x.grad = None
        y.sum().backward()
        out.append([op, name(y), plain(y), plain(x.grad), y._version])
    for op in ("exp_", "sqrt_", "zero_", "neg_", "relu_", "sigmoid_", "tanh_", "abs_", "reciprocal_", "log_"):
        y = x * 1
        getattr(y, op)()
        x.grad = None
        y.sum().backward()
        out.append([op, name(y), plain(y), plain(x.grad), y._version])
    y = x * 1
    y.mul_(y)
    out.append([name(y), caught(y.sum().backward, words=False)])
    y = x * 1
    y.clamp_(0, 1.5).fill_(3)
    y.copy_(x * 5)
    x.grad = None
    y.sum().backward()
    out.append([name(y), plain(x.grad), y._version])
    y = x * 1
    y.masked_fill_(y > 1.5, 0.0)
    x.grad = None
    y.sum().backward()
    out.append([name(y), plain(x.grad)])
    return out


@case
def in_place_on_views(t: Any) -> Any:
    x = t.arange(6, dtype=t.float64).reshape(2, 3).clone().requires_grad_()
    y = x * 1
    y[0].mul_(5)
    y[:, 1] += 10
    y.view(-1)[5] = 0
    y.t()[2].add_(x[0, 0])
    (y * y).sum().backward()
    v = (x * 1)[0]
    base = v._base
    v.mul_(2)
    z = t.zeros(3, dtype=t.float64)
    z[1:] = x[0, :2]
    w = t.zeros(2, 3, dtype=t.float64)
    part = w[0]
    w.add_(x)
    g = t.autograd.grad((z * z).sum() + (part * part).sum() + (base * base).sum(), x)
    return [plain(y), plain(x.grad), name(y), name(z), z.requires_grad, part.requires_grad, plain(g)]


@case
def in_place_errors(t: Any) -> Any:
    x = leaf(t, 1, 2)
    y = x * 1

    def view_without_grad() -> Any:
        with t.no_grad():
            v = y[:1]
        return v.mul_(x[:1])

    return [
        caught(lambda: x.add_(1)),
        caught(lambda: x[0].add_(1)),
        caught(lambda: x.__setitem__(0, 1.0)),
        caught(lambda: x.view(-1).mul_(2)),
        caught(lambda: t.ones(2, dtype=t.int64).add_(1.5)),
        caught(lambda: t.ones(2).add_(t.ones(3, 2))),
        caught(lambda: t.ones(1).expand(3).add_(1), words=False),
        caught(view_without_grad),
        caught(lambda: t.zeros(2, dtype=t.int64).mul_(1j), words=False),
        caught(lambda: x.zero_()),
        caught(lambda: x.uniform_()),
        caught(lambda: x.data.fill_(3).tolist()),
    ]


@case
def versions(t: Any) -> Any:
    x = t.zeros(4)
    v, d, p = x[:2], x.detach(), x.data
    x.add_(1)
    v.mul_(2)
    d.sub_(1)
    p.add_(1)
    x[0] = 5
    x[x > 100] = 1
    x.copy_(t.ones(4))
    x.zero_()
    return [x._version, v._version, d._version, p._version, plain(x)]


@case
def views_and_bases(t: Any) -> Any:
    x = t.arange(6.0)
    v = x.view(2, 3)
    w = v[0]
    return [
        x._base is None,
        v._base is x,
        w._base is x,
        x.clone()._base is None,
        x.detach()._base is None,
        v.t()._base is x,
        x[[0, 1]]._base is None,
        x.reshape(3, 2)._base is x,
        v.t().reshape(6)._base is None,
        (x + 1)._base is None,
    ]
