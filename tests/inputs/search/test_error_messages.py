"""What the search learns from errors of forward, and what it says where nothing fits."""

import inspect
import re
from collections.abc import Callable

import numpy as np
import pytest

from gradcli.errors import InputsNotFoundError, OverrunError
from gradcli.inputs.search.error_messages import size_pairs
from gradcli.inputs.search.inference import infer
from gradcli.inputs.search.not_found import functions_called
from tests.programs import plain_functions as plain


def test_where_nothing_fits_the_error_says_what_was_tried_and_what_to_give():
    def impossible(items, count):
        return (items + "key").missing(count)

    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(impossible), plain.attempt_of(impossible), budget_tries=500)
    text = str(caught.value)
    assert "impossible" in text
    assert "tried 500 sets" in text
    assert "-i items=3x4 -a count=2" in text
    assert "Error" in text


def test_a_target_without_arguments_is_told_from_one_whose_inputs_are_not_found():
    def make():
        return np.sin

    with pytest.raises(InputsNotFoundError, match="make takes no arguments, so it has no gradient") as caught:
        infer(plain.info_of(make), plain.attempt_of(make))
    assert "assign it to a name in the module" in str(caught.value)


def by_keys(batch, scale, k=2):
    return batch["x"] * scale + batch["x"] * batch["y z"]


def joined(xs):
    raise TypeError("cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")


def operator(n, xs):
    raise RuntimeError("my::op() Expected a value of type 'List[Tensor]' for argument 'xs' but instead found 'Tensor'.")


@pytest.mark.parametrize(
    ("forward", "name", "given"),
    [
        (by_keys, "batch", '({"x": x, "y z": x}, scale)'),
        (joined, "xs", "([x, y],)"),
        (operator, "xs", "(n, [x, y])"),
    ],
)
def test_a_container_of_tensors_is_to_be_given_from_python_and_not_by_a_flag(forward, name, given):
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(forward), plain.attempt_of(forward), budget_tries=200)
    assert f"forward expects a list, tuple or dict for {name}" in str(caught.value)
    assert f"gradcli.check(target, {given})" in str(caught.value)
    assert "-i " not in str(caught.value)


def test_a_dict_is_not_searched_for_long():
    with pytest.raises(InputsNotFoundError, match=r"tried 150 sets"):
        infer(plain.info_of(by_keys), plain.attempt_of(by_keys))


def test_the_most_informative_error_is_the_one_that_came_farthest():
    def picky(x):
        if x.ndim != 2:
            raise ValueError("first")
        y = x + 1
        z = y * 2
        raise RuntimeError("deep inside", z.shape[:0])

    with pytest.raises(InputsNotFoundError, match=r"RuntimeError: .*deep inside"):
        infer(plain.info_of(picky), plain.attempt_of(picky), budget_tries=500)


def test_an_input_that_does_not_matter_is_not_accepted():
    def ignores(x, unused):
        return x * 2 if np.ndim(unused) == 2 and unused.shape == (7, 7, 7) else x * np.sum(unused) * 0

    with pytest.raises(InputsNotFoundError):
        infer(plain.info_of(ignores), plain.attempt_of(ignores), budget_tries=800)


def test_no_outputs_and_no_arguments_are_no_inputs():
    def nothing():
        return 3

    with pytest.raises(InputsNotFoundError):
        infer(plain.info_of(nothing), plain.attempt_of(nothing))


@pytest.mark.parametrize(
    ("message", "pair"),
    [
        ("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)", (4, 5)),
        ("shapes (3,4) and (5,6) not aligned: 4 (dim 1) != 5 (dim 0)", (4, 5)),
        ("mismatch in its core dimension 0 (size 5 is different from 4)", (5, 4)),
        ("The size of tensor a (4) must match the size of tensor b (5) at non-singleton dimension 1", (4, 5)),
        ("operands could not be broadcast together with shapes (3,4) (7,) ", (4, 7)),
        ("expected input[3, 4, 5] to have 7 channels, but got 4 channels instead", (7, 4)),
    ],
)
def test_messages_tell_which_sizes_should_be_equal(message, pair):
    _, one, other = min(size_pairs(message))
    assert {one, other} == set(pair)


def with_constants(items, normalized_shape, count: int, keepdim, rate: float | None):
    raise ValueError("never")


def of_many(*items):
    raise ValueError("never")


def documented(x, w, p, other):
    """x: (m, n) with m >= n, w: (m,), p: (2 * n, 2)"""
    raise ValueError("never")


def late(c):
    """c: (3, 4)"""
    raise OverrunError("stopped after 10 s at solver.py:7", phase="inference of inputs")


