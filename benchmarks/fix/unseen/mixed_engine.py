"""Functions of several fields on the embedded engine."""

from benchmarks.fix.other_hand.record import Family
from gradcli import engine as torch
from gradcli.engine.autograd import Function

PLANT = Family("mixed", "engine", __file__)


class Resistance(Function):
    """Two resistors in parallel."""

    @staticmethod
    def forward(ctx, first, second):
        ctx.save_for_backward(first, second)
        return first * second / (first + second)

    @staticmethod
    def backward(ctx, grad_output):
        first, second = ctx.saved_tensors
        total = (first + second) ** 2
        return grad_output * second**2 / total, grad_output * first**2 / total


PLANT(
    "Resistance",
    "first=NxM,domain=positive second=NxM,domain=positive",
    (
        "swap",
        "swapped-gradients",
        "first second",
        "second**2 / total, grad_output * first**2",
        "first**2 / total, grad_output * second**2",
    ),
    ("power", "wrong-factor", "first second", "(first + second) ** 2", "(first + second)"),
    (
        "wrong-argument",
        "wrong-factor wrong-gradient",
        "second",
        "grad_output * first**2",
        "grad_output * first * second",
    ),
    flags=True,
)


class Orbit(Function):
    """Polar to plane coordinates."""

    @staticmethod
    def forward(ctx, radius, angle):
        ctx.save_for_backward(radius, angle)
        return radius * angle.cos(), radius * angle.sin()

    @staticmethod
    def backward(ctx, grad_x, grad_y):
        radius, angle = ctx.saved_tensors
        c, s = angle.cos(), angle.sin()
        return grad_x * c + grad_y * s, radius * (grad_y * c - grad_x * s)


PLANT(
    "Orbit",
    "radius=N angle=N",
    ("ignored-cotangent", "ignores-grad-output missing-term", "radius", "grad_x * c + grad_y * s", "grad_x * c"),
    ("sign", "missing-term wrong-sign", "angle", "grad_y * c - grad_x * s", "grad_y * c + grad_x * s"),
    ("missing-factor", "wrong-factor", "angle", "radius * (grad_y * c - grad_x * s)", "grad_y * c - grad_x * s"),
    ("exchanged", "wrong-gradient swapped-gradients", "radius", "grad_x * c + grad_y * s", "grad_x * s + grad_y * c"),
    flags=True,
)


class Compound(Function):
    """A sum that grows by yearly rates, one after the other."""

    @staticmethod
    def forward(ctx, start, rates):
        value, values = start, []
        for year in range(rates.shape[0]):
            value = value * (1 + rates[year])
            values.append(value)
        ctx.save_for_backward(start, rates)
        return torch.stack(values)

    @staticmethod
    def backward(ctx, grad_output):
        start, rates = ctx.saved_tensors
        before = [start]
        for year in range(rates.shape[0]):
            before.append(before[-1] * (1 + rates[year]))
        carried, to_rates = torch.zeros_like(start), []
        for year in range(rates.shape[0] - 1, -1, -1):
            carried = carried + grad_output[year]
            to_rates.append(carried * before[year])
            carried = carried * (1 + rates[year])
        return carried, torch.stack(to_rates[::-1])


PLANT(
    "Compound",
    "start=scalar rates=T",
    (
        "shift",
        "wrong-shift wrong-gradient wrong-factor",
        "rates",
        "carried * before[year])",
        "carried * before[year + 1])",
    ),
    (
        "ignored-cotangent",
        "missing-term missing-reduction ignores-grad-output wrong-gradient",
        "start rates",
        "carried = carried + grad_output[year]",
        "carried = grad_output[year]",
    ),
    (
        "missing-term",
        "wrong-factor missing-term wrong-gradient",
        "start rates",
        "            carried = carried * (1 + rates[year])\n",
        "            carried = carried * rates[year]\n",
    ),
    ("order", "wrong-shift wrong-gradient", "rates", "to_rates[::-1]", "to_rates"),
    flags=True,
)


class Distances(Function):
    """Squared distances between two sets of points."""

    @staticmethod
    def forward(ctx, p, q):
        ctx.save_for_backward(p, q)
        return (p * p).sum(1, keepdim=True) + (q * q).sum(1) - 2 * (p @ q.t())

    @staticmethod
    def backward(ctx, grad_output):
        p, q = ctx.saved_tensors
        grad_p = 2 * (p * grad_output.sum(1, keepdim=True) - grad_output @ q)
        grad_q = 2 * (q * grad_output.sum(0).unsqueeze(1) - grad_output.t() @ p)
        return grad_p, grad_q


