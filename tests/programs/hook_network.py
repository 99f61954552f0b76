"""The hook tutorial's network: a linear layer and a division by 4, in three orders, with its hooks."""

from collections.abc import Callable
from types import ModuleType
from typing import Any


def quarter_of(framework: ModuleType) -> Any:
    class Quarter(framework.nn.Module):
        def forward(self, t):
            return t / 4  # a quarter

    return Quarter()


def network(framework: ModuleType, order: str, method: str, reply: Callable[[Any, tuple], Any]) -> Any:
    nn = framework.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.f1 = nn.Linear(4, 1, bias=True)
            self.f2 = quarter_of(framework)
            self.f1.weight.data.fill_(8.0)
            self.f1.bias.data.fill_(2.0)

        def forward(self, t):
            self.input = t
            if order == "linear_then_quarter":
                return self.f2(self.f1(t))  # linear first
            if order == "quarter_then_linear":
                return self.f1(self.f2(t))
            return self.f1(self.f2(t)) / 4

        def hook(self, module, grad_input, grad_output):  # the module's hook
            return reply(self, grad_input)

    net = Net().double()
    getattr(net, method)(net.hook)
    return net


def program(
    framework: ModuleType, order: str, method: str = "register_backward_hook", reply: str = "same", **shape: bool
) -> Callable[[], Any]:
    """Build the network, give it 1, 2, 3, 4, and return its result."""
    net = network(framework, order, method, REPLIES[reply])

    def loss():
        data = [[1.0, 2.0, 3.0, 4.0]] if shape.get("batch") else [1.0, 2.0, 3.0, 4.0]
        kind = framework.float32 if shape.get("convert") else framework.float64
        x0 = framework.tensor(data, dtype=kind, requires_grad=True)
        x = x0.to(framework.float64)  # moved here
        x.register_hook(tensor_hook)
        return net(x)

    return loss


def tensor_hook(gradient):  # the tensor's hook
    del gradient


REPLIES: dict[str, Callable[[Any, tuple], Any]] = {
    "same": lambda net, given: given,
    "none": lambda net, given: None,
    "times_ten": lambda net, given: tuple(None if g is None else g * 10 for g in given),
    "times_input": lambda net, given: (given[0] * net.input.detach(),),
    "bare_tensor": lambda net, given: given[0] * 10,
}
