"""Inputs that are given stay as they are, and settle what is searched for the others."""

from typing import Any

import numpy as np
import pytest

from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.reporters.narrative import inputs_line
from gradcli.runner.case import check_object
from gradcli.runner.planning.plan import case_of
from gradcli.settings import Settings
from gradcli.verdict import Verdict
from tests.inputs.search.expected import inferred


def test_given_inputs_stay_as_they_are():
    fixed = (parse_input("weight=7x2"),)
    found = inferred("linear", fixed=fixed)
    shapes = {spec.name: spec.shape for spec in found.specs}
    assert fixed[0] in found.specs
    assert shapes["input"][1] == 2
    assert shapes["bias"] == (7,)


def test_a_given_array_settles_its_sizes(tmp_path):
    np.save(tmp_path / "w.npy", np.arange(14.0).reshape(7, 2))
    given = InputSpec(name="weight", domain="npz", parameters=(("path", str(tmp_path / "w.npy")),))
    shapes = [spec.shape for spec in inferred("linear", fixed=(given,)).specs]
    assert (shapes[0][1], shapes[1], shapes[2]) == (2, None, (7,))


def test_given_values_settle_sizes_that_are_equal():
    fixed = (parse_input("a=4x4"),)
    assert inferred("matmul", fixed=fixed).as_flags() == "-i a=4x4 -i b=4x3"


def test_a_given_constant_stays_as_it_is():
    found = inferred("mul_constant", fixed=(parse_argument("constant=5"),))
    assert found.as_flags() == "-i tensor=3x4 -a constant=5"


def test_a_given_none_leaves_an_optional_argument_out():
    found = inferred("linear", fixed=(parse_argument("bias=None"),))
    assert found.specs[2].value is None


def test_given_inputs_name_the_tensors_of_a_variadic_forward():
    found = inferred("total", fixed=(parse_input("a=2"), parse_input("b=2"), parse_input("c=2")))
    assert [spec.name for spec in found.specs] == ["a", "b", "c"]


def test_a_given_name_that_forward_lacks_is_refused_with_a_close_one():
    with pytest.raises(UsageError, match=r"no argument 'wieght' \(did you mean 'weight'\?\)"):
        inferred("linear", fixed=(parse_input("wieght=3x4"),))


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_scale_has_the_shape_of_its_gradient_beside_a_given_input(ns: Any, factor: float, unexplained: None) -> None:
    class Swish(ns.autograd.Function):
        @staticmethod
        def forward(ctx, x, beta):
            ctx.save_for_backward(x, beta)
            return x * (beta * x).sigmoid()

        @staticmethod
        def backward(ctx, g):
            x, beta = ctx.saved_tensors
            s = (beta * x).sigmoid()
            slope = x * s * (1 - s)
            return g * (s + beta * slope), factor * (g * x * slope).sum()

    spec = CheckSpec(target="module:Swish", inputs=(parse_input("x=3x4"),))
    result = check_object(Swish, case_of(spec, Settings(order=1)))
    assert result.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED)
    assert [evidence.input for evidence in result.evidence if evidence.verdict is Verdict.FAILED] == (
        [] if factor == 1.0 else ["beta"]
    )


def scaled_by(ns: Any, factor: float) -> Any:
    class Scaled(ns.autograd.Function):
        @staticmethod
        def sample_inputs() -> Any:
            return ns.linspace(0.1, 0.9, 6, dtype=ns.float64).requires_grad_(True), lambda x: x * 3

        @staticmethod
        def forward(ctx: Any, x: Any, function: Any) -> Any:
            return function(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return factor * 3 * g, None

    return Scaled


def test_sample_inputs_count_for_nothing_beside_a_given_input(ns: Any, unexplained: None) -> None:
    settings = Settings(order=1, shrink=False)
    given = CheckSpec(target="module:Scaled", inputs=(parse_input("x=3"),), inputs_from=InputsFrom.FLAGS)
    case = check_object(scaled_by(ns, 1.0), case_of(given, settings))
    assert case.verdict is Verdict.ERROR
    assert "sample_inputs is not used where some inputs are given" in str(case.error)
    assert inputs_line(case) == "inputs by flags: -i x=3"
    for factor in (1.0, 1.01):
        case = check_object(scaled_by(ns, factor), case_of(CheckSpec(target="module:Scaled"), settings))
        assert case.verdict is (Verdict.PASSED if factor == 1 else Verdict.FAILED), case.error


@pytest.mark.parametrize("factor", [1.0, 1.01])
def test_a_tensor_is_found_beside_the_values_of_another(ns: Any, factor: float, unexplained: None) -> None:
    class Difference(ns.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(b)
            return (a - b.square()).sum()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (b,) = ctx.saved_tensors
            return g * (b * 0 + 1), -2 * factor * g * b

    spec = CheckSpec(target="module:Difference", inputs=(parse_input("a=2x2,value=[[1.0, 2.0], [0.5, -1.0]]"),))
    result = check_object(Difference, case_of(spec, Settings(order=1, shrink=False)))
    assert [each.shape for each in result.inputs] == [(2, 2), (2, 2)], result.error
    assert result.verdict is (Verdict.PASSED if factor == 1.0 else Verdict.FAILED)
    assert {evidence.input for evidence in result.evidence if evidence.verdict is Verdict.FAILED} == (
        set() if factor == 1.0 else {"b"}
    )
