"""Geometry, finance, physics and attention in PyTorch."""

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("fields", "torch", __file__)


class TriangleArea(Function):
    """Areas of plane triangles, by their corners."""

    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b, c)
        u, v = b - a, c - a
        return 0.5 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])

    @staticmethod
    def backward(ctx, grad_area):
        a, b, c = ctx.saved_tensors
        half = 0.5 * grad_area
        to_a = torch.stack([b[:, 1] - c[:, 1], c[:, 0] - b[:, 0]], 1)
        to_b = torch.stack([c[:, 1] - a[:, 1], a[:, 0] - c[:, 0]], 1)
        to_c = torch.stack([a[:, 1] - b[:, 1], b[:, 0] - a[:, 0]], 1)
        return half[:, None] * to_a, half[:, None] * to_b, half[:, None] * to_c


PLANT(
    "TriangleArea",
    "a=Nx2 b=Nx2 c=Nx2",
    (
        "swap",
        "swapped-gradients",
        "b c",
        "half[:, None] * to_b, half[:, None] * to_c",
        "half[:, None] * to_c, half[:, None] * to_b",
    ),
    ("wrong-argument", "wrong-gradient wrong-entries missing-term", "a", "[b[:, 1] - c[:, 1],", "[b[:, 1] - a[:, 1],"),
    ("factor", "wrong-factor", "a b c", "half = 0.5 * grad_area", "half = grad_area"),
    flags=True,
)


class Forward(Function):
    """The price of a forward contract per holding, discounted continuously."""

    @staticmethod
    def forward(ctx, spot, rate, years):
        ctx.save_for_backward(spot, rate, years)
        return spot * torch.exp(rate * years[:, None])

    @staticmethod
    def backward(ctx, grad_price):
        spot, rate, years = ctx.saved_tensors
        growth = torch.exp(rate * years[:, None])
        inner = grad_price * spot * growth
        return grad_price * growth, (inner * years[:, None]).sum(0), (inner * rate).sum(1)


PLANT(
    "Forward",
    "spot=NxM rate=M years=N,domain=positive",
    (
        "missing-reduction",
        "missing-reduction",
        "rate",
        "(inner * years[:, None]).sum(0)",
        "(inner * years[:, None])[0]",
    ),
    ("wrong-reduction", "wrong-reduction wrong-factor", "years", "(inner * rate).sum(1)", "(inner * rate).mean(1)"),
    ("missing-slot", "missing-gradient swapped-gradients", "years", "(inner * rate).sum(1)", "None"),
    (
        "detach",
        "not-twice-differentiable",
        "",
        "inner = grad_price * spot * growth",
        "inner = grad_price * spot.detach() * growth",
    ),
    flags=True,
)


class GravityPotential(Function):
    """Potential of unit masses at places, seen from probes."""

    @staticmethod
    def forward(ctx, probes, places, softening):
        d = probes[:, None] - places[None]
        r = (d.square().sum(-1) + softening**2).sqrt()
        ctx.save_for_backward(probes, places, softening)
        return -(1 / r).sum(1)

    @staticmethod
    def backward(ctx, grad_potential):
        probes, places, softening = ctx.saved_tensors
        d = probes[:, None] - places[None]
        r = (d.square().sum(-1) + softening**2).sqrt()
        pull = grad_potential[:, None] / r**3
        return (pull[..., None] * d).sum(1), -(pull[..., None] * d).sum(0), softening * pull.sum()


PLANT(
    "GravityPotential",
    "probes=Nx2 places=Kx2 softening=scalar,domain=positive",
    ("sign", "wrong-sign", "places", "-(pull[..., None] * d).sum(0)", "(pull[..., None] * d).sum(0)"),
    ("power", "wrong-factor wrong-gradient", "probes places softening", "/ r**3", "/ r**2"),
    (
        "stale-saved",
        "wrong-second-order not-twice-differentiable",
        "",
        "        ctx.save_for_backward(probes, places, softening)\n        return -(1 / r).sum(1)\n\n    @staticmethod\n    def backward(ctx, grad_potential):\n        probes, places, softening = ctx.saved_tensors\n        d = probes[:, None] - places[None]\n        r = (d.square().sum(-1) + softening**2).sqrt()\n",
        "        ctx.save_for_backward(d, r, softening)\n        return -(1 / r).sum(1)\n\n    @staticmethod\n    def backward(ctx, grad_potential):\n        d, r, softening = ctx.saved_tensors\n",
    ),
    flags=True,
)


class CausalScores(Function):
    """Attention weights in which nothing attends to what comes later."""

    @staticmethod
    def forward(ctx, q, k):
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        later = torch.ones_like(scores).triu(1).bool()
        p = scores.masked_fill(later, -1e9).softmax(-1)
        ctx.save_for_backward(q, k, p)
        return p

    @staticmethod
    def backward(ctx, grad_p):
        q, k, p = ctx.saved_tensors
        ds = p * (grad_p - (grad_p * p).sum(-1, keepdim=True))
        ds = ds / q.shape[-1] ** 0.5
        return ds @ k, ds.transpose(-1, -2) @ q


PLANT(
    "CausalScores",
    "q=BxTxD k=BxTxD",
    ("missing-term", "missing-term", "q k", "(grad_p - (grad_p * p).sum(-1, keepdim=True))", "grad_p"),
    (
        "wrong-dim",
        "wrong-reduction missing-term wrong-gradient",
        "q k",
        "(grad_p * p).sum(-1, keepdim=True)",
        "(grad_p * p).sum(-2, keepdim=True)",
    ),
    ("transposition", "transposed", "k", "ds.transpose(-1, -2) @ q", "ds @ q"),
    ("factor", "wrong-factor", "q k", "        ds = ds / q.shape[-1] ** 0.5\n", ""),
    flags=True,
)