PLANT(
    "Distances",
    "p=NxL q=KxL",
    (
        "missing-term",
        "missing-term",
        "p",
        "p * grad_output.sum(1, keepdim=True) - grad_output @ q",
        "-(grad_output @ q)",
    ),
    (
        "wrong-reduction",
        "wrong-reduction wrong-factor missing-term",
        "p",
        "grad_output.sum(1, keepdim=True)",
        "grad_output.mean(1, keepdim=True)",
    ),
    (
        "extra-term",
        "missing-term wrong-gradient",
        "q",
        "return grad_p, grad_q",
        "return grad_p, grad_q + q * grad_output.sum()",
    ),
    ("wrong-argument", "wrong-gradient missing-term wrong-factor", "p", "grad_output @ q)", "grad_output @ q * p)"),
    flags=True,
)


class HeatStep(Function):
    """One explicit step of the heat equation on a rod, held at its ends."""

    @staticmethod
    def forward(ctx, heat, k):
        ctx.save_for_backward(heat, k)
        curve = heat[2:] - 2 * heat[1:-1] + heat[:-2]
        return torch.cat([heat[:1], heat[1:-1] + k * curve, heat[-1:]])

    @staticmethod
    def backward(ctx, grad_output):
        heat, k = ctx.saved_tensors
        inner = k * grad_output[1:-1]
        grad = grad_output.clone()
        grad[2:] += inner
        grad[1:-1] -= 2 * inner
        grad[:-2] += inner
        curve = heat[2:] - 2 * heat[1:-1] + heat[:-2]
        return grad, (grad_output[1:-1] * curve).sum()


PLANT(
    "HeatStep",
    "heat=T k=scalar",
    ("in-place", "mutates-grad-output", "k", "grad = grad_output.clone()", "grad = grad_output"),
    (
        "shift",
        "wrong-shift wrong-gradient missing-term wrong-entries",
        "k",
        "grad_output[1:-1] * curve",
        "grad_output[2:] * curve",
    ),
    ("factor", "missing-term wrong-factor wrong-entries", "heat", "grad[1:-1] -= 2 * inner", "grad[1:-1] -= inner"),
    (
        "extra-term",
        "wrong-factor nonlinear-backward",
        "k",
        "(grad_output[1:-1] * curve).sum()",
        "(grad_output[1:-1] * curve).sum() + 1e-2",
    ),
    flags=True,
)


class Mixture(Function):
    """A log of weighted sums, by rows."""

    @staticmethod
    def forward(ctx, logits, weight):
        ctx.save_for_backward(logits, weight)
        return (logits.exp() @ weight).log()

    @staticmethod
    def backward(ctx, grad_output):
        logits, weight = ctx.saved_tensors
        e = logits.exp()
        scaled = grad_output / (e @ weight)
        return scaled.unsqueeze(1) * e * weight, e.t() @ scaled


PLANT(
    "Mixture",
    "logits=NxM weight=M,domain=positive",
    ("missing-factor", "wrong-factor", "logits", "scaled.unsqueeze(1) * e * weight", "scaled.unsqueeze(1) * e"),
    ("inner-factor", "wrong-factor", "logits weight", "grad_output / (e @ weight)", "grad_output"),
    (
        "transposition",
        "transposed wrong-gradient wrong-reduction nonlinear-backward",
        "weight",
        "e.t() @ scaled",
        "scaled @ scaled.unsqueeze(1) * e[0]",
    ),
    flags=True,
)


class HuberRows(Function):
    """A Huber loss for each row, the rows masked."""

    @staticmethod
    def forward(ctx, error, keep, delta):
        ctx.save_for_backward(error, keep)
        ctx.delta = delta
        size = error.abs()
        loss = torch.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta))
        return (loss * keep.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, grad_output):
        error, keep = ctx.saved_tensors
        slope = error.clamp(-ctx.delta, ctx.delta)
        return grad_output * slope * keep.unsqueeze(1) / error.numel(), None, None


PLANT(
    "HuberRows",
    "error=NxM keep=N,domain=boolean delta:0.6",
    ("mask", "wrong-entries", "error", "error.clamp(-ctx.delta, ctx.delta)", "error"),
    ("size", "wrong-factor", "error", "/ error.numel(), None", "/ error.shape[0], None"),
    ("wrong-reduction", "wrong-factor wrong-reduction", "error", " / error.numel(), None", ", None"),
    ("mask", "wrong-factor wrong-entries", "error", "slope * keep.unsqueeze(1) /", "slope /"),
    ("count", "wrong-arity", "", "error.numel(), None, None", "error.numel(), None"),
    flags=True,
)
