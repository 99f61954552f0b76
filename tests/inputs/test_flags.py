"""Flags are read as documented, round-trip through as_flag, and hostile ones are refused with a way out."""

import contextlib
import math
import shlex

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gradcli.cases import InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_argument, parse_input


@pytest.mark.parametrize(
    ("text", "shape"),
    [("x=20x30", (20, 30)), ("x=scalar", ()), ("x=5", (5,)), ("x=0x3", (0, 3)), ("x=2×3", (2, 3)), (" x = 4 ", (4,))],
)
def test_shapes(text, shape):
    assert parse_input(text) == InputSpec(name="x", shape=shape)


def test_keys_are_read():
    spec = parse_input("idx=5,domain=indices,high=4,low=1,dtype=int32,grad=false")
    assert spec.domain == "indices"
    assert spec.parameter("high") == 4
    assert spec.parameter("low") == 1
    assert spec.dtype == "int32"
    assert spec.requires_grad is False


def test_an_interval_may_stand_in_the_domain_or_in_keys():
    one, other = parse_input("x=3,domain=open-interval(0, 2)"), parse_input("x=3,domain=open-interval,lo=0.0,hi=2.0")
    assert one == other


def test_variadic_names_are_allowed():
    assert parse_input("xs[1]=3").name == "xs[1]"


@pytest.mark.parametrize(
    "text",
    ["x=20x30", "x=scalar", "i=5,domain=indices,high=4", "x=3,domain=open-interval(-1,1)", "x=2,value=[1.5,2.0]",
     "z=3,dtype=complex128", "w=3,grad=false", "x=4x4,domain=spd", "x=3,value=[inf, 1, -inf]",
     "x=3,domain=open-interval,lo=0,hi=inf"],
)  # fmt: skip
def test_as_flag_gives_the_same_input_again(text):
    spec = parse_input(text)
    again = parse_input(shlex.split(spec.as_flag())[1])
    assert again == spec
    assert (build([again], seed=3)[0].value == build([spec], seed=3)[0].value).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "expected NAME="),
        ("", "expected NAME="),
        ("x=", "nothing follows"),
        ("=3", "not a parameter name"),
        ("3x=4", "not a parameter name"),
        ("x=3,4", "3x4"),
        ("x=-3", "negative"),
        ("x=(3,4)", "write the shape as 3x4"),
        ("x=[]", "write the shape as scalar"),
        ("x=[[1,2],[3,4]]", "then the values, as in 2x3,value="),
        ("x=[0.5,-1.5]", "then the values, as in 2x3,value="),
        ("x=3X4", "not a shape"),
        ("x=None", "-a"),
        ("x=3.5", "not a shape"),
        ("x=3,dtyp=float32", "did you mean 'dtype'"),
        ("x=3,dtype=flot32", "did you mean 'float32'"),
        ("x=3,domain=normall", "did you mean 'normal'"),
        ("x=3,domain=open-interval(1)", "two bounds"),
        ("x=3,domain=open-interval(a,b)", "must be numbers"),
        ("x=3,domain=spd:3", "only npz takes a path"),
        ("x=3,high=4", "belongs to indices"),
        ("x=3,grad=maybe", "true or false"),
        ("x=3,domain=indices,high=2.5", "whole number"),
        ("x=3,domain=indices,high=True", "whole number"),
        ("x=3,domain=uniform,lo=__import__('os')", "not a number"),
        ("x=3,dtype=float32,dtype=float64", "given twice"),
        ("x=3,dtype=", "nothing follows dtype="),
        ("x=3,,", "expected key=value"),
    ],
)
def test_a_wrong_input_flag_is_shown_with_what_is_wrong(text, message):
    with pytest.raises(UsageError) as caught:
        parse_input(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"-i {text}: ")


@pytest.mark.parametrize(
    ("text", "value"),
    [("dim=-1", -1), ("bias=None", None), ("mode='sum'", "sum"), ("size=(2, 2)", (2, 2)), ("eps=1e-6", 1e-6),
     ("flag=True", True), ("a=[1, [2]]", [1, [2]]), ("t='a=b'", "a=b"), ("k=inf", math.inf), ("k=-inf", -math.inf),
     ("k=(1e400, 1)", (math.inf, 1)), ("s='inf'", "inf"), ("z=1+infj", complex(1, math.inf))],
)  # fmt: skip
def test_arguments_are_python_literals(text, value):
    spec = parse_argument(text)
    assert spec.kind == "value"
    assert spec.value == value
    assert type(spec.value) is type(value)


@pytest.mark.parametrize("value", [math.nan, -math.inf, (1.0, math.nan), complex(math.nan, math.inf)], ids=repr)
def test_a_value_that_a_report_shows_can_be_given(value):
    shown = InputSpec(name="k", kind="value", value=value).as_flag()
    assert repr(parse_argument(shlex.split(shown)[1]).value) == repr(value)


def test_a_tensor_with_a_nan_that_a_report_shows_can_be_given():
    spec = parse_input("x=3,value=[nan, 1, 2]")
    assert parse_input(shlex.split(spec.as_flag())[1]).as_flag() == spec.as_flag()
    assert np.isnan(build([spec], seed=0)[0].value[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k=infinity", "quote a string"),
        ("k=inf()", "not a Python literal"),
        ("mode=sum", "-a \"mode='sum'\""),
        ("bias=none", "did you mean None"),
        ("flag=true", "did you mean True"),
        ("f=print('x')", "not a Python literal"),
        ("f=__import__('os').system('true')", "not a Python literal"),
        ("f=" + "(" * 5000, "not a Python literal"),
        ("f='open", "not a Python literal"),
        ("f", "expected NAME="),
        ("f=", "nothing follows"),
        ("1=2", "not a parameter name"),
    ],
)
def test_a_wrong_argument_flag_says_how_to_write_it(text, message):
    with pytest.raises(UsageError) as caught:
        parse_argument(text)
    assert message in str(caught.value)


FRAGMENTS = st.lists(
    st.sampled_from(
        ["x", "=", ",", "3", "x4", "domain", "spd", "(", ")", "[", "]", ":", "grad", "value", "1e9", "é", "'"]
    )
    | st.text(max_size=3),
    max_size=10,
)


@given(FRAGMENTS)
@example(["x=", "9" * 5000])
@settings(max_examples=300, deadline=None)
def test_no_text_at_all_raises_anything_but_a_usage_error(fragments):
    text = "".join(fragments)
    for parse in (parse_input, parse_argument):
        with contextlib.suppress(UsageError):
            assert parse(text).name
