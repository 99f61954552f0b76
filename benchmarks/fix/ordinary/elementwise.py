"""Functions of one element."""

from __future__ import annotations

ELEMENTWISE: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
    "Relu": (
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x < 0] = 0
        return grad_input
""",
        [
            ("in place", "grad_output.clone()", "grad_output", "mutates-grad-output"),
            ("mask", "grad_input[x < 0]", "grad_input[x > 0]", "wrong-entries wrong-gradient"),
            ("mask", "grad_input[x < 0] = 0", "grad_input[x < 0] = 1", "wrong-entries ignores-grad-output"),
        ],
    ),
    "LeakyRelu": (
        """
    @staticmethod
    def forward(ctx, x, slope=0.1):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad_output, ctx.slope * grad_output), None
""",
        [
            ("mask", "where(x > 0, grad_output", "where(x < 0, grad_output", "wrong-entries wrong-gradient"),
            ("region", "ctx.slope * grad_output)", "grad_output)", "wrong-entries"),
            ("unneeded", "* grad_output), None", "* grad_output), grad_output", "unneeded-gradient"),
            (
                "region",
                "grad_output, ctx.slope * grad_output)",
                "ctx.slope * grad_output, grad_output)",
                "wrong-entries wrong-gradient",
            ),
        ],
    ),
    "Sigmoid": (
        """
    @staticmethod
    def forward(ctx, x):
        y = 1 / (1 + torch.exp(-x))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)
""",
        [
            ("factor", "grad_output * y * (1 - y)", "grad_output * y", "wrong-gradient missing-term"),
            ("factor", "grad_output * y * (1 - y)", "grad_output * (1 - y)", "wrong-gradient missing-term"),
            ("operator", "y * (1 - y)", "y * (1 + y)", "wrong-gradient missing-term"),
            ("ignored cotangent", "grad_output * y * (1 - y)", "y * (1 - y)", "ignores-grad-output"),
            (
                "data",
                "return grad_output * y * (1 - y)",
                "return grad_output * y.detach() * (1 - y)",
                "not-twice-differentiable",
            ),
        ],
    ),
    "Cube": (
        """
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x ** 2 * grad_output
""",
        [
            ("factor", "3 * x ** 2", "x ** 2", "wrong-factor"),
            ("power", "x ** 2", "x", "wrong-gradient missing-term"),
            ("nonlinear", "* grad_output", "* grad_output ** 2", "nonlinear-backward"),
            ("constant", "3 * x ** 2 * grad_output", "3 * x ** 2 * grad_output + 1", "nonlinear-backward"),
            ("detach", "3 * x ** 2 * grad_output", "3 * x.detach() ** 2 * grad_output", "not-twice-differentiable"),
            ("no grad", "(x,) = ctx.saved_tensors", "x = ctx.saved_tensors[0].detach()", "not-twice-differentiable"),
        ],
    ),
    "Divide": (
        """
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g / b, -g * a / b ** 2
""",
        [
            ("sign", "-g * a / b ** 2", "g * a / b ** 2", "wrong-sign"),
            ("power", "-g * a / b ** 2", "-g * a / b", "wrong-gradient wrong-factor"),
            ("argument", "-g * a / b ** 2", "-g * b / b ** 2", "wrong-gradient"),
            ("swap", "return g / b, -g * a / b ** 2", "return -g * a / b ** 2, g / b", "swapped-gradients"),
            ("saved", "save_for_backward(a, b)", "save_for_backward(b, a)", "wrong-gradient"),
            ("unpacked", "a, b = ctx.saved_tensors", "b, a = ctx.saved_tensors", "wrong-gradient"),
        ],
    ),
}
