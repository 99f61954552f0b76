"""Functions of many kinds on the embedded engine."""

import math

from benchmarks.fix.other_hand.record import Family
from gradcli import engine as torch
from gradcli.engine.autograd import Function

PLANT = Family("functions", "engine", __file__)


class Gaussian(Function):
    """The density of a normal distribution."""

    @staticmethod
    def forward(ctx, x, mu, sigma):
        z = (x - mu) / sigma
        out = (-0.5 * z * z).exp() / (sigma * math.sqrt(2 * math.pi))
        ctx.save_for_backward(x, mu, sigma, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, mu, sigma, out = ctx.saved_tensors
        z = (x - mu) / sigma
        common = grad_output * out / sigma
        return -common * z, common * z, common * (z * z - 1)


PLANT(
    "Gaussian",
    "x=NxM mu=NxM sigma=NxM,domain=positive",
    ("missing-term", "missing-term", "sigma", "(z * z - 1)", "(z * z)"),
    ("factor-missing", "wrong-factor", "x mu sigma", "grad_output * out / sigma", "grad_output * out"),
    ("sign", "wrong-sign", "mu", "-common * z, common * z", "-common * z, -common * z"),
    ("power", "wrong-gradient missing-term wrong-factor", "sigma", "(z * z - 1)", "(z - 1)"),
    (
        "swapped-three",
        "swapped-gradients wrong-sign",
        "x mu sigma",
        "return -common * z, common * z, common * (z * z - 1)",
        "return common * z, common * (z * z - 1), -common * z",
    ),
)


class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.save_for_backward(x)
        ctx.lam = lam
        return x.sign() * (x.abs() - lam).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() > ctx.lam), None


PLANT(
    "SoftThreshold",
    "x=NxM lam:0.4",
    ("mask-missing", "wrong-entries", "x", "grad_output * (x.abs() > ctx.lam)", "grad_output"),
    ("absolute-forgotten", "wrong-entries", "x", "(x.abs() > ctx.lam)", "(x > ctx.lam)"),
    ("mask-side", "wrong-entries wrong-gradient", "x", "(x.abs() > ctx.lam)", "(x.abs() < ctx.lam)"),
    (
        "ignored-grad-output",
        "ignores-grad-output",
        "x",
        "grad_output * (x.abs() > ctx.lam)",
        "(x.abs() > ctx.lam).to(x.dtype)",
    ),
    flags=True,
)


class Scale(Function):
    """A learned scale and shift for each column."""

    @staticmethod
    def forward(ctx, x, scale, shift):
        ctx.save_for_backward(x, scale)
        return x * scale + shift

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        grad_x = grad_scale = grad_shift = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output * scale
        if ctx.needs_input_grad[1]:
            grad_scale = (grad_output * x).sum(0)
        if ctx.needs_input_grad[2]:
            grad_shift = grad_output.sum(0)
        return grad_x, grad_scale, grad_shift


PLANT(
    "Scale",
    "x=KxK scale=K shift=K",
    (
        "needs-input-grad",
        "needs-input-grad missing-gradient",
        "",
        "if ctx.needs_input_grad[2]:",
        "if ctx.needs_input_grad[1]:",
    ),
    (
        "needs-input-grad",
        "missing-gradient needs-input-grad",
        "scale",
        "if ctx.needs_input_grad[1]:",
        "if not ctx.needs_input_grad[1]:",
    ),
    ("wrong-axis", "wrong-reduction", "shift", "grad_shift = grad_output.sum(0)", "grad_shift = grad_output.sum(1)"),
    ("wrong-axis", "wrong-reduction", "scale", "(grad_output * x).sum(0)", "(grad_output * x).sum(1)"),
    ("mean-for-sum", "wrong-reduction wrong-factor", "scale", "(grad_output * x).sum(0)", "(grad_output * x).mean(0)"),
    (
        "swapped-two",
        "swapped-gradients",
        "scale shift",
        "return grad_x, grad_scale, grad_shift",
        "return grad_x, grad_shift, grad_scale",
    ),
    ("arity", "wrong-arity missing-gradient", "", "return grad_x, grad_scale, grad_shift", "return grad_x, grad_scale"),
    (
        "mutated-grad-output",
        "mutates-grad-output",
        "scale shift",
        "grad_x = grad_output * scale",
        "grad_x = grad_output.mul_(scale)",
    ),
    flags=True,
)


class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        return grad_output @ b.t(), a.t() @ grad_output


