"""Inference finds inputs that forward accepts, rich enough that a mistake cannot hide in them."""

import numpy as np
import pytest

from gradcli.inputs.builders import build
from gradcli.inputs.search.inference import infer
from gradcli.targets import TargetInfo
from tests.inputs.search.expected import ALSO_FOUND, EXPECTED, inferred
from tests.programs import plain_functions as plain


@pytest.mark.parametrize("name", EXPECTED)
def test_the_expected_inputs_are_found(name):
    assert inferred(name).as_flags() == EXPECTED[name]


@pytest.mark.parametrize("name", [*EXPECTED, *ALSO_FOUND])
def test_inputs_and_alternatives_are_accepted_finite_and_matter(name):
    function = getattr(plain, name)
    found = inferred(name)
    attempt = plain.attempt_of(function)
    for specs in (found.specs, *found.alternatives):
        for sample in range(5):
            keyword = {p.name for p in plain.info_of(function).parameters if p.keyword_only}
            built = build(specs, seed=11, sample=sample)
            trial = attempt([a if a.name not in keyword else _keyword(a) for a in built])
            assert trial.ok
            assert all(np.isfinite(output).all() and output.size for output in trial.outputs)


def _keyword(argument):
    from dataclasses import replace

    return replace(argument, keyword=True)


@pytest.mark.parametrize(
    "name", [name for name in [*EXPECTED, *ALSO_FOUND] if name not in ("cholesky", "inverse", "solve")]
)
def test_no_tensor_has_two_equal_axes_unless_forward_demands_it(name):
    for spec in inferred(name).specs:
        if spec.shape is not None:
            assert len(set(spec.shape)) == len(spec.shape)
            assert 1 not in spec.shape


def test_a_kernel_fits_into_its_image():
    x, weight = inferred("conv2d").specs
    assert len(x.shape) == len(weight.shape) == 4
    assert x.shape[1] == weight.shape[1]
    assert weight.shape[2] <= x.shape[2]
    assert weight.shape[3] <= x.shape[3]


def test_a_solve_takes_a_square_matrix_of_at_least_three():
    a, b = inferred("solve").specs
    assert a.shape == (3, 3)
    assert b.shape[0] == 3


def test_optional_arguments_are_given_and_once_left_out():
    found = inferred("linear")
    assert [spec.name for spec in found.specs] == ["input", "weight", "bias"]
    assert [[spec.name for spec in other] for other in found.alternatives] == [["input", "weight"]]


def test_the_other_axis_and_the_other_flag_are_cases_too():
    assert [other[1].value for other in inferred("softmax").alternatives] == [0]
    assert [other[1].value for other in inferred("flagged").alternatives] == [False]


def test_a_broadcast_that_merely_runs_is_no_case():
    assert inferred("add").alternatives == ()


def test_a_broadcast_that_backward_provides_for_is_a_case():
    def backward(grad_output):
        return sum_to_size(grad_output, (3,)), grad_output  # noqa: F821

    found = infer(plain.info_of(plain.add, backward), plain.attempt_of(plain.add))
    assert [[spec.shape for spec in other] for other in found.alternatives] == [[(3, 4), (1, 4)]]


def test_complex_inputs_are_a_case_where_backward_conjugates():
    def backward(grad_output):
        return grad_output.conj()

    found = infer(plain.info_of(plain.norm, backward), plain.attempt_of(plain.norm))
    assert [[spec.dtype for spec in other] for other in found.alternatives] == [["complex128"]]


def test_a_single_capital_is_not_taken_for_a_count():
    def ratio(F, K):
        return F / (1 + K * K)

    def power(F, k):
        return F / (1 + k * k)

    kinds = [infer(plain.info_of(each), plain.attempt_of(each)).specs[1].kind for each in (ratio, power)]
    assert kinds == ["tensor", "value"]


def test_a_constant_is_never_one_or_zero():
    (_, constant) = inferred("mul_constant").specs
    assert constant.value not in (0, 1)


def test_a_domain_is_noted_because_it_narrows_what_is_checked():
    assert "positive" in inferred("log").notes[0]
    assert inferred("relu").notes == ()


def test_the_same_seed_finds_the_same_inputs():
    assert inferred("gather").specs == inferred("gather").specs


def test_each_number_of_variadic_arguments_has_its_turn_early():
    def three(*parts):
        first, second, third = parts
        return first * second + third

    found = infer(plain.info_of(three), plain.attempt_of(three))
    assert [spec.shape for spec in found.specs] == [(3, 4)] * 3
    assert found.tries < 1000


@pytest.mark.parametrize(("default", "tried"), [(-1, True), (1, True), (0, False), (2.0, False)])
def test_an_axis_that_defaults_to_the_last_is_also_the_first(default, tried):
    def summed(x, dim=default):
        return x.sum(int(dim) % 2) ** 2

    found = infer(plain.info_of(summed), plain.attempt_of(summed))
    others = [specs[-1].value for specs in found.alternatives if specs[-1].name == "dim"]
    assert others == ([0] if tried else [])


@pytest.mark.parametrize("count", [4, 12])
def test_many_tensors_of_one_shape_are_found(count):
    def total(*values):
        return sum(one * other for one, other in zip(values[::2], values[1::2], strict=True))

    names = [f"x{number}" for number in range(1, count + 1)]
    scope = {"total": total}
    exec(f"def products({', '.join(names)}):\n    return total({', '.join(names)})", scope)
    found = infer(plain.info_of(scope["products"]), plain.attempt_of(scope["products"]))
    assert [(spec.name, spec.shape) for spec in found.specs] == [(name, (3, 4)) for name in names]


def test_a_forward_that_writes_into_its_input_spoils_nothing():
    def in_place(x, y):
        x *= 2
        return x + y

    found = infer(plain.info_of(in_place), plain.attempt_of(in_place))
    assert [spec.shape for spec in found.specs] == [(3, 4), (3, 4)]


def test_a_target_without_python_source_is_inferred_too():
    function = np.exp
    info = TargetInfo(
        name="exp", backend="numpy", forward=None, backward=None,
        parameters=plain.info_of(plain.relu).parameters,
    )  # fmt: skip
    assert infer(info, plain.attempt_of(function)).as_flags() == "-i input=3x4"


def test_what_a_function_is_called_is_no_call_in_its_body():
    def outer(x, b):
        return np.sin(x + b)

    def plainly(x, b):
        return np.sin(x + b)

    found = [infer(plain.info_of(each), plain.attempt_of(each)).as_flags() for each in (outer, plainly)]
    assert found[0] == found[1]
