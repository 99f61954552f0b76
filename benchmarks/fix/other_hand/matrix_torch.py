"""Products, factorisations and forms of matrices, in PyTorch."""

import torch
from torch.autograd import Function

from benchmarks.fix.other_hand.record import Family

PLANT = Family("matrix", "torch", __file__)


class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight
        grad_weight = grad_output.t() @ x
        grad_bias = grad_output.sum(0)
        return grad_x, grad_weight, grad_bias


PLANT(
    "Linear",
    "x=KxK weight=KxK bias=K",
    ("transposed-operand", "transposed", "x", "grad_output @ weight\n", "grad_output @ weight.t()\n"),
    ("transposed-operand", "transposed", "weight", "grad_output.t() @ x", "grad_output @ x"),
    ("transposed-result", "transposed", "weight", "grad_output.t() @ x", "x.t() @ grad_output"),
    ("wrong-axis", "wrong-reduction", "bias", "grad_output.sum(0)", "grad_output.sum(1)"),
    ("swapped-two", "swapped-gradients", "x weight", "return grad_x, grad_weight,", "return grad_weight, grad_x,"),
    ("wrong-variable", "wrong-gradient wrong-factor", "weight", "grad_output.t() @ x", "grad_output.t() @ weight"),
    ("mean-for-sum", "wrong-reduction wrong-factor", "bias", "grad_output.sum(0)", "grad_output.mean(0)"),
    flags=True,
)


class DenseTanh(Function):
    @staticmethod
    def forward(ctx, x, w, b):
        h = torch.tanh(x @ w + b)
        ctx.save_for_backward(x, w, h)
        return h

    @staticmethod
    def backward(ctx, grad_output):
        x, w, h = ctx.saved_tensors
        dz = grad_output * (1 - h**2)
        return dz @ w.T, x.T @ dz, dz.sum(0)


PLANT(
    "DenseTanh",
    "x=NxM w=MxK b=K",
    ("chain-rule-forgotten", "wrong-factor", "b", "dz.sum(0)", "grad_output.sum(0)"),
    ("chain-rule-forgotten", "wrong-factor", "x w b", "dz = grad_output * (1 - h**2)", "dz = grad_output"),
    ("power", "wrong-factor wrong-gradient", "x w b", "(1 - h**2)", "(1 - h)"),
    ("sign-inner", "wrong-gradient wrong-factor wrong-sign missing-term", "x w b", "(1 - h**2)", "(1 + h**2)"),
    ("chain-rule-forgotten", "wrong-factor", "w", "x.T @ dz", "x.T @ grad_output"),
    ("wrong-variable", "wrong-gradient wrong-factor wrong-shape ignores-grad-output", "w", "x.T @ dz", "x.T @ h"),
    ("arity", "wrong-arity", "", "return dz @ w.T, x.T @ dz, dz.sum(0)", "return dz @ w.T, x.T @ dz"),
)


class QuadraticForm(Function):
    """x^T A x for each row x."""

    @staticmethod
    def forward(ctx, x, a):
        ctx.save_for_backward(x, a)
        return torch.einsum("ni,ij,nj->n", x, a, x)

    @staticmethod
    def backward(ctx, grad_output):
        x, a = ctx.saved_tensors
        grad_x = grad_output[:, None] * (x @ (a + a.T))
        grad_a = torch.einsum("n,ni,nj->ij", grad_output, x, x)
        return grad_x, grad_a


PLANT(
    "QuadraticForm",
    "x=NxM a=MxM",
    ("missing-term", "missing-term transposed", "x", "(x @ (a + a.T))", "(x @ a.T)"),
    ("symmetry-assumed", "transposed missing-term wrong-factor", "x", "(x @ (a + a.T))", "(2 * x @ a)"),
    ("factor-extra", "wrong-factor", "a", "grad_output, x, x)", "2 * grad_output, x, x)"),
    (
        "ignored-grad-output",
        "ignores-grad-output",
        "a",
        'torch.einsum("n,ni,nj->ij", grad_output, x, x)',
        'torch.einsum("ni,nj->ij", x, x)',
    ),
)


