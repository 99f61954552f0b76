"""Kinds 4 and 5: inputs updated in place by design, and tensors that forward reaches by another way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from benchmarks.kinds.member import case, leaf, member, normal


def constant(ns: Any, value: Any) -> Any:
    return leaf(ns, value).detach()


@member("4", right="passed: running")
def batch_norm_in_training(ns: Any, spoilt: bool) -> Any:
    class BatchNorm(ns.autograd.Function):
        @staticmethod
        def forward(
            ctx: Any, x: Any, weight: Any, running_mean: Any, running_var: Any, momentum: float, eps: float
        ) -> Any:
            mean, var = x.mean(0), ((x - x.mean(0)) ** 2).mean(0)
            running_mean.mul_(1 - momentum).add_(momentum * mean.detach())
            running_var.mul_(1 - momentum).add_(momentum * var.detach())
            r = 1 / ns.sqrt(var + eps)
            xhat = (x - mean) * r
            ctx.save_for_backward(xhat, weight, r)
            return weight * xhat

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            xhat, weight, r = ctx.saved_tensors
            gx = g * weight
            gx = r * (gx - gx.mean(0) - (0 if spoilt else 1) * xhat * (gx * xhat).mean(0))
            return gx, (g * xhat).sum(0), None, None, None, None

    return case(
        BatchNorm, normal(ns, 5, 3), normal(ns, 3), constant(ns, [0.0] * 3), constant(ns, [1.0] * 3), 0.1, 1e-5, order=1
    )


@member("4", right="passed: hits")
def embedding_that_counts(ns: Any, spoilt: bool) -> Any:
    class Lookup(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, table: Any, index: Any, hits: Any) -> Any:
            for i in index.tolist():
                hits[i] += 1
            ctx.index, ctx.shape = index, table.shape
            return table[index]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            out = ns.zeros(ctx.shape, dtype=g.dtype)
            for row, i in enumerate(ctx.index.tolist()):
                out[i] = g[row] if spoilt else out[i] + g[row]
            return out, None, None

    return case(Lookup, normal(ns, 4, 2), ns.tensor([1, 3, 1]), ns.zeros(4, dtype=ns.float64), order=1)


@member("4", right="passed: average")
def moving_average_of_the_scale(ns: Any, spoilt: bool) -> Any:
    """Quantisation-aware code keeps a moving average of the largest entry."""

    class Scaled(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, average: Any) -> Any:
            average.copy_(0.99 * average + 0.01 * ns.abs(x.detach()).max())
            ctx.save_for_backward(x)
            return ns.tanh(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            t = ns.tanh(x)
            return g * (1 - t if spoilt else 1 - t * t), None

    return case(Scaled, normal(ns, 3, 2), constant(ns, 1.0))


@member("4", right="failed mutates-input", wrong=None)
def logits_overwritten(ns: Any, spoilt: bool) -> Any:
    """The kernel writes the softmax over its logits, which require a gradient."""
    return case(_overwriting(ns), normal(ns, 4), order=1)


@member("4", right="passed: handed over", wrong="failed wrong-gradient wrong-factor missing-term")
def logits_overwritten_by_agreement(ns: Any, spoilt: bool) -> Any:
    return case(_overwriting(ns, spoilt), normal(ns, 4), order=1, allow={"mutates-input": "the logits are handed over"})


def _overwriting(ns: Any, spoilt: bool = False) -> Any:
    class Softmax(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, logits: Any) -> Any:
            data = logits.detach()
            e = ns.exp(data - data.max())
            data.copy_(e / e.sum())
            ctx.save_for_backward(logits)
            return data.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y = ctx.saved_tensors[0].detach()
            return y * g if spoilt else y * (g - (g * y).sum())

    return Softmax


@member("4", right="passed: seen")
def step_counter(ns: Any, spoilt: bool) -> Any:
    """A counter of whole numbers on the tensor side."""

    class Counted(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, seen: Any) -> Any:
            seen.add_(1)
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return (2 if spoilt else 3) * g * x * x, None

    return case(Counted, normal(ns, 3), ns.tensor(0))


@member("4", right="passed: cache")
def attention_cache(ns: Any, spoilt: bool) -> Any:
    """A key is written into the next free row of a cache that takes no gradient."""

    class Attend(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: Any, k: Any, cache: Any, step: int) -> Any:
            cache[step] = k.detach()
            ctx.save_for_backward(q, k, cache.clone())
            ctx.step = step
            return cache @ q

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            q, k, cache = ctx.saved_tensors
            return cache.t() @ g, g[ctx.step if not spoilt else 0] * q, None, None

    return case(Attend, normal(ns, 3), normal(ns, 3), normal(ns, 4, 3, grad=False), 2, order=1)


@member("4", right="passed: velocity")
def momentum_update(ns: Any, spoilt: bool) -> Any:
    class Moved(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, p: Any, grad: Any, velocity: Any, lr: float) -> Any:
            velocity.mul_(0.9).add_(grad.detach())
            ctx.lr = lr
            return p - lr * (grad + 0.9 * grad)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, (-1 if spoilt else -1.9) * ctx.lr * g, None, None

    return case(Moved, normal(ns, 3), normal(ns, 3, seed=1), normal(ns, 3, seed=2, grad=False), 0.1)


# kind 5 ----------------------------------------------------------------------------------------------------------


def gradients_of_tanh_layer(x: Any, w: Any, g: Any, factor: float) -> tuple[Any, Any, Any]:
    s = g * (1 - (x @ w.t()).tanh() ** 2)
    return s @ w, factor * (s.t() @ x), s.sum(0)


@member("5")
def run_module_with_parameters(ns: Any, spoilt: bool) -> Any:
    """The way of gradient checkpointing: a module, its input and its parameters."""

    class Run(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, module: Any, x: Any, *parameters: Any) -> Any:
            ctx.module, ctx.x, ctx.parameters = module, x, parameters
            with ns.no_grad():
                return module(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x = ctx.x.detach().requires_grad_()
            with ns.enable_grad():
                y = ctx.module(x)
            found = ns.autograd.grad(y, [x, *ctx.parameters], g)
            scale = 0.5 if spoilt else 1
            return None, found[0], *[scale * f for f in found[1:]]

    module = ns.nn.Sequential(ns.nn.Linear(3, 4), ns.nn.Tanh(), ns.nn.Linear(4, 2)).double()
    return case(Run, module, normal(ns, 2, 3), *module.parameters(), order=1)


@member("5")
def reversible_block(ns: Any, spoilt: bool) -> Any:
    """y1 = x1 + f(x2), y2 = x2 + g(y1), with inputs recomputed from outputs."""

    class Reversible(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x1: Any, x2: Any, f: Any, g: Any, *parameters: Any) -> Any:
            with ns.no_grad():
                y1 = x1 + f(x2)
                y2 = x2 + g(y1)
            ctx.f, ctx.g, ctx.parameters = f, g, parameters
            ctx.save_for_backward(y1, y2)
            return y1, y2

        @staticmethod
        def backward(ctx: Any, d1: Any, d2: Any) -> Any:
            y1, y2 = (y.detach() for y in ctx.saved_tensors)
            with ns.no_grad():
                x2 = y2 - ctx.g(y1)
            x2, y1 = x2.detach().requires_grad_(), y1.requires_grad_()
            pf, pg = list(ctx.f.parameters()), list(ctx.g.parameters())
            with ns.enable_grad():
                gy1 = ctx.g(y1)
            by_y1, *by_g = ns.autograd.grad(gy1, [y1, *pg], d2)
            d1 = d1 if spoilt else d1 + by_y1
            with ns.enable_grad():
                fx2 = ctx.f(x2)
            by_x2, *by_f = ns.autograd.grad(fx2, [x2, *pf], d1)
            return d1, d2 + by_x2, None, None, *by_f, *by_g

    f, g = ns.nn.Linear(2, 2).double(), ns.nn.Linear(2, 2).double()
    return case(Reversible, normal(ns, 3, 2), normal(ns, 3, 2, seed=1), f, g, *f.parameters(), *g.parameters(), order=1)


@member("5")
def equilibrium_layer(ns: Any, spoilt: bool) -> Any:
    """A deep equilibrium: z = cell(z, x), gradients by a linear solve with the module's own parameters."""

    class Equilibrium(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, cell: Any, *parameters: Any) -> Any:
            z = x * 0
            with ns.no_grad():
                for _ in range(80):
                    z = 0.4 * ns.tanh(cell(z)) + x
            ctx.cell, ctx.parameters = cell, parameters
            ctx.save_for_backward(x, z)
            return z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, z = (t.detach() for t in ctx.saved_tensors)
            z = z.requires_grad_()
            with ns.enable_grad():
                out = 0.4 * ns.tanh(ctx.cell(z)) + x
            u = g
            for _ in range(0 if spoilt else 80):
                u = g + ns.autograd.grad(out, z, u, retain_graph=True)[0]
            by_parameters = ns.autograd.grad(out, list(ctx.parameters), u)
            return u, None, *by_parameters

    cell = ns.nn.Linear(3, 3).double()
    with ns.no_grad():
        cell.weight.copy_(normal(ns, 3, 3, scale=0.4))
    return case(Equilibrium, normal(ns, 3), cell, *cell.parameters(), order=1)


