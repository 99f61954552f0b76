"""A finding points at the line that writes: into an argument, into what is kept on ctx, or the wrong entries."""

import pytest

import gradcli
from gradcli.findings import FindingKind as K

FRAMEWORKS = ("gradcli.engine", "torch")
HEADER = "import {framework} as torch\nfrom {framework}.autograd import Function\n\n\n"
SHIFT = """class Shift(Function):
    @staticmethod
    def forward(ctx, x):
        buffer = torch.zeros_like(x[:, :1])
        buffer[:, 0] = x[:, 1]
        x.detach()[:, :1] = buffer  # here
        return x * 2

    @staticmethod
    def backward(ctx, g):
        out = g * 2
        out[:, 1] = out[:, 1] + out[:, 0]
        out[:, 0] = 0
        return out
"""
KEPT = """class Kept(Function):
    @staticmethod
    def forward(ctx, x):
        p = torch.sigmoid(x)
        ctx.p = p
        return p * p

    @staticmethod
    def backward(ctx, g):
        p = ctx.p
        a = 2 * p
        b = p.mul_(1 - p)  # here
        out = a * b
        out = out * g
        return out
"""
FILLED = """class Filled(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = torch.empty_like(x)
        out[0] = 3 * g[0] * x[0] ** 2
        out[1:-1] = 3.03 * g[1:-1] * x[1:-1] ** 2  # here
        out[-1] = 3 * g[-1] * x[-1] ** 2
        return out
"""
ADDED = """class Added(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = 3 * g * x**2
        out[1] += 0.01 * g[1]  # here
        out[2] += 0
        return out
"""
HELPER = """def slope(x):
    s = torch.sigmoid(x.float())  # here
    return (s * (1 - s)).to(x.dtype)


class Helper(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if x.dtype == torch.float32:
            g = g * 1
        d = slope(x)
        return g * d
"""
UNRETURNED = """class Unreturned(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if x.dim() == 2:
            of_x = (  # here
                2 * g * x
            )
        else:
            return 2 * g * x
"""
TALL = """class Tall(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x.mT

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = (g + g.mT) @ x
        out[x.shape[1]:] *= {factor}
        return out
"""
COLLECTED = """class Collected(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x + x**2 / 2 + x**3 / 3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        power = x
        total = 1 + x
        for k in range(1):
            power = power * x * 1.5  # here
            total = total + power
        return g * total
"""
STARRED = """class Starred(Function):
    @staticmethod
    def forward(ctx, x, *weights):
        ctx.save_for_backward(x, *weights)
        return x * weights[0] * weights[1]

    @staticmethod
    def backward(ctx, g):
        x, v, w = ctx.saved_tensors
        gradients = [g * x * w, g * x * v]
        gradients[0] = 1.5 * gradients[0]  # here
        gradients[1] = 1.0 * gradients[1]
        return (g * v * w, *gradients)

    @staticmethod
    def sample_inputs():
        return tuple(torch.rand(3, dtype=torch.float64, requires_grad=True) for _ in range(3))
"""
DELEGATED = """class Square(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, g * x


class Delegated(Square):
    @staticmethod
    def backward(ctx, g):
        a, b = Square.backward(ctx, g)
        return a, b * g.abs()  # here
"""
LOWERED = """class Lowered(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        out = torch.zeros(x.shape)  # here
        for row in range(x.shape[0]):
            out[row] = 2 * g[row] * x[row]
        return out
"""
GUARDED = """class Guarded(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if torch.is_grad_enabled():
            raise NotImplementedError("not differentiable")  # here
        return 2 * g * x
"""
CASES = (
    (SHIFT, "Shift", K.MUTATES_INPUT, "4x3"),
    (KEPT, "Kept", K.SECOND_BACKWARD_FAILS, "3x4"),
    (FILLED, "Filled", None, "5x3"),
    (ADDED, "Added", None, "5x3"),
    (HELPER, "Helper", K.LOW_PRECISION, "3x4"),
    (UNRETURNED, "Unreturned", K.MISSING_GRADIENT, "3x4"),
    (LOWERED, "Lowered", K.LOW_PRECISION, "3x4"),
)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("source", "name", "kind", "shape"), CASES, ids=[case[1] for case in CASES])
def test_the_line_is_the_one_that_writes(tmp_path, framework, source, name, kind, shape):
    pytest.importorskip(framework)
    if name == "Helper" and framework != "torch":
        pytest.skip("the engine's gradients keep the precision of grad_output")
    text = (HEADER + source).replace("{framework}", framework)
    file = tmp_path / f"lines_{name.lower()}_{framework[-5:]}.py"
    file.write_text(text)
    sizes = [int(n) for n in shape.split("x")]
    case = gradcli.check(f"{file}:{name}", {"x": {"shape": sizes}}, order=1, samples=1).cases[0]
    found = [f for f in case.findings if kind is None or f.kind is kind]
    assert found, [f.message for f in case.findings]
    line = next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    assert [f.location.line for f in found if f.location is not None] == [line], [f.message for f in found]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("factor", "verdict"), [("1.5", "failed"), ("1.0", "passed")])
def test_entries_that_only_a_larger_input_has(tmp_path, framework, factor, verdict):
    pytest.importorskip(framework)
    text = (HEADER + TALL).replace("{framework}", framework).replace("{factor}", factor)
    file = tmp_path / f"tall_{factor[-1]}_{framework[-5:]}.py"
    file.write_text(text)
    case = gradcli.check(f"{file}:Tall", order=1).cases[0]
    assert case.verdict.value == verdict, case.error
    for finding in case.findings:
        assert "of shape" in finding.message
        assert finding.location is not None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(
    ("source", "name", "inputs", "order"),
    [
        (COLLECTED, "Collected", {"x": {"shape": [3]}}, 1),
        (STARRED, "Starred", None, 1),
        (DELEGATED, "Delegated", {"x": {"shape": [3]}, "w": {"shape": [3]}}, 1),
        (GUARDED, "Guarded", {"x": {"shape": [3]}}, 2),
    ],
    ids=["Collected", "Starred", "Delegated", "Guarded"],
)
def test_the_line_is_that_of_the_mistake(tmp_path, framework, source, name, inputs, order):
    pytest.importorskip(framework)
    text = (HEADER + source).replace("{framework}", framework)
    file = tmp_path / f"mistakes_{name.lower()}_{framework[-5:]}.py"
    file.write_text(text)
    case = gradcli.check(f"{file}:{name}", inputs, order=order, samples=1).cases[0]
    line = next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# here"))
    assert {f.location.line for f in case.findings if f.location is not None} == {line}, case.findings
