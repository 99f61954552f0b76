"""A failure shrinks to something small and simple that still fails, in the same way every time."""

import numpy as np
import pytest

from gradcli.cases import Argument
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.inputs.shrinking import as_code, shrink


def arguments(*texts):
    return build([parse_input(text) for text in texts], seed=0)


def test_axes_of_one_size_shrink_together():
    def still_fails(given):
        x, weight, bias = (each.value for each in given)
        return x.shape[1] == weight.shape[1] and weight.shape[0] == bias.shape[0] and (x @ weight.T + bias).size > 0

    small = shrink(arguments("input=20x4", "weight=30x4", "bias=30"), still_fails)
    assert [each.value.shape for each in small] == [(1, 1), (1, 1), (1,)]
    assert as_code(small) == ("input = [[0.0]]", "weight = [[0.0]]", "bias = [0.0]")


def test_axes_of_a_multiple_shrink_with_the_size_that_they_are_a_multiple_of():
    """Four gates, and axes that are flattened."""

    def gates(given):
        x, h, wide = (each.value.shape for each in given)
        return wide == (x[1], 4 * h[1]) and x[0] == h[0]

    def flattened(given):
        x, weight = (each.value.shape for each in given)
        return weight[0] == x[1] * x[2] * x[3]

    small = shrink(arguments("x=3x4", "h=3x5", "wide=4x20"), gates)
    assert [each.value.shape for each in small] == [(1, 1), (1, 1), (1, 4)]
    small = shrink(arguments("x=8x3x5x2", "weight=30x4"), flattened)
    assert [each.value.shape for each in small] == [(1, 1, 1, 1), (1, 1)]


def test_rows_and_their_labels_stay_of_one_number():
    """A forward that counts the labels takes fewer of them than rows, which are no inputs that it is meant for."""

    def picks(given):
        x, labels = (each.value for each in given)
        fits = len(labels) <= len(x) and labels.max(initial=0) < x.shape[1]
        return fits and x[np.arange(len(labels)), labels].size > 0 and len(x) >= least

    for least in (1, 2):
        x, labels = shrink(arguments("x=3x4", "labels=3,domain=indices,high=4"), picks)
        assert (x.value.shape, labels.value.shape) == ((least, 1), (least,))


def test_equal_axes_of_one_tensor_may_become_different():
    (x,) = shrink(arguments("x=3x3"), lambda given: given[0].value.shape[1] >= 2)
    assert x.value.shape == (1, 2)


def test_square_matrices_stay_square():
    (x,) = shrink(arguments("x=3x3,domain=spd"), lambda given: given[0].value.shape[1] >= 2)
    assert x.value.shape == (2, 2)


def test_indices_stay_valid_where_a_multiple_is_cut():
    def still_fails(given):
        table, index = (each.value for each in given)
        return table.shape[0] % 2 == 0 and bool((index < table.shape[0]).all())

    table, index = shrink(arguments("table=8x4", "index=4,domain=indices,high=8"), still_fails)
    assert still_fails((table, index))


def test_values_become_simple_only_where_the_failure_allows():
    def still_fails(given):
        return bool((given[0].value < -0.3).any())

    assert as_code(shrink(arguments("x=3x4"), still_fails)) == ("x = [[-1.0]]",)


def test_a_threshold_leaves_a_short_decimal():
    def still_fails(given):
        return bool((given[0].value > 2.2).any())

    start = (Argument(name="x", value=np.array([0.1, 2.345678]), is_tensor=True, requires_grad=True),)
    (small,) = shrink(start, still_fails)
    assert small.value.tolist()[-1] in (2.3, 2.35)


def test_what_shrinks_still_fails_and_the_start_is_untouched():
    start = arguments("x=6x5")
    before = start[0].value.copy()

    def still_fails(given):
        given[0].value[...] += 0.0
        return given[0].value.shape[0] >= 3

    small = shrink(start, still_fails)
    assert still_fails(small)
    assert small[0].value.shape == (3, 1)
    assert np.array_equal(start[0].value, before)


