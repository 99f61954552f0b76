"""Inputs that are given stay as they are, and settle what is searched for the others."""

import numpy as np
import pytest

from gradcli.cases import InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.flags import parse_argument, parse_input
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
