"""PyTorch's backward pass without what `torch.autograd.grad` imports, and with all that it refuses."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from gradcli.backends.torch.backward_pass import pass_of

torch = pytest.importorskip("torch")
HOW = {"retain_graph": True, "create_graph": False, "allow_unused": True}


@pytest.fixture
def line() -> tuple[Any, Any, Any]:
    """Two leaves, and twice the first."""
    x, z = (torch.arange(3.0, requires_grad=True) for _ in range(2))
    return x, z, 2 * x


def test_gradients_are_those_of_pytorch(line: tuple[Any, Any, Any]) -> None:
    """Also None for a tensor that is not reached, and a graph of the pass where asked."""
    x, z, y = line
    seed = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    own, theirs = (
        grad([y], [x, z], [seed], retain_graph=True, create_graph=True, allow_unused=True)
        for grad in (pass_of(torch), torch.autograd.grad)
    )
    assert torch.equal(own[0], theirs[0])
    assert own[1] is theirs[1] is None
    assert own[0].requires_grad


@pytest.mark.parametrize(
    ("seed", "inputs", "said"),
    [
        (lambda: torch.ones(1), True, "Mismatch in shape"),
        (lambda: torch.ones(3, dtype=torch.complex64), True, "Mismatch in dtype"),
        (lambda: torch.ones(3), False, "cannot be empty"),
    ],
)
def test_what_does_not_fit_is_refused_as_by_pytorch(
    line: tuple[Any, Any, Any], seed: Any, inputs: bool, said: str
) -> None:
    """The engine itself would sum a gradient of another shape, or take any dtype."""
    x, _, y = line
    with pytest.raises(RuntimeError, match=said):
        pass_of(torch)([y], [x] if inputs else [], [seed()], **HOW)


def test_tensors_that_override_operations_are_asked(line: tuple[Any, Any, Any]) -> None:
    """As torch.autograd.grad asks them."""
    asked = []

    class Asking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x, _, y = line
    pass_of(torch)([y.as_subclass(Asking)], [x], [torch.ones(3)], **HOW)
    assert torch.autograd.grad in asked


@pytest.mark.parametrize("engine", [None, lambda *_: (), lambda *_, **__: (torch.tensor(5.0),)])
def test_another_version_of_pytorch_is_asked_by_its_public_function(engine: Any) -> None:
    """Where the engine is not there, takes other arguments, or gives something else."""
    other = SimpleNamespace(
        autograd=SimpleNamespace(grad=torch.autograd.grad, graph=SimpleNamespace(_engine_run_backward=engine)),
        **{name: getattr(torch, name) for name in ("overrides", "enable_grad", "tensor", "ones_like", "float64")},
    )
    assert pass_of(other) is torch.autograd.grad
    other.autograd.graph._engine_run_backward = torch.autograd.graph._engine_run_backward
    assert pass_of(other) is not torch.autograd.grad


def test_a_check_does_not_import_sympy() -> None:
    """It takes a fifth of the processor time of a first check."""
    code = """
import sys, torch, gradcli
assert gradcli.check(torch.tanh, (torch.ones(3, dtype=torch.float64, requires_grad=True),)).ok
print("sympy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "False"), done.stderr
