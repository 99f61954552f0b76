"""Linear layers, softmax and its logarithm, a loss and a normalisation."""

from __future__ import annotations

LAYERS: dict[str, tuple[str, list[tuple[str, str, str, str]]]] = {
    "TanhLinear": (
        """
    @staticmethod
    def forward(ctx, x, w):
        y = torch.tanh(x.mm(w))
        ctx.save_for_backward(x, w, y)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, y = ctx.saved_tensors
        gz = g * (1 - y * y)  # through tanh
        gx = gz.mm(w.t())
        gw = x.t().mm(gz)
        return gx, gw
""",
        [
            ("chain", "gx = gz.mm(w.t())", "gx = g.mm(w.t())", "wrong-gradient missing-term"),
            ("chain", "gw = x.t().mm(gz)", "gw = x.t().mm(g)", "wrong-gradient missing-term"),
            ("transposition", "gw = x.t().mm(gz)", "gw = gz.t().mm(x)", "transposed wrong-shape"),
            ("swap", "return gx, gw", "return gw, gx", "swapped-gradients wrong-shape"),
            ("sign", "gz = g * (1 - y * y)", "gz = g * (y * y - 1)", "wrong-sign"),
            ("missing gradient", "return gx, gw", "return gx, None", "missing-gradient"),
            ("term", "gz = g * (1 - y * y)", "gz = g * (1 - y)", "wrong-gradient missing-term wrong-factor"),
        ],
    ),
    "Linear": (
        """
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight)
        return input.mm(weight.t()) + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias
""",
        [
            ("assignment", "grad_weight = grad_output", "grad_input = grad_output", "swapped-gradients"),
            ("branch", "if ctx.needs_input_grad[1]:", "if ctx.needs_input_grad[2]:", "needs-input-grad"),
            ("reduction", "grad_output.sum(0)", "grad_output.mean(0)", "wrong-reduction wrong-factor"),
            ("reduction axis", "grad_output.sum(0)", "grad_output.sum(1)", "wrong-reduction wrong-shape"),
            (
                "swap",
                "return grad_input, grad_weight,",
                "return grad_weight, grad_input,",
                "swapped-gradients wrong-shape",
            ),
            ("arity", "return grad_input, grad_weight, grad_bias", "return grad_input, grad_weight", "wrong-arity"),
            (
                "none",
                "return grad_input, grad_weight, grad_bias",
                "return grad_input, None, grad_bias",
                "missing-gradient",
            ),
        ],
    ),
    "Scaled": (
        """
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.k, None
""",
        [
            ("factor", "grad_output * ctx.k, None", "grad_output, None", "wrong-factor"),
            ("sign", "grad_output * ctx.k", "-grad_output * ctx.k", "wrong-sign"),
            ("factor", "grad_output * ctx.k", "grad_output / ctx.k", "wrong-factor"),
            ("arity", "grad_output * ctx.k, None", "grad_output * ctx.k", "wrong-arity"),
        ],
    ),
    "Softmax": (
        """
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x - x.max(-1, keepdim=True)[0])
        y = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        inner = (grad_output * y).sum(-1, keepdim=True)
        return y * (grad_output - inner)
""",
        [
            ("term", "y * (grad_output - inner)", "y * grad_output", "missing-term"),
            (
                "axis",
                "sum(-1, keepdim=True)\n        return",
                "sum(0, keepdim=True)\n        return",
                "wrong-reduction missing-term wrong-gradient",
            ),
            ("sign", "(grad_output - inner)", "(grad_output + inner)", "missing-term wrong-gradient"),
            ("detach", "(y,) = ctx.saved_tensors", "y = ctx.saved_tensors[0].detach()", "not-twice-differentiable"),
            ("factor inside", "(grad_output * y).sum(", "grad_output.sum(", "missing-term wrong-gradient"),
        ],
    ),
    "LogSoftmax": (
        """
    @staticmethod
    def forward(ctx, x):
        y = x - torch.logsumexp(x, -1, keepdim=True)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output - y.exp() * grad_output.sum(-1, keepdim=True)
""",
        [
            ("function", "y.exp()", "y", "wrong-gradient missing-term"),
            ("sign", "grad_output - y.exp()", "grad_output + y.exp()", "missing-term wrong-gradient"),
            (
                "term",
                "grad_output - y.exp() * grad_output.sum(-1, keepdim=True)",
                "grad_output.clone()",
                "missing-term",
            ),
            (
                "mean",
                "grad_output.sum(-1, keepdim=True)",
                "grad_output.mean(-1, keepdim=True)",
                "missing-term wrong-gradient wrong-reduction",
            ),
        ],
    ),
    "MSE": (
        """
    @staticmethod
    def forward(ctx, prediction, target):
        ctx.save_for_backward(prediction, target)
        return ((prediction - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad_output):
        prediction, target = ctx.saved_tensors
        difference = 2 * (prediction - target) / prediction.numel()
        return grad_output * difference, -grad_output * difference
""",
        [
            ("size", " / prediction.numel()", "", "wrong-reduction wrong-factor"),
            ("factor", "2 * (prediction", "(prediction", "wrong-factor"),
            (
                "ignored cotangent",
                "return grad_output * difference, -grad_output * difference",
                "return difference, -difference",
                "ignores-grad-output",
            ),
            ("sign", "-grad_output * difference", "grad_output * difference", "wrong-sign"),
            ("size", "prediction.numel()", "prediction.shape[0]", "wrong-factor wrong-reduction"),
        ],
    ),
    "LayerNorm": (
        """
    @staticmethod
    def forward(ctx, x, gamma):
        mean = x.mean(-1, keepdim=True)
        rstd = 1 / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
        xhat = (x - mean) * rstd
        ctx.save_for_backward(x, gamma)
        return xhat * gamma

    @staticmethod
    def backward(ctx, grad_output):
        x, gamma = ctx.saved_tensors
        mean = x.mean(-1, keepdim=True)
        rstd = 1 / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
        xhat = (x - mean) * rstd
        g = grad_output * gamma
        gx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        ggamma = (grad_output * xhat).sum(0)
        return gx, ggamma
""",
        [
            ("term", " - xhat * (g * xhat).mean(-1, keepdim=True)", "", "missing-term wrong-gradient"),
            ("term", "g - g.mean(-1, keepdim=True) - xhat", "g - xhat", "missing-term wrong-gradient"),
            ("chain", "gx = rstd * (g -", "gx = (g -", "wrong-gradient wrong-factor"),
            ("chain", "g = grad_output * gamma", "g = grad_output", "wrong-gradient"),
            ("mean", "(grad_output * xhat).sum(0)", "(grad_output * xhat).mean(0)", "wrong-reduction wrong-factor"),
            ("argument", "(grad_output * xhat).sum(0)", "(grad_output * x).sum(0)", "wrong-gradient missing-term"),
            (
                "axis",
                "g - g.mean(-1, keepdim=True)",
                "g - g.mean(0, keepdim=True)",
                "wrong-gradient missing-term wrong-reduction",
            ),
        ],
    ),
}