class BilinearPool(Function):
    @staticmethod
    def forward(ctx, u, m, v):
        ctx.save_for_backward(u, m, v)
        return (u @ m * v).sum(1)

    @staticmethod
    def backward(ctx, g):
        u, m, v = ctx.saved_tensors
        g = g.unsqueeze(1)
        gu = (g * v) @ m.T
        gm = u.T @ (g * v)
        gv = g * (u @ m)
        return gu, gm, gv


PLANT(
    "BilinearPool",
    "u=KxM m=MxM v=KxM",
    ("transposed-operand", "transposed", "u", "(g * v) @ m.T", "(g * v) @ m"),
    ("transposed-operand", "transposed", "v", "g * (u @ m)\n", "g * (u @ m.T)\n"),
    ("transposed-result", "transposed", "m", "u.T @ (g * v)", "(g * v).T @ u"),
    ("swapped-three", "swapped-gradients", "u v", "return gu, gm, gv", "return gv, gm, gu"),
    ("grad-output-forgotten", "ignores-grad-output", "v", "gv = g * (u @ m)", "gv = u @ m"),
    ("factor-missing", "wrong-factor wrong-gradient ignores-grad-output", "m", "u.T @ (g * v)", "u.T @ v"),
    flags=True,
)


class Inverse(Function):
    @staticmethod
    def forward(ctx, a):
        inv = torch.linalg.inv(a)
        ctx.save_for_backward(inv)
        return inv

    @staticmethod
    def backward(ctx, grad_output):
        (inv,) = ctx.saved_tensors
        return -inv.mT @ grad_output @ inv.mT


PLANT(
    "Inverse",
    "a=MxM,domain=spd",
    ("sign", "wrong-sign", "a", "return -inv.mT", "return inv.mT"),
    ("transposed-operand", "transposed", "a", "-inv.mT @ grad_output @ inv.mT", "-inv @ grad_output @ inv"),
    ("detach", "not-twice-differentiable", "a", "@ inv.mT", "@ inv.mT.detach()"),
)


class InverseGeneral(Function):
    """The inverse of a matrix that need not be symmetric, dominated by its diagonal."""

    @staticmethod
    def forward(ctx, a):
        inv = torch.linalg.inv(a + 6 * torch.eye(a.shape[-1], dtype=a.dtype))
        ctx.save_for_backward(inv)
        return inv

    @staticmethod
    def backward(ctx, grad_output):
        (inv,) = ctx.saved_tensors
        inv_t = inv.transpose(-1, -2)
        return -(inv_t @ grad_output @ inv_t)


PLANT(
    "InverseGeneral",
    "a=MxM",
    ("transposed-operand", "transposed", "a", "inv_t @ grad_output @ inv_t", "inv_t @ grad_output @ inv"),
    ("transposed-operand", "transposed", "a", "inv_t @ grad_output @", "inv_t @ grad_output.transpose(-1, -2) @"),
    ("factor-missing", "wrong-factor wrong-gradient", "a", "grad_output @ inv_t)", "grad_output)"),
    ("transposed-operand", "transposed", "a", "inv_t = inv.transpose(-1, -2)", "inv_t = inv"),
)


class SolveShifted(Function):
    """x with (A + 5 I) x = b, as in an implicit step."""

    @staticmethod
    def forward(ctx, a, b):
        m = a + 5 * torch.eye(a.shape[0], dtype=a.dtype)
        x = torch.linalg.solve(m, b)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        a, x = ctx.saved_tensors
        m = a + 5 * torch.eye(a.shape[0], dtype=a.dtype)
        grad_b = torch.linalg.solve(m.T, grad_output)
        grad_a = -grad_b @ x.T
        return grad_a, grad_b


