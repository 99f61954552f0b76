"""docs/backends.md: its table is what the backends themselves say, and its programs pass."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.backends.numpy.claims import GradientPair
from gradcli.backends.registry import backend_for, backend_named
from gradcli.backends.tensor.bound import BoundFunction
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.cases import Argument
from gradcli.checks.battery import run_battery
from gradcli.settings import Settings
from gradcli.verdict import Verdict

DOCUMENT = Path(__file__).parents[2] / "docs" / "backends.md"
HEAD = "| target | orders | backward called by hand | autodiff of forward | forward mode | float32 as given | trace |"


def function_of(namespace):
    class Square(namespace.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square


def operator_of(torch):
    def square(x: torch.Tensor) -> torch.Tensor:
        return x * x

    square.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    made = torch.library.custom_op("gradcli_tests::documented", square, mutates_args=())
    made.register_autograd(
        lambda ctx, g: 2 * ctx.saved_tensors[0] * g,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    return made


def targets():
    jax = pytest.importorskip("jax", reason="the table has rows for JAX")
    torch = pytest.importorskip("torch", reason="the table has rows for PyTorch")
    engine = backend_named("engine").framework.namespace
    with_vjp, with_jvp = jax.custom_vjp(lambda x: x * x), jax.custom_jvp(lambda x: x * x)
    with_vjp.defvjp(lambda x: (x * x, x), lambda x, g: (2 * x * g,))
    with_jvp.defjvps(lambda v, _, x: 2 * x * v)
    yield "engine Function", function_of(engine)
    yield "callable on the engine", lambda x: engine.sin(x)
    yield "engine module", engine.nn.Tanh()
    yield "torch Function", function_of(torch)
    yield "callable on PyTorch", lambda x: torch.sin(x)
    yield "torch operator", operator_of(torch)
    yield "torch module", torch.nn.Tanh()
    yield "JAX custom_vjp", with_vjp
    yield "JAX custom_jvp", with_jvp
    yield "callable on JAX", lambda x: jax.numpy.sin(x)
    yield "NumPy with `--grad`", GradientPair(function=lambda x: np.sum(x * x), gradient=lambda x: 2 * x)
    yield "NumPy (value, gradient)", GradientPair(function=lambda x: (np.sum(x * x), 2 * x), gradient=None)


def row(label, target):
    backend = backend_for(target)
    given = Argument(name="x", value=np.ones(3, np.float32), is_tensor=True, requires_grad=True)
    subject = backend.bind(target, [given])
    evidence = run_battery(subject, Settings(order=3), seed=0)
    orders = max(e.order for e in evidence if e.verdict is Verdict.PASSED)
    assert all(e.verdict in (Verdict.PASSED, Verdict.SKIPPED) for e in evidence), evidence
    with subject.session():
        directly = subject.raw_backward([np.ones(block.shape) for block in subject.codomain.blocks]).available
        witness = subject.body_map(1) is not None
    lower = isinstance(subject, BoundFunction) and subject.in_given_precision() is not None
    cells = (directly, witness, subject.derivative_map(1).has_jvp, lower, isinstance(backend, FunctionBackend))
    marks = ["yes" if cell else "no" for cell in cells]
    return f"| {' | '.join([label, '1' if orders == 1 else 'any', *marks])} |"


def test_the_table_is_what_the_backends_say():
    table = "\n".join([HEAD, "|---|---|---|---|---|---|---|", *(row(*each) for each in targets())])
    written = re.search("<!-- capabilities -->\n(.*)\n<!-- /capabilities -->", DOCUMENT.read_text(), re.DOTALL)[1]
    assert written == table, f"the table in {DOCUMENT.name} should be:\n{table}"


def test_its_programs_pass(monkeypatch):
    pytest.importorskip("jax", reason="one of the programs is JAX's")
    programs = re.findall("```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(programs) == 3
    for number, program in enumerate(programs):
        module = types.ModuleType(f"documented_{number}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(program, f"{module.__name__}.py", "exec"), vars(module))
    jax_module, numpy_module, apart = (sys.modules[f"documented_{number}"] for number in range(3))
    assert gradcli.check(jax_module.linear, samples=1).ok
    assert gradcli.check(numpy_module.energy, grad=numpy_module.energy_gradient, samples=1).ok
    torch = pytest.importorskip("torch", reason="one of the programs is PyTorch's")
    given = tuple(torch.randn(*shape, requires_grad=True) for shape in ((3, 4), (4,), (4,)))
    saved = ("mean", "rstd")
    assert gradcli.check(apart.layer_norm, given, grad=apart.layer_norm_backward, saved=saved, samples=1).ok
