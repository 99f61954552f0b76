"""Modules of a user with right and planted gradients, written once for both frameworks that have modules."""

HEADS = {
    "engine": "import gradcli.engine as torch\nfrom gradcli.engine import nn\n",
    "torch": "import torch\nfrom torch import nn\n",
}

PROGRAM = '''

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum(0)


class MeanScale(Scale):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        dx = g * w
        return dx, (g * x).mean(0)  # the planted mistake


class Layer(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.norm = nn.BatchNorm1d(features)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(Scale.apply(x, self.weight)))


class MeanLayer(nn.Module):
    def __init__(self, features, gain=2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.gain = gain

    def forward(self, x):
        return self.gain * MeanScale.apply(x, self.weight)


class Gate(nn.Module):
    """Its gradient is wrong only where the gate has moved from its initial zeros."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gate * Doubtful.apply(x)


class Doubtful(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 3 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(torch.tanh(self.fc(x)))


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        self.calls += 1
        return x * self.w * self.calls


class Demanding(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.w = nn.Parameter(torch.ones(table["size"]))

    def forward(self, x):
        return x * self.w


stack = Stack()
counting = Counting()
'''