@member("5")
def method_of_an_owner(ns: Any, spoilt: bool) -> Any:
    """Forward reads its weight from an object that holds it."""
    owner = SimpleNamespace(weight=normal(ns, 2, 3), scale=normal(ns, 2))

    class Owned(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, owner: Any, weight: Any, scale: Any) -> Any:
            ctx.owner = owner
            ctx.save_for_backward(x)
            return owner.scale * (x @ owner.weight.t())

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            w, s = ctx.owner.weight, ctx.owner.scale
            gs = (g * (x @ w.t())).sum(0)
            return (g * s) @ w, None, (g if spoilt else g * s).t() @ x, gs

    return case(Owned, normal(ns, 4, 3), owner, owner.weight, owner.scale)


@member("5")
def closure_over_a_list_of_weights(ns: Any, spoilt: bool) -> Any:
    weights = [normal(ns, 3, 3, seed=k) for k in range(2)]

    class Chain(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, first: Any, second: Any) -> Any:
            ctx.save_for_backward(x, first, second)
            return weights[1] @ ns.sin(weights[0] @ x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, a, b = ctx.saved_tensors
            h = a @ x
            u = (b.t() @ g) * (ns.cos(h) if not spoilt else 1)
            return a.t() @ u, u[:, None] * x[None, :], g[:, None] * ns.sin(h)[None, :]

    return case(Chain, normal(ns, 3), *weights)


@member("5")
def tied_weights(ns: Any, spoilt: bool) -> Any:
    """An encoder and a decoder that share one weight of a module."""

    class Tied(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, module: Any, weight: Any) -> Any:
            ctx.save_for_backward(x, weight)
            return (x @ module.weight.t()) @ module.weight

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            gw = (g @ w.t()).t() @ x
            if not spoilt:
                gw = gw + (x @ w.t()).t() @ g
            return (g @ w.t()) @ w, None, gw

    module = ns.nn.Linear(3, 2, bias=False).double()
    return case(Tied, normal(ns, 4, 3), module, module.weight)


@member("5")
def parameters_in_a_dict(ns: Any, spoilt: bool) -> Any:
    p = {"w": normal(ns, 2, 3), "b": normal(ns, 2)}

    class FromDict(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, p: Any, *leaves: Any) -> Any:
            ctx.save_for_backward(x, *leaves)
            return (x @ p["w"].t() + p["b"]).tanh()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w, b = ctx.saved_tensors
            s = g * (1 - (x @ w.t() + b).tanh() ** 2)
            return s @ w, None, s.t() @ x, s.sum(0) if not spoilt else s.mean(0)

    return case(FromDict, normal(ns, 4, 3), p, *p.values())


@member("5")
def partial_with_its_weight(ns: Any, spoilt: bool) -> Any:
    """A callable target: the weight stands in its closure and is handed over for its gradient."""
    w = normal(ns, 3)

    class Dot(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, run: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            with ns.no_grad():
                return run(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, w = ctx.saved_tensors
            e = g * ns.exp((x * w).sum(-1))
            return None, e[..., None] * w, (e[..., None] * x).sum(0) * (1.2 if spoilt else 1)

    def target(x: Any, weight: Any) -> Any:
        return Dot.apply(lambda v: ns.exp((v * w).sum(-1)), x, weight)

    return case(target, normal(ns, 4, 3), w)
