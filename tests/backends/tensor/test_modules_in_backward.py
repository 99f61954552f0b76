"""Functions that read a module's parameters in backward, or call the module again: they find those of their call."""

import numpy as np
import pytest

import gradcli
from gradcli.verdict import Verdict


@pytest.fixture(params=["engine", "torch"])
def framework(request):
    if request.param == "torch":
        return pytest.importorskip("torch", reason="one of the two frameworks is PyTorch")
    import gradcli.engine as engine

    return engine


def modules(framework, factor):
    """Two modules, the first of which recomputes its part in backward, the second reads its weight there."""

    class Recomputed(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x, part, *parameters):
            ctx.part = part
            ctx.save_for_backward(x)
            with framework.no_grad():
                return part(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with framework.enable_grad():
                x = x.detach().requires_grad_(True)
                y = ctx.part(x)
            found = framework.autograd.grad(y, (x, *ctx.part.parameters()), g)
            return found[0], None, factor * found[1], *found[2:]

    class Scaled(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x, module, weight):
            ctx.module = module
            ctx.save_for_backward(x)
            return x * module.weight.detach() ** 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.module.weight**2, None, factor * 2 * g * x * ctx.module.weight

    class Outer(framework.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = framework.nn.Linear(3, 2)

        def forward(self, x):
            return Recomputed.apply(x, self.part, *self.part.parameters()).tanh()

    class Gain(framework.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = framework.nn.Parameter(framework.tensor([0.5, -0.25, 2.0]))

        def forward(self, x):
            return Scaled.apply(x, self, self.weight)

    return Outer(), Gain()


@pytest.mark.parametrize("double", [False, True])
def test_backward_finds_the_parameters_of_its_call(framework, double):
    x = framework.tensor([[0.5, -1.0, 2.0]], dtype=framework.float64, requires_grad=True)
    recomputing, reading = modules(framework, 1)
    if double:
        recomputing, reading = recomputing.double(), reading.double()
    before = [np.array(p.detach().numpy()) for m in (recomputing, reading) for p in m.parameters()]
    case = gradcli.check(recomputing, (x,), order=1).cases[0]
    assert case.verdict is Verdict.PASSED
    assert any("part.weight, part.bias" in note and "only as a note" in note for note in case.notes)
    assert gradcli.check(reading, (framework.ones(3, dtype=framework.float64, requires_grad=True),), order=2).ok
    after = [p.detach().numpy() for m in (recomputing, reading) for p in m.parameters()]
    assert all((one == other).all() and one.dtype == other.dtype for one, other in zip(before, after, strict=True))


@pytest.mark.sampled(1)
def test_a_wrong_factor_there_is_named(framework):
    x = framework.tensor([[0.5, -1.0, 2.0]], dtype=framework.float64, requires_grad=True)
    recomputing, reading = (module.double() for module in modules(framework, 2))
    for module, given, name in ((recomputing, x, "part.weight"), (reading, x[0].detach().requires_grad_(), "weight")):
        case = gradcli.check(module, (given,), order=1, shrink=False).cases[0]
        assert [(f.kind.value, f.input, f.factor) for f in case.findings] == [("wrong-factor", name, "2")]