def test_the_result_is_deterministic():
    def still_fails(given):
        return abs(given[0].value.sum()) > 0.7

    assert as_code(shrink(arguments("x=7x3"), still_fails)) == as_code(shrink(arguments("x=7x3"), still_fails))


def test_gradient_flags_dtypes_and_constants_are_kept():
    start = (*arguments("x=4,grad=false,dtype=float32"), *build([parse_argument("dim=-1")], seed=0))
    small = shrink(start, lambda given: True)
    assert not small[0].requires_grad
    assert small[0].value.dtype == np.float32
    assert small[1].value == -1


def test_values_stay_inside_their_domain():
    texts = ("p=3,domain=positive", "u=3,domain=unit", "o=3,domain=open-interval(2,3)", "d=4,domain=distinct",
             "h=2x3,domain=one-hot", "i=4,domain=indices,high=3", "s=3x3,domain=spd", "b=4,domain=binary",
             "r=4,domain=pointers,high=9")  # fmt: skip
    p, u, o, d, h, i, s, b, pointers = (each.value for each in shrink(arguments(*texts), lambda given: True))
    assert (p > 0).all()
    assert ((u > 0) & (u < 1)).all()
    assert ((o > 2) & (o < 3)).all()
    assert np.unique(d).size == d.size
    assert (h.sum(-1) == 1).all()
    assert (i >= 0).all()
    assert np.isin(b, (0, 1)).all()
    assert (np.diff(pointers) >= 0).all()
    assert np.linalg.eigvalsh(s).min() > 0


@pytest.mark.parametrize("least", [1, 2, 3])
def test_probabilities_sum_to_one_at_every_size(least):
    tried = []

    def still_fails(given):
        tried.append(given[0].value)
        return given[0].value.shape[-1] >= least

    (small,) = shrink(arguments("t=3x5,domain=simplex"), still_fails)
    assert small.value.shape == (1, least)
    assert all(np.allclose(value.sum(-1), 1, rtol=0, atol=1e-12) for value in tried)
    assert all((value > 0).all() for value in tried if value.shape[-1] > 1)


def test_indices_follow_the_axis_they_point_into():
    def still_fails(given):
        weight, index = given[0].value, given[1].value
        return index.max() < weight.shape[0]

    weight, index = shrink(arguments("weight=6x2", "index=5,domain=indices,high=6"), still_fails)
    assert weight.value.shape == (1, 1)
    assert index.value.tolist() == [0]


def test_nothing_is_lost_when_nothing_smaller_fails():
    start = arguments("x=3x2")
    assert shrink(start, lambda given: False) == start


def test_code_can_be_pasted():
    values = [
        Argument(name="x", value=np.array([[1.0, np.nan], [np.inf, -2.5]]), is_tensor=True),
        Argument(name="z", value=np.array([1 + 2j]), is_tensor=True),
        Argument(name="e", value=np.zeros((0, 3)), is_tensor=True),
        Argument(name="i", value=np.array(3), is_tensor=True),
        Argument(name="mode", value="sum", is_tensor=False),
    ]
    names: dict[str, object] = {"numpy": np}
    for line in as_code(values):
        exec(line, names)
    assert np.array_equal(np.array(names["x"]), values[0].value, equal_nan=True)
    assert names["z"] == [1 + 2j]
    assert names["e"].shape == (0, 3)
    assert (names["i"], names["mode"]) == (3, "sum")


def test_a_long_tensor_is_described_instead_of_pasted():
    (line,) = as_code([Argument(name="x", value=np.zeros((100, 50), np.float32), is_tensor=True)])
    assert line == "x = <float32 of shape (100, 50), too long to print>"


def test_the_budget_ends_the_search():
    calls = []

    def still_fails(given):
        calls.append(len(given))
        return True

    shrink(arguments("x=100x100"), still_fails, budget_seconds=0.0)
    assert calls == []