def test_a_forward_that_takes_long_is_to_be_given_inputs():
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(late), plain.attempt_of(late), budget_tries=300)
    assert "closest attempt: forward was stopped after 10 s at solver.py:7\n" in str(caught.value)
    assert "if forward takes that long, give the inputs" in str(caught.value)
    assert "give the inputs: -i c=3x4 (" in str(caught.value)


@pytest.mark.parametrize(
    ("forward", "flags"),
    [
        (with_constants, "-i items=3x4 -a 'normalized_shape=(4,)' -a count=2 -a keepdim=True -a rate=0.3 (a tensor"),
        (of_many, "-i 'items[0]=3x4' (a tensor"),
        (documented, "-i x=4x3 -i w=4 -i p=6x2 -i other=3x4 (a tensor"),
    ],
)
def test_what_is_no_tensor_by_its_name_or_annotation_is_to_be_given_by_the_other_flag(forward, flags):
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(forward), plain.attempt_of(forward), budget_tries=300)
    assert f"give the inputs: {flags}" in str(caught.value)


def mapped(run, x):
    return run(x)


def test_a_function_among_the_arguments_is_to_be_given_in_python_and_not_searched_for_long():
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(mapped), plain.attempt_of(mapped))
    text = str(caught.value)
    assert "forward calls run, and no flag gives a function" in text
    assert "sample_inputs" in text
    assert "gradcli.check(target, (run, x))" in text
    tried = re.search(r"tried ([\d,]+) sets", text)
    assert tried is not None
    assert int(tried[1].replace(",", "")) < 200


def test_an_argument_that_names_a_function_is_searched_for():
    def applied(x, act):
        act = {"tanh": np.tanh}.get(act, np.exp)
        return act(x)

    assert functions_called(plain.info_of(applied), ["x", "act"]) == []
    assert functions_called(plain.info_of(mapped), ["run", "x"]) == ["run"]


def summed(rule, low, high):
    return (high - low) * rule(low + (high - low) * np.linspace(0, 1, 9)).mean()


class Rules:
    @staticmethod
    def doubled(x, of):
        return 2 * summed(of, x, high=x + 1)


def integrated(f, a, b):
    return summed(f, a, high=b)


def integrated_twice(x, f: np.ndarray, size):
    return Rules.doubled(x, of=f) * size


def layered(x, layer):
    return x + layer.forward(x)


def passed_on(solve: Callable[[float], float], x, scale: "np.ndarray"):
    return np.vectorize(solve)(x) * scale


@pytest.mark.parametrize(
    ("forward", "called"), [(integrated, "f"), (integrated_twice, "f"), (layered, "layer"), (passed_on, "solve")]
)
def test_a_function_that_is_called_elsewhere_or_a_module_is_found(forward, called):
    assert functions_called(plain.info_of(forward), list(inspect.signature(forward).parameters)) == [called]
    with pytest.raises(InputsNotFoundError, match=f"forward calls {called}, and no flag gives a function or a module"):
        infer(plain.info_of(forward), plain.attempt_of(forward))


def test_what_a_helper_makes_a_function_of_is_searched_for():
    def named(x, f):
        f = {"sin": np.sin}.get(f, np.cos)
        return f(x)

    def shown(x, f):
        return named(x, f)

    assert functions_called(plain.info_of(shown), ["x", "f"]) == []


def centred(x, normalized_shape):
    axes = tuple(range(-len(normalized_shape), 0))
    return x - x.mean(axes, keepdims=True)


def centred_strictly(x, normalized_shape):
    if x.shape[-len(normalized_shape) :] != tuple(normalized_shape):
        raise ValueError(f"expected input with shape [*, {normalized_shape}], but got {x.shape}")
    return centred(x, normalized_shape)


@pytest.mark.parametrize("forward", [centred, centred_strictly])
def test_the_shape_that_is_normalised_is_a_tuple_of_the_last_sizes(forward):
    assert infer(plain.info_of(forward), plain.attempt_of(forward)).as_flags() == "-i x=3x4 -a 'normalized_shape=(4,)'"


def refusing_a_form(q_, c):
    raise ValueError("q is not SPD")


def refusing_a_kernel(kernel, points):
    raise ValueError("expected a positive definite kernel")


def refusing_unnamed(a, b):
    raise ValueError("the input is not positive-definite")


@pytest.mark.parametrize(
    ("forward", "flags"),
    [
        (refusing_a_form, "-i q_=3x3,domain=spd -i c=3x4 (a tensor"),
        (refusing_a_kernel, "-i kernel=3x3,domain=spd -i points=3x4 (a tensor"),
        (refusing_unnamed, "-i a=3x4 -i b=3x4 (a tensor"),
    ],
)
def test_what_is_said_to_be_no_definite_matrix_is_to_be_given_as_one(forward, flags):
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(forward), plain.attempt_of(forward), budget_tries=200)
    assert f"give the inputs: {flags}" in str(caught.value)
