"""Arguments reach forward in the order of its signature, whatever order they were given in."""

import pytest

from gradcli.errors import UsageError
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.inputs.signature import arrange

from . import plain_functions as plain


def arranged(function, *flags):
    specs = [parse_argument(f[3:]) if f.startswith("-a ") else parse_input(f) for f in flags]
    return [
        (a.name, a.value if not a.is_tensor else "tensor", a.keyword)
        for a in arrange(build(specs, seed=0), plain.info_of(function))
    ]


def test_order_does_not_matter():
    assert [name for name, _, _ in arranged(plain.linear, "weight=5x4", "bias=5", "input=3x4")] == [
        "input",
        "weight",
        "bias",
    ]


def test_a_gap_takes_the_default_and_the_end_stays_open():
    def function(x, scale=2, offset=3, last=4):
        return x

    assert arranged(function, "-a offset=9", "x=2") == [
        ("x", "tensor", False),
        ("scale", 2, False),
        ("offset", 9, False),
    ]


def test_keyword_only_arguments_are_marked():
    assert arranged(plain.keyworded, "scale=3", "x=3") == [("x", "tensor", False), ("scale", "tensor", True)]


def test_variadic_arguments_keep_their_order():
    assert [name for name, _, _ in arranged(plain.total, "b=2", "a=2")] == ["b", "a"]


def test_a_wrong_name_and_a_missing_one_are_refused():
    with pytest.raises(UsageError, match="did you mean 'weight'"):
        arranged(plain.linear, "input=2x2", "weigth=2x2")
    with pytest.raises(UsageError, match="needs weight: give -i weight=3x4"):
        arranged(plain.linear, "input=2x2")
