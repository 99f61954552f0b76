"""A typical exception of a tutorial's reader gets the hint that puts it right; others get none."""

import types

import pytest

from gradcli.spec.hints import closest, explain_exception


def raised(source, **names):
    try:
        exec(compile(source, "listing.py", "exec"), {"__name__": "listing", **names})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


class Context:
    """Stands for ctx: it has the methods whose names are mistaken."""

    def mark_non_differentiable(self, *tensors):
        """Nothing."""

    def save_for_backward(self, *tensors):
        """Refuse what is no tensor, as PyTorch does."""
        for index, each in enumerate(tensors):
            if isinstance(each, int | list):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {index} is of type {type(each).__name__}"
                )


class FakeTensor:
    """Has an initialiser whose name is mistaken."""

    def uniform_(self):
        """Nothing."""


NN = types.ModuleType("torch.nn")
NN.functional = types.ModuleType("torch.nn.functional")


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("supper()", "did you mean 'super'?"),
        ("output_features = 1\noutput_featuers", "did you mean 'output_features'?"),
        ("tensor.unifor_()", "did you mean 'uniform_'?"),
        ("class LinearFunction(Function): ...", "add the line: from torch.autograd import Function"),
        ("torch.zeros(3)", "add the line: import torch"),
        ("x = Tensor(3)", "add the line: from torch import Tensor"),
        ("F.relu(1)", "add the line: import torch.nn.functional as F"),
        ("ctx.mark_non_differential(1)", "did you mean 'mark_non_differentiable'?"),
        ("ctx.saved_tensor", "did you mean 'saved_tensors'?"),
        ("nn.Function.conv2d()", "did you mean 'nn.functional'?"),
        (
            "ctx.save_for_backward(tensor, 3)",
            "argument 1 (counted from 0) is of type int: set it as an attribute, ctx.name = value",
        ),
        ("_ConvLayer(3)", "is defined nowhere in the file"),
        ("import torch_that_is_not_here", "is not installed here"),
    ],
)
def test_the_seeds_mistakes_get_their_hint(source, hint):
    error = raised(source, tensor=FakeTensor(), ctx=Context(), nn=NN)
    assert hint in (explain_exception(error) or "")


@pytest.mark.parametrize("source", ["1 / 0", "[].append(1, 2)", "int('x')", "def f():\n    x += 1\nf()"])
def test_what_needs_no_hint_gets_none(source):
    assert explain_exception(raised(source)) is None


def test_a_lost_indentation_is_named():
    assert "indentation" in explain_exception(raised("class A:\ndef f(): ..."))


def test_an_object_whose_dir_raises_is_survived():
    class Hostile:
        def __dir__(self):
            raise RuntimeError

    error = raised("hostile.nothing_like_it", hostile=Hostile())
    assert explain_exception(error) is None


def test_an_exception_without_a_traceback_is_survived():
    assert explain_exception(NameError("name 'supper' is not defined")) == "did you mean 'super'?"
    assert explain_exception(AttributeError("x")) is None
    assert explain_exception(ImportError("x")) is None


def test_names_are_compared_without_regard_to_case():
    assert closest("linearfunction", ["LinearFunction", "Other"]) == "LinearFunction"
    assert closest("zzz", ["LinearFunction"]) is None


def test_a_kernel_that_does_not_compile_for_float64_is_checked_in_float32():
    class CompilationError(Exception):
        """Triton's, by name."""

    said = "at 36:4: Loop-carried variable s has initial type fp32 but is re-assigned to fp64 in loop!"
    hint = explain_exception(CompilationError(said))
    assert hint is not None
    assert "--dtype float32" in hint
    assert explain_exception(CompilationError(said.replace("fp64", "fp16"))) is None
    assert explain_exception(ValueError(said)) is None
