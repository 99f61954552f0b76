"""The search ends where a line raises whatever the inputs are, and goes on where other inputs avoid that line."""

from typing import Any

import pytest

import gradcli
from gradcli.verdict import Verdict

torch = pytest.importorskip("torch", reason="these Functions are PyTorch's")


def function(forward: Any) -> type:
    """A Function of PyTorch's with this forward, and with the gradient of the sine for its first argument."""

    class Tried(torch.autograd.Function):
        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * x.cos(), *(None for _ in ctx.needs_input_grad[1:])

    Tried.forward = staticmethod(forward)
    return Tried


def kept(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return x.sin()


def misspelt(ctx, x, count):
    y = kept(ctx, x)
    return y * sclae  # noqa: F821


def removed(ctx, x):
    return torch.rfft(kept(ctx, x), 1)


def removed_in_a_helper(ctx, x):
    with torch.no_grad():
        return _removed(kept(ctx, x))


def _removed(y):
    if y.dim() == 7:
        y = y[0]
    return y.mul(torch.symeig_(y))


def imported_late(ctx, x):
    limit = x.new_ones(()) * inf  # noqa: F821
    from math import inf  # noqa: F401

    return kept(ctx, x).clamp(max=limit)


def lacks_a_module(ctx, x):
    import torch_that_is_not_here

    return torch_that_is_not_here.sin(kept(ctx, x))


def on_a_gpu(ctx, x):
    return kept(ctx, x) + torch.zeros(1).cuda()


def never_kept(ctx, x):
    ctx.save_for_backward(x)
    return x.sin() * ctx.scale


@pytest.mark.parametrize(
    ("forward", "line", "said"),
    [
        (misspelt, 2, "NameError: name 'sclae' is not defined"),
        (removed, 1, "AttributeError: module 'torch' has no attribute 'rfft'"),
        (removed_in_a_helper, 8, "AttributeError: module 'torch' has no attribute 'symeig_'"),
        (imported_late, 1, "UnboundLocalError: cannot access local variable 'inf'"),
        (lacks_a_module, 1, "ModuleNotFoundError: No module named 'torch_that_is_not_here'"),
        (never_kept, 2, "AttributeError: 'TriedBackward' object has no attribute 'scale'"),
    ],
)
def test_a_line_that_no_call_avoids_ends_the_search(forward, line, said):
    line += forward.__code__.co_firstlineno
    case = gradcli.check(function(forward), shrink=False).cases[0]
    assert case.verdict is Verdict.ERROR
    assert f"Tried accepts no inputs: line {line} of {__name__.rpartition('.')[2]}.py raises {said}" in case.error
    assert case.forwards < 20


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a GPU that the machine has")
def test_a_missing_gpu_ends_the_search_and_no_kernels_are_spoken_of():
    case = gradcli.check(function(on_a_gpu), shrink=False).cases[0]
    assert "Tried accepts no inputs" in case.error
    hint = next(note for note in case.notes if "GPU" in note)
    assert "`.to(x.device)`" in hint
    assert "kernel" not in hint


def at_other_ranks(ctx, x):
    if x.dim() == 2:
        x = torch.rfft(x, 1)
    return kept(ctx, x)


def in_other_modes(ctx, x, mode):
    if mode == "fast":
        return kept(ctx, x) * fast_scale  # noqa: F821
    if mode == "exact":
        return kept(ctx, x)
    raise ValueError(mode)


def left_early(ctx, x, exact):
    if exact:
        return kept(ctx, x)
    y = x * scaled_by  # noqa: F821
    return kept(ctx, y)


def of_a_module(ctx, x, name):
    return getattr(torch, name)(kept(ctx, x)) if name == "clone" else getattr(torch, name + "_of")(x)


@pytest.mark.parametrize("forward", [at_other_ranks, in_other_modes, left_early, of_a_module])
def test_inputs_that_avoid_the_line_are_found(forward):
    assert gradcli.check(function(forward), shrink=False).verdict is Verdict.PASSED


def test_a_misspelt_exception_that_refuses_inputs_does_not_end_the_search():
    class Refusing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            if x.dim() != 3 or y.dim() != 1 or y.shape[0] != x.shape[1]:
                raise ShapeErorr(x.shape)  # noqa: F821
            ctx.save_for_backward(x, y)
            return x * y[:, None]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y[:, None], (g * x).sum((0, 2))

    assert gradcli.check(Refusing, shrink=False).verdict is Verdict.PASSED


def branched(ctx, x, y, z):
    if torch.is_tensor(y) or torch.is_tensor(z) or x.dim() != 9:
        return kept(ctx, x) * undefined_scale  # noqa: F821
    return kept(ctx, x)


def test_a_line_in_a_branch_ends_the_search_after_every_argument_was_varied():
    case = gradcli.check(function(branched), shrink=False).cases[0]
    line = branched.__code__.co_firstlineno + 2
    assert case.verdict is Verdict.ERROR
    assert f"line {line} of test_lasting_errors.py raises this whenever it is reached" in case.error
    assert "give the inputs: -i x=" in case.error
    assert case.forwards < 2500


class OldStyle(torch.autograd.Function):
    """As Functions were until PyTorch 1.3."""

    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return self.slope * x

    def backward(self, g):
        return self.slope * g


class OldStyleWithContextAlone(torch.autograd.Function):
    """What an instance method does with its context alone still runs."""

    def forward(self, x):
        self.save_for_backward(x)
        return x.sin()

    def backward(self, g):
        return g * self.saved_tensors[0].cos()


def test_functions_with_instance_methods_are_told_what_to_change():
    case = gradcli.check(OldStyle, shrink=False).cases[0]
    assert case.verdict is Verdict.ERROR
    assert any("old style" in note and "give slope to forward as an argument" in note for note in case.notes)
    assert "give the inputs" not in case.error
    assert gradcli.check(OldStyleWithContextAlone, shrink=False).verdict is Verdict.PASSED