class Barrier(Function):
    """A log barrier above a floor, linear below it."""

    @staticmethod
    def forward(ctx, slack, floor):
        ctx.save_for_backward(slack)
        ctx.floor = floor
        low = 1 - slack / floor - torch.log(torch.tensor(floor, dtype=slack.dtype))
        return torch.where(slack > floor, -torch.log(slack.clamp(min=floor)), low)

    @staticmethod
    def backward(ctx, grad_output):
        (slack,) = ctx.saved_tensors
        inside = slack > ctx.floor
        return -grad_output * torch.where(inside, 1 / slack, torch.full_like(slack, 1 / ctx.floor)), None


PLANT(
    "Barrier",
    "slack=NxM floor:0.5",
    (
        "mask",
        "wrong-entries wrong-gradient wrong-sign wrong-factor",
        "slack",
        "inside = slack > ctx.floor",
        "inside = slack < ctx.floor",
    ),
    ("branch", "wrong-entries wrong-gradient wrong-factor", "slack", "1 / ctx.floor)", "ctx.floor)"),
    (
        "count",
        "wrong-arity",
        "",
        "torch.full_like(slack, 1 / ctx.floor)), None",
        "torch.full_like(slack, 1 / ctx.floor))",
    ),
    flags=True,
)


class PhaseShift(Function):
    """Complex samples turned by an angle each."""

    @staticmethod
    def forward(ctx, signal, gain):
        ctx.save_for_backward(signal, gain)
        return signal * gain

    @staticmethod
    def backward(ctx, grad_output):
        signal, gain = ctx.saved_tensors
        return grad_output * gain.conj(), (grad_output * signal.conj()).sum(0)


PLANT(
    "PhaseShift",
    "signal=NxM,dtype=complex128 gain=M,dtype=complex128",
    ("conjugate", "missing-conjugate", "signal", "grad_output * gain.conj()", "grad_output * gain"),
    (
        "conjugate",
        "missing-conjugate wrong-gradient",
        "gain",
        "(grad_output * signal.conj()).sum(0)",
        "(grad_output.conj() * signal).sum(0)",
    ),
    (
        "missing-reduction",
        "missing-reduction wrong-reduction wrong-shape",
        "gain",
        "(grad_output * signal.conj()).sum(0)",
        "(grad_output * signal.conj())[0]",
    ),
    flags=True,
)


class Gate(Function):
    """A residual gate; a gradient is computed only where it is needed."""

    @staticmethod
    def forward(ctx, x, update, gate):
        s = torch.sigmoid(gate)
        ctx.save_for_backward(x, update, gate)
        return x + s * (update - x)

    @staticmethod
    def backward(ctx, grad_output):
        x, update, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        to_x = to_update = to_gate = None
        if ctx.needs_input_grad[0]:
            to_x = grad_output * (1 - s)
        if ctx.needs_input_grad[1]:
            to_update = grad_output * s
        if ctx.needs_input_grad[2]:
            to_gate = grad_output * (update - x) * s * (1 - s)
        return to_x, to_update, to_gate


PLANT(
    "Gate",
    "x=NxM update=NxM gate=NxM",
    ("needs-input-grad", "needs-input-grad", "", "if ctx.needs_input_grad[2]:", "if ctx.needs_input_grad[1]:"),
    ("needs-input-grad", "needs-input-grad", "", "if ctx.needs_input_grad[0]:", "if ctx.needs_input_grad[2]:"),
    (
        "needs-input-grad",
        "missing-gradient needs-input-grad",
        "update",
        "if ctx.needs_input_grad[1]:",
        "if not ctx.needs_input_grad[1]:",
    ),
    ("missing-factor", "wrong-factor", "gate", "(update - x) * s * (1 - s)", "(update - x) * s"),
    (
        "in-place",
        "mutates-grad-output wrong-factor wrong-gradient",
        "gate",
        "to_update = grad_output * s",
        "to_update = grad_output.mul_(s)",
    ),
    flags=True,
)


class Leapfrog(Function):
    """One step of a pendulum: position and velocity."""

    @staticmethod
    def forward(ctx, angle, speed, dt):
        half = speed - 0.5 * dt * torch.sin(angle)
        after = angle + dt * half
        ctx.save_for_backward(angle, after)
        ctx.dt = dt
        return after, half - 0.5 * dt * torch.sin(after)

    @staticmethod
    def backward(ctx, grad_angle, grad_speed):
        angle, after = ctx.saved_tensors
        dt = ctx.dt
        to_after = grad_angle - 0.5 * dt * torch.cos(after) * grad_speed
        to_half = grad_speed + dt * to_after
        return to_after - 0.5 * dt * torch.cos(angle) * to_half, to_half, None


PLANT(
    "Leapfrog",
    "angle=N speed=N dt:0.3",
    (
        "ignored-cotangent",
        "ignores-grad-output missing-term",
        "angle speed",
        "to_half = grad_speed + dt * to_after",
        "to_half = dt * to_after",
    ),
    (
        "ignored-cotangent",
        "ignores-grad-output missing-term wrong-gradient",
        "angle speed",
        "to_after = grad_angle - 0.5",
        "to_after = -0.5",
    ),
    ("missing-term", "missing-term", "angle", "to_after - 0.5 * dt * torch.cos(angle) * to_half", "to_after"),
    ("detach", "not-twice-differentiable", "", "torch.cos(angle)", "torch.cos(angle.data)"),
    flags=True,
)