PLANT(
    "MatMul",
    "a=MxM b=MxM",
    ("transposed-operand", "transposed", "a", "grad_output @ b.t()", "grad_output @ b"),
    ("transposed-operand", "transposed", "b", "a.t() @ grad_output", "a @ grad_output"),
    ("order-of-product", "transposed wrong-gradient", "b", "a.t() @ grad_output", "grad_output @ a.t()"),
    (
        "swapped-two",
        "swapped-gradients",
        "a b",
        "grad_output @ b.t(), a.t() @ grad_output",
        "a.t() @ grad_output, grad_output @ b.t()",
    ),
    ("missing-gradient", "missing-gradient", "b", "a.t() @ grad_output", "None"),
    ("detach", "not-twice-differentiable", "a", "grad_output @ b.t()", "grad_output @ b.detach().t()"),
    flags=True,
)


class Residual(Function):
    """x + tanh(x w)."""

    @staticmethod
    def forward(ctx, x, w):
        h = (x @ w).tanh()
        ctx.save_for_backward(x, w)
        return x + h

    @staticmethod
    def backward(ctx, grad_output):
        x, w = ctx.saved_tensors
        h = (x @ w).tanh()
        dh = grad_output * (1 - h * h)
        return grad_output + dh @ w.t(), x.t() @ dh


PLANT(
    "Residual",
    "x=NxM w=MxM",
    ("missing-term", "missing-term", "x", "grad_output + dh @ w.t()", "dh @ w.t()"),
    ("missing-term", "missing-term", "x", "grad_output + dh @ w.t()", "grad_output"),
    ("chain-rule-forgotten", "wrong-factor missing-term", "x w", "dh = grad_output * (1 - h * h)", "dh = grad_output"),
    ("extra-term", "wrong-gradient missing-term", "w", "x.t() @ dh", "x.t() @ (grad_output + dh)"),
    ("sign-of-term", "wrong-sign missing-term", "x", "grad_output + dh", "grad_output - dh"),
    flags=True,
)


class MeanAbsoluteError(Function):
    @staticmethod
    def forward(ctx, pred, target):
        ctx.save_for_backward(pred, target)
        return (pred - target).abs().mean()

    @staticmethod
    def backward(ctx, grad_output):
        pred, target = ctx.saved_tensors
        grad = grad_output * (pred - target).sign() / pred.numel()
        return grad, -grad


PLANT(
    "MeanAbsoluteError",
    "pred=NxM target=NxM",
    ("factor-of-size", "wrong-factor wrong-reduction", "pred target", " / pred.numel()", ""),
    ("factor-of-size", "wrong-factor wrong-reduction", "pred target", "pred.numel()", "pred.shape[0]"),
    (
        "derivative-forgotten",
        "wrong-factor wrong-gradient",
        "pred target",
        "(pred - target).sign()",
        "(pred - target).abs()",
    ),
    ("sign", "wrong-sign swapped-gradients", "pred target", "(pred - target).sign()", "(target - pred).sign()"),
    ("missing-gradient", "missing-gradient", "target", "return grad, -grad", "return grad, None"),
)


class WeightedSoftmax(Function):
    @staticmethod
    def forward(ctx, scores, values):
        p = scores.softmax(-1)
        ctx.save_for_backward(scores, values)
        return (p * values).sum(-1)

    @staticmethod
    def backward(ctx, grad_output):
        scores, values = ctx.saved_tensors
        p = scores.softmax(-1)
        g = grad_output.unsqueeze(-1)
        mean = (p * values).sum(-1, keepdim=True)
        return g * p * (values - mean), g * p


PLANT(
    "WeightedSoftmax",
    "scores=NxM values=NxM",
    ("missing-term", "missing-term", "scores", "(values - mean)", "values"),
    ("factor-missing", "wrong-factor", "scores", "g * p * (values - mean)", "g * (values - mean)"),
    ("mean-for-sum", "wrong-reduction missing-term", "scores", ".sum(-1, keepdim=True)", ".mean(-1, keepdim=True)"),
    (
        "wrong-dim",
        "wrong-reduction wrong-gradient",
        "scores values",
        "p = scores.softmax(-1)\n        g",
        "p = scores.softmax(0)\n        g",
    ),
    ("wrong-variable", "wrong-gradient wrong-factor", "values", ", g * p", ", g * scores"),
)


