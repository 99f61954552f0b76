"""gradcli.check from a program: the same verdicts as the command line, and the caller's values untouched."""

import json

import numpy as np
import pytest

import gradcli
from gradcli import engine
from gradcli.engine import tensor
from gradcli.engine.autograd import Function
from gradcli.errors import TargetError, UsageError
from gradcli.verdict import Verdict


class Product(Function):
    @staticmethod
    def forward(ctx, x, y, scale=1.0):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y * ctx.scale, grad_output * x * ctx.scale, None


class ForgetsScale(Product):
    @staticmethod
    def backward(ctx, grad_output):
        x, y = ctx.saved_tensors
        return grad_output * y, grad_output * x, None


def _pair():
    return tensor([1.5, -2.0], requires_grad=True), tensor([0.25, 4.0], requires_grad=True)


@pytest.mark.parametrize("mode", [engine.no_grad, engine.inference_mode])
@pytest.mark.usefixtures("unexplained")
def test_the_mode_of_the_caller_changes_no_verdict_and_is_left_as_it_was(mode) -> None:
    with mode():
        assert gradcli.check(Product).ok
        assert gradcli.check(Product, _pair()).ok
        assert gradcli.check(ForgetsScale).verdict is Verdict.FAILED
        assert gradcli.trace(Product).nodes
        assert engine.is_inference_mode_enabled() is (mode is engine.inference_mode)
        assert not engine.is_grad_enabled()
    assert engine.is_grad_enabled()


def test_a_right_function_is_ok_and_a_wrong_one_is_named() -> None:
    assert gradcli.check(Product).ok
    report = gradcli.check(ForgetsScale, (*_pair(), 3.0))
    assert not report.ok
    assert report.verdict is Verdict.FAILED
    assert report.cases[0].findings[0].kind.value == "wrong-factor"
    assert json.loads(json.dumps(report.to_dict()))["cases"][0]["inputs_from"] == "given"
    assert str(report).startswith("FAIL tests.test_api:ForgetsScale finding=wrong-factor")


def test_values_given_are_checked_as_they_stand_and_are_left_as_they_were() -> None:
    x, y = _pair()
    y.requires_grad_(False)
    report = gradcli.check(Product, (x, y, 2.0))
    assert report.ok
    assert x.grad is None
    assert x.grad_fn is None
    assert (x.tolist(), y.tolist(), y.requires_grad) == ([1.5, -2.0], [0.25, 4.0], False)
    shown = {spec.name: spec for spec in report.cases[0].inputs}
    assert (shown["x"].requires_grad, shown["y"].requires_grad, shown["scale"].value) == (True, False, 2.0)


def test_a_list_of_tuples_is_several_samples() -> None:
    report = gradcli.check(Product, [_pair(), (np.array(2.0), np.array(3.0))])
    assert report.ok
    assert report.cases[0].samples == 2


def test_a_dict_mixes_values_and_specs_by_name_in_any_order() -> None:
    report = gradcli.check(Product, {"scale": 3.0, "y": {"shape": [2], "domain": "positive"}, "x": _pair()[0]})
    assert report.ok
    assert [spec.name for spec in report.cases[0].inputs] == ["x", "y", "scale"]
    assert report.cases[0].samples == 3


def test_a_scalar_is_described_as_in_a_spec() -> None:
    report = gradcli.check(Product, {"scale": 3.0, "y": {"shape": [2]}, "x": {"shape": "scalar"}}, only=("forward",))
    assert [spec.shape for spec in report.cases[0].inputs if spec.kind == "tensor"] == [(), (2,)]


def test_a_callable_that_wraps_apply_is_checked() -> None:
    assert gradcli.check(lambda x, y: Product.apply(x, y, 2.0), _pair()).ok
    assert not gradcli.check(lambda x, y: ForgetsScale.apply(x, y, 2.0), _pair()).ok


def test_a_target_may_be_named_as_on_the_command_line() -> None:
    assert gradcli.check("tests.test_api:Product", _pair()).ok
    with pytest.raises(TargetError, match="did you mean 'Product'"):
        gradcli.check("tests.test_api:Prodict")


def test_equal_calls_give_equal_reports_but_for_the_time() -> None:
    first, second = (gradcli.check(Product).to_dict()["cases"][0] for _ in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        (3.0, "expected a tuple of forward's arguments"),
        ([3.0], "A single argument x is given as"),
        ([], "expected a tuple"),
        ({"x": {"shape": [2]}}, "Product.forward also needs y"),
        ({"x": {"shap": [2]}, "y": 1}, r"inputs\['x'\]: unknown key 'shap'; did you mean 'shape'"),
        ({"x": {"shape": "2x3"}, "y": 1}, "expected shape to be a list of sizes, or 'scalar', got shape='2x3'"),
        ({"z": 1, "x": 1, "y": 1}, "has no input 'z'"),
        ((1, 2, 3, 4), r"expected at most 3 inputs \(x, y, scale\), got 4"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_in_words(inputs: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        gradcli.check(Product, inputs)  # type: ignore[arg-type]  # wrong on purpose


def test_what_cannot_be_checked_is_refused() -> None:
    with pytest.raises(TargetError):
        gradcli.check(3.0)
    with pytest.raises(TargetError, match="is a class but not a Function"):
        gradcli.check(dict)


def test_a_check_that_does_not_exist_is_refused_for_objects_too() -> None:
    with pytest.raises(UsageError, match="there is no check 'gradiant'; did you mean 'gradient'"):
        gradcli.check(Product, only=["gradiant"])


def test_an_exception_of_the_users_forward_is_a_case_with_an_error() -> None:
    class Raises(Product):
        @staticmethod
        def forward(ctx, x):
            raise RuntimeError("planted")

    (case,) = gradcli.check(Raises, (np.ones(2),)).cases
    assert case.verdict is Verdict.ERROR
    assert "planted" in str(case.error)
    assert "test_api.py" in str(case.error_traceback)


def test_nothing_is_written_by_the_api(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not gradcli.check(ForgetsScale, (*_pair(), 3.0)).ok
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_taken_from_a_program_too() -> None:
    graph = gradcli.trace(Product, _pair())
    assert graph.to_dict()["schema"] == "gradcli.trace/1"
    assert any("Product" in node.name for node in graph.nodes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"order": 0}, "order 0: expected a whole number from 1 to 9"),
        ({"order": 10**20}, "order 100000000000000000000: expected a whole number from 1 to 9"),
        ({"samples": 0}, "samples 0: expected"),
        ({"seed": -1}, "seed -1: expected"),
        ({"dtype": "float31"}, "did you mean 'float32'"),
        ({"significance": 0.0}, "significance 0: expected a number above 0"),
        ({"require_resolution": -1.0}, "require_resolution -1: expected"),
    ],
)
def test_values_that_no_run_can_have_are_refused_here_too(options, said) -> None:
    with pytest.raises(UsageError, match=said):
        gradcli.check(Product, **options)


def test_one_check_may_be_named_alone() -> None:
    report = gradcli.check(Product, (np.ones(2), np.ones(2)), only="gradient", order=1)
    assert {evidence.check for evidence in report.cases[0].evidence if evidence.verdict is Verdict.PASSED} == {
        "gradient"
    }
