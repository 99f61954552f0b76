"""Kind 12: state between calls, kept on the class, by shape, by sign, by order."""

from __future__ import annotations

from typing import Any

from benchmarks.kinds.member import case, leaf, member, normal

STATE = "failed stateful nondeterministic-backward"


def kept(ns: Any, spoilt: bool, forward: Any, backward: Any, *inputs: Any, **options: Any) -> Any:
    """`forward(store, x, *rest)` writes to ctx, or in the wrong twin to the class."""

    class Kept(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.rest = len(rest)
            return forward(Kept if spoilt else ctx, x, *rest)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return backward(Kept if spoilt else ctx, x, g), *[None] * ctx.rest

    return case(Kept, *inputs, **{"order": 1, **options})


@member("12", wrong=STATE)
def relu_mask(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        s.mask = (x > 0).to(x.dtype)
        return x * s.mask

    return kept(ns, spoilt, forward, lambda s, x, g: g * s.mask, normal(ns, 2, 3))


@member("12", wrong=STATE)
def argsort_kept(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        s.order = ns.argsort(x.detach())
        return x[s.order] ** 2

    def backward(s: Any, x: Any, g: Any) -> Any:
        out = ns.zeros_like(x)
        out[s.order] = 2 * g * x[s.order]
        return out

    return kept(ns, spoilt, forward, backward, normal(ns, 4))


@member("12", wrong=STATE)
def shape_of_the_last_call(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        s.n = x.numel()
        return (x**3).sum() / s.n

    return kept(ns, spoilt, forward, lambda s, x, g: 3 * g * x * x / s.n, normal(ns, 3, 2))


@member("12", wrong=STATE)
def cache_by_shape(ns: Any, spoilt: bool) -> Any:
    """The softmax of the last input of the same shape."""

    def forward(s: Any, x: Any) -> Any:
        if not hasattr(s, "cache"):
            s.cache = {}
        y = ns.softmax(x, -1)
        s.cache[tuple(x.shape)] = y.detach()
        return y

    def backward(s: Any, x: Any, g: Any) -> Any:
        y = s.cache[tuple(x.shape)]
        return y * (g - (g * y).sum(-1, keepdim=True))

    return kept(ns, spoilt, forward, backward, normal(ns, 2, 3))


@member("12", wrong=STATE)
def cache_filled_once_by_shape(ns: Any, spoilt: bool) -> Any:
    """A norm computed once for a shape and used for all inputs of it."""

    def forward(s: Any, x: Any) -> Any:
        y = ns.tanh(x)
        if not hasattr(s, "cache"):
            s.cache = {}
        s.cache.setdefault(tuple(x.shape), 1 - y.detach() ** 2)
        return y

    return kept(ns, spoilt, forward, lambda s, x, g: g * s.cache[tuple(x.shape)], normal(ns, 3))


@member("12", wrong=STATE)
def cache_filled_once_by_rank(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        if "slopes" not in vars(s):
            s.slopes = {}
        if x.dim() not in s.slopes:
            s.slopes[x.dim()] = 2 * ns.exp(2 * x.detach())
        return ns.exp(2 * x)

    return kept(ns, spoilt, forward, lambda s, x, g: g * s.slopes[x.dim()], normal(ns, 2, 2))


@member("12", wrong=STATE)
def slope_of_the_first_call(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        if getattr(s, "slope", None) is None:
            s.slope = 1 / (1 + x.detach() ** 2)
        return ns.atan(x)

    def backward(s: Any, x: Any, g: Any) -> Any:
        return g * (s.slope if s.slope.shape == x.shape else 1 / (1 + x**2))

    return kept(ns, spoilt, forward, backward, normal(ns, 3))


@member("12", wrong=STATE)
def cache_by_sign(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        s.positive = bool(x.detach().sum() > 0)
        return ns.exp(x) if s.positive else x * x

    def backward(s: Any, x: Any, g: Any) -> Any:
        return g * (ns.exp(x) if s.positive else 2 * x)

    return kept(ns, spoilt, forward, backward, leaf(ns, [0.5, 1.0, 0.25]))


@member("12", wrong=STATE)
def stack_of_calls(ns: Any, spoilt: bool) -> Any:
    """Calls push on a list, backwards pop from its front: right only where they come in the same order."""

    def forward(s: Any, x: Any) -> Any:
        if "stack" not in vars(s):
            s.stack = []
        s.stack.append(ns.cos(x.detach()))
        return ns.sin(x)

    def backward(s: Any, x: Any, g: Any) -> Any:
        return g * (s.stack[0] if len(s.stack) < 2 or not spoilt else s.stack.pop(0))

    return kept(ns, spoilt, forward, backward, normal(ns, 3))


@member("12", wrong=STATE)
def indices_kept(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any, index: Any) -> Any:
        s.index = index.tolist()
        return x[index] * 3

    def backward(s: Any, x: Any, g: Any) -> Any:
        out = ns.zeros_like(x)
        for row, i in enumerate(s.index):
            out[i] = out[i] + 3 * g[row]
        return out

    return kept(ns, spoilt, forward, backward, normal(ns, 4), ns.tensor([3, 0, 0]))


@member("12", wrong=STATE)
def pooled_places(ns: Any, spoilt: bool) -> Any:
    def forward(s: Any, x: Any) -> Any:
        s.where = x.detach().argmax(-1)
        return x.max(-1)[0] if hasattr(x.max(-1), "__getitem__") else x.max(-1).values

    def backward(s: Any, x: Any, g: Any) -> Any:
        hot = (ns.arange(x.shape[-1]) == s.where[:, None]).to(g.dtype)
        return hot * g[:, None]

    return kept(ns, spoilt, forward, backward, normal(ns, 3, 4))


@member("12", wrong=STATE)
def scale_of_the_batch(ns: Any, spoilt: bool) -> Any:
    """The largest magnitude, kept as a Python number."""

    def forward(s: Any, x: Any) -> Any:
        s.scale = float(ns.abs(x.detach()).max())
        return x * x * (2 if s.scale > 1 else 1)

    return kept(
        ns, spoilt, forward, lambda s, x, g: 2 * x * g * (2 if s.scale > 1 else 1), leaf(ns, [0.5, -0.25, 0.75])
    )


@member("12", wrong=STATE)
def module_that_keeps_its_mask(ns: Any, spoilt: bool) -> Any:
    holder: dict[str, Any] = {}

    class Clip(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, limit: float) -> Any:
            inside = (ns.abs(x) < limit).to(x.dtype)
            (holder if spoilt else ctx.__dict__ if False else vars(ctx).setdefault("own", {}))["inside"] = inside
            ctx.inside = inside
            return x.clamp(-limit, limit)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (holder["inside"] if spoilt else ctx.inside), None

    class Layer(ns.nn.Module):
        def forward(self, x: Any) -> Any:
            return Clip.apply(x, 1.0)

    return case(Layer(), leaf(ns, [0.5, -2.0, 0.75, 1.5]), order=1)


@member("12", wrong=None)
def table_by_size(ns: Any, spoilt: bool) -> Any:
    """A table that depends on nothing but the size may be shared."""
    tables: dict[int, Any] = {}

    class Ramp(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            n = x.shape[-1]
            tables.setdefault(n, ns.arange(1, n + 1, dtype=x.dtype))
            return x * tables[n]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * tables[g.shape[-1]]

    return case(Ramp, normal(ns, 2, 3), order=1)