class Euclidean(Function):
    """Distances between the rows of two sets."""

    @staticmethod
    def forward(ctx, a, b):
        diff = a.unsqueeze(1) - b.unsqueeze(0)
        ctx.save_for_backward(a, b)
        return (diff * diff).sum(-1).sqrt()

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        diff = a.unsqueeze(1) - b.unsqueeze(0)
        dist = (diff * diff).sum(-1).sqrt()
        w = (grad_output / dist).unsqueeze(-1) * diff
        return w.sum(1), -w.sum(0)


PLANT(
    "Euclidean",
    "a=KxM b=KxM",
    ("sign", "wrong-sign", "b", "-w.sum(0)", "w.sum(0)"),
    ("wrong-axis", "wrong-reduction", "a", "return w.sum(1),", "return w.sum(0),"),
    ("factor-missing", "wrong-factor wrong-gradient", "a b", "(grad_output / dist)", "grad_output"),
    ("factor-extra", "wrong-factor", "a b", "(grad_output / dist)", "(2 * grad_output / dist)"),
    ("swapped-two", "swapped-gradients", "a b", "w.sum(1), -w.sum(0)", "-w.sum(0), w.sum(1)"),
    flags=True,
)


class ExponentialAverage(Function):
    """s[t] = d s[t-1] + (1 - d) x[t], along the first axis."""

    @staticmethod
    def forward(ctx, x, decay):
        ctx.decay = decay
        state, out = torch.zeros_like(x[0]), []
        for row in x:
            state = decay * state + (1 - decay) * row
            out.append(state)
        return torch.stack(out)

    @staticmethod
    def backward(ctx, grad_output):
        carry, out = torch.zeros_like(grad_output[0]), []
        for g in reversed(list(grad_output)):
            carry = g + ctx.decay * carry
            out.append((1 - ctx.decay) * carry)
        return torch.stack(out[::-1]), None


PLANT(
    "ExponentialAverage",
    "x=TxN decay:0.7",
    ("factor-missing", "wrong-factor", "x", "out.append((1 - ctx.decay) * carry)", "out.append(carry)"),
    ("order-forgotten", "wrong-shift transposed wrong-gradient", "x", "torch.stack(out[::-1])", "torch.stack(out)"),
    ("carry-forgotten", "missing-term wrong-gradient", "x", "carry = g + ctx.decay * carry", "carry = g"),
    ("factor-missing", "wrong-factor missing-term wrong-gradient", "x", "g + ctx.decay * carry", "g + carry"),
    flags=True,
)


class SwiGLU(Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        return gate * gate.sigmoid() * up

    @staticmethod
    def backward(ctx, grad_output):
        gate, up = ctx.saved_tensors
        s = gate.sigmoid()
        d_gate = grad_output * up * (s + gate * s * (1 - s))
        d_up = grad_output * gate * s
        return d_gate, d_up


PLANT(
    "SwiGLU",
    "gate=NxM up=NxM",
    ("missing-term", "missing-term", "gate", "(s + gate * s * (1 - s))", "(gate * s * (1 - s))"),
    ("missing-term", "missing-term", "gate", "(s + gate * s * (1 - s))", "s"),
    ("other-factor-missing", "wrong-factor", "gate", "grad_output * up * (s", "grad_output * (s"),
    ("factor-missing", "wrong-factor", "up", "grad_output * gate * s", "grad_output * gate"),
    ("swapped-two", "swapped-gradients", "gate up", "return d_gate, d_up", "return d_up, d_gate"),
    ("data", "not-twice-differentiable", "up", "grad_output * gate * s\n", "grad_output * gate.data * s\n"),
)


class GatherRows(Function):
    @staticmethod
    def forward(ctx, table, index):
        ctx.save_for_backward(index)
        ctx.rows = table.shape[0]
        return table[index]

    @staticmethod
    def backward(ctx, grad_output):
        (index,) = ctx.saved_tensors
        out = torch.zeros(ctx.rows, *grad_output.shape[1:], dtype=grad_output.dtype)
        return out.index_add(0, index, grad_output), None


PLANT(
    "GatherRows",
    "table=MxN index=T,domain=indices,high=M",
    (
        "duplicates-overwritten",
        "wrong-entries wrong-gradient",
        "table",
        "out.index_add(0, index, grad_output)",
        "out.index_copy(0, index, grad_output)",
    ),
    ("arity", "wrong-arity", "", "grad_output), None", "grad_output)"),
    ("sign", "wrong-sign", "table", "index, grad_output)", "index, -grad_output)"),
    (
        "off-by-one",
        "wrong-shift wrong-gradient",
        "table",
        "out.index_add(0, index, grad_output)",
        "out.index_add(0, (index + 1) % ctx.rows, grad_output)",
    ),
    flags=True,
)