PLANT(
    "SolveShifted",
    "a=MxM b=MxM",
    (
        "transposed-operand",
        "transposed",
        "a b",
        "torch.linalg.solve(m.T, grad_output)",
        "torch.linalg.solve(m, grad_output)",
    ),
    ("sign", "wrong-sign", "a", "-grad_b @ x.T", "grad_b @ x.T"),
    ("transposed-result", "transposed", "a", "-grad_b @ x.T", "-x @ grad_b.T"),
    ("wrong-variable", "wrong-factor wrong-gradient", "a", "-grad_b @ x.T", "-grad_output @ x.T"),
    (
        "saved-intermediate",
        "not-twice-differentiable",
        "a",
        """ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        a, x = ctx.saved_tensors
        m = a + 5 * torch.eye(a.shape[0], dtype=a.dtype)
""",
        """ctx.save_for_backward(m, x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        m, x = ctx.saved_tensors
""",
    ),
    flags=True,
)


class LogDet(Function):
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return torch.logdet(a)

    @staticmethod
    def backward(ctx, grad_output):
        (a,) = ctx.saved_tensors
        return grad_output * torch.linalg.inv(a).t()


PLANT(
    "LogDet",
    "a=MxM,domain=spd",
    ("factor-extra", "wrong-factor", "a", "grad_output * torch", "2 * grad_output * torch"),
    ("inverse-forgotten", "wrong-gradient wrong-factor", "a", "torch.linalg.inv(a).t()", "a.t()"),
    ("factor-extra", "wrong-factor", "a", "torch.linalg.inv(a).t()", "torch.det(a) * torch.linalg.inv(a).t()"),
    ("ignored-grad-output", "ignores-grad-output", "a", "grad_output * torch.linalg.inv(a)", "torch.linalg.inv(a)"),
)


class ThreeFactors(Function):
    """A B C, the low-rank update of an adapter."""

    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b, c)
        return a @ b @ c

    @staticmethod
    def backward(ctx, grad_output):
        a, b, c = ctx.saved_tensors
        da = grad_output @ (b @ c).T
        db = a.T @ grad_output @ c.T
        dc = (a @ b).T @ grad_output
        return da, db, dc


PLANT(
    "ThreeFactors",
    "a=MxM b=MxM c=MxM",
    ("order-of-product", "transposed wrong-gradient", "a", "(b @ c).T", "(c @ b).T"),
    ("transposed-operand", "transposed", "b", "a.T @ grad_output @ c.T", "a.T @ grad_output @ c"),
    ("transposed-operand", "transposed", "c", "(a @ b).T @ grad_output", "(a @ b) @ grad_output"),
    ("swapped-three", "swapped-gradients", "a b c", "return da, db, dc", "return db, dc, da"),
    ("factor-missing", "wrong-factor wrong-gradient", "c", "(a @ b).T @ grad_output", "b.T @ grad_output"),
    flags=True,
)


class GramMatrix(Function):
    """The Gram matrix of feature maps, as in style transfer."""

    @staticmethod
    def forward(ctx, features):
        b, c, n = features.shape
        ctx.save_for_backward(features)
        return features @ features.transpose(1, 2) / (c * n)

    @staticmethod
    def backward(ctx, grad_output):
        (features,) = ctx.saved_tensors
        b, c, n = features.shape
        return (grad_output + grad_output.transpose(1, 2)) @ features / (c * n)


PLANT(
    "GramMatrix",
    "features=BxMxK",
    (
        "missing-term",
        "missing-term transposed",
        "features",
        "(grad_output + grad_output.transpose(1, 2)) @",
        "grad_output @",
    ),
    ("factor-of-size", "wrong-factor wrong-reduction", "features", "@ features / (c * n)", "@ features / n"),
    (
        "symmetry-assumed",
        "wrong-factor transposed missing-term",
        "features",
        "(grad_output + grad_output.transpose(1, 2)) @",
        "2 * grad_output @",
    ),
    ("factor-of-axis", "wrong-factor wrong-reduction", "features", "@ features / (c * n)", "@ features / (b * n)"),
)
