"""Inference finds inputs that forward accepts, rich enough that a mistake cannot hide in them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from gradcli.cases import InputSpec
from gradcli.errors import InputsNotFoundError, UsageError
from gradcli.inputs.builders import build
from gradcli.inputs.flags import parse_argument, parse_input
from gradcli.inputs.search.budget import GUARANTEED_TRIES
from gradcli.inputs.search.error_messages import size_pairs
from gradcli.inputs.search.inference import infer
from gradcli.targets import TargetInfo, Trial
from tests.programs import plain_functions as plain

EXPECTED = {
    "linear": "-i input=3x4 -i weight=5x4 -i bias=5",
    "mul_constant": "-i tensor=3x4 -a constant=2.5",
    "relu": "-i input=3x4",
    "matmul": "-i a=3x4 -i b=4x5",
    "mm": "-i a=3x4 -i b=4x5",
    "bmm": "-i a=3x4x5 -i b=3x5x2",
    "outer": "-i a=3 -i b=4",
    "add": "-i x=3x4 -i y=3x4",
    "divide": "-i a=3x4 -i b=3x4",
    "softmax": "-i x=3x4 -a dim=-1",
    "layer_norm": "-i x=3x4 -i weight=4 -i bias=4",
    "embedding": "-i weight=3x4 -i idx=5,domain=indices,high=3",
    "cross_entropy": "-i logits=3x4 -i target=3,domain=indices,high=4",
    "where": "-i mask=3x4,domain=boolean -i a=3x4 -i b=3x4",
    "cumsum": "-i x=3x4 -a dim=-1",
    "norm": "-i x=3x4",
    "log": "-i x=3x4,domain=positive",
    "sqrt": "-i x=3x4,domain=positive",
    "acosh": "-i x=3x4,domain=open-interval,lo=1.2,hi=3.0",
    "atanh": "-i x=3x4,domain=open-interval,lo=-1.0,hi=1.0",
    "log_of_minus": "-i x=3x4,domain=open-interval,lo=-3.0,hi=-0.1",
    "cholesky": "-i a=3x3,domain=spd",
    "inverse": "-i a=3x3",
    "total": "-i 'tensors[0]=3x4' -i 'tensors[1]=3x4'",
    "flagged": "-i x=3x4 -a transposed=True",
    "reduced": "-i x=3x4 -i target=3x4",
    "keyworded": "-i x=3x4 -i scale=3x4",
    "scalar_loss": "-i prediction=3x4 -i target=3x4",
    "dot": "-i a=3 -i b=3",
    "complex_abs": "-i z=3x4",
    "bilinear": "-i x=3x4 -i y=3x5 -i weight=2x4x5",
    "labelled_rows": "-i scores=3x4 -i labels=3,domain=indices,high=4",
    "labels_after_a_product": "-i W=3x4 -i X=5x3 -i y=5,domain=indices,high=4",
    "distances": "-i x=3x4 -i y=5x4",
    "table": "-i x=3 -i y=4",
}
ALSO_FOUND = ("gather", "conv1d", "conv2d", "solve", "clamp", "power")


def inferred(name, **options):
    function = getattr(plain, name)
    return infer(plain.info_of(function), plain.attempt_of(function), **options)


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


def test_a_constant_is_never_one_or_zero():
    (_, constant) = inferred("mul_constant").specs
    assert constant.value not in (0, 1)


def test_a_domain_is_noted_because_it_narrows_what_is_checked():
    assert "positive" in inferred("log").notes[0]
    assert inferred("relu").notes == ()


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


def test_the_same_seed_finds_the_same_inputs():
    assert inferred("gather").specs == inferred("gather").specs


def test_the_search_is_quick():
    seconds = sorted(inferred(name).seconds for name in [*EXPECTED, *ALSO_FOUND])
    assert seconds[len(seconds) // 2] < 0.1


def test_where_nothing_fits_the_error_says_what_was_tried_and_what_to_give():
    def impossible(items, count):
        return (items + "key").missing(count)

    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(impossible), plain.attempt_of(impossible), budget_tries=500)
    text = str(caught.value)
    assert "impossible" in text
    assert "tried 500 sets" in text
    assert "-i items=3x4 -i count=3x4" in text
    assert "Error" in text


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


@pytest.fixture
def slow_clock(monkeypatch):
    """A machine so busy that an hour passes between any two looks at the clock."""
    hours = itertools.count()
    monkeypatch.setattr("gradcli.inputs.search.budget.time.perf_counter", lambda: 3600.0 * next(hours))


@pytest.mark.parametrize("name", ["linear", "layer_norm", "cross_entropy", "bilinear"])
def test_a_busy_machine_finds_the_same_inputs(name, slow_clock):
    assert inferred(name).as_flags() == EXPECTED[name]


def test_the_limit_of_time_leaves_a_guaranteed_number_of_tries_and_is_told(slow_clock):
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(never), plain.attempt_of(never), limit_seconds=7)
    assert f"tried {GUARANTEED_TRIES} sets" in str(caught.value)
    assert "stopped at its time limit of 7 s" in str(caught.value)


def test_without_a_busy_machine_tries_alone_end_the_search():
    with pytest.raises(InputsNotFoundError) as caught:
        infer(plain.info_of(never), plain.attempt_of(never), budget_tries=700)
    assert "tried 700 sets" in str(caught.value)
    assert "limit of" not in str(caught.value)


def never(first, second):
    raise RuntimeError(f"sizes {np.shape(first)} and {np.shape(second)} do not fit")


def test_each_number_of_variadic_arguments_has_its_turn_early():
    def three(*parts):
        first, second, third = parts
        return first * second + third

    found = infer(plain.info_of(three), plain.attempt_of(three))
    assert [spec.shape for spec in found.specs] == [(3, 4)] * 3
    assert found.tries < 1000


def test_a_number_that_must_be_a_tensor_is_one_without_a_gradient():
    def saves(x, alpha):
        if not isinstance(alpha, np.ndarray):
            raise TypeError("save_for_backward can only save variables, but argument 1 is of type float")
        return x * 1

    assert infer(plain.info_of(saves), plain.attempt_of(saves)).as_flags() == "-i x=3x4 -i alpha=scalar,grad=false"


def test_a_tensor_that_changes_no_output_is_a_number_for_backward():
    def reverse(x, strength):
        return x + 0 * np.ndim(strength)

    def backward(ctx, grad_output):
        return grad_output * ctx.strength, grad_output

    found = infer(plain.info_of(reverse, backward), plain.attempt_of(reverse))
    assert found.as_flags() == "-i x=3x4 -i strength=scalar,grad=false"


def test_a_factor_that_must_be_a_tensor_has_a_gradient():
    def saves(x, alpha):
        if not isinstance(alpha, np.ndarray):
            raise TypeError("save_for_backward can only save variables, but argument 1 is of type float")
        return x * alpha

    assert infer(plain.info_of(saves), plain.attempt_of(saves)).as_flags() == "-i x=3x4 -i alpha=3x4"


def test_defaults_are_given_where_backward_counts_on_them():
    def scaled(x, scale=2.0, axis=-1):
        return x * scale

    def attempt_backward(arguments):
        trial = plain.attempt_of(scaled)(arguments)
        failed = None if len(arguments) == 3 else IndexError("tuple index out of range")
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=failed)

    found = infer(plain.info_of(scaled), plain.attempt_of(scaled), attempt_backward=attempt_backward)
    assert found.as_flags() == "-i x=3x4 -a scale=2.0 -a axis=-1"
    assert found.notes == (
        "forward also accepts -i x=3x4, but backward fails for these inputs, so they are not checked",
    )


def contrasted(q, k):
    return (q @ k.T)[np.arange(len(q)), np.arange(len(q))]


def contrasted_backward(message):
    def attempt_backward(arguments):
        q, k = (argument.value for argument in arguments)
        trial = plain.attempt_of(contrasted)(arguments)
        failed = None if q.shape == k.shape else RuntimeError(message.format(len(k), len(q)))
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=failed)

    return infer(plain.info_of(contrasted), plain.attempt_of(contrasted), attempt_backward=attempt_backward)


def test_sizes_are_equal_where_backward_asks_for_it():
    found = contrasted_backward("The size of tensor a ({}) must match the size of tensor b ({})")
    (rows, columns), other = (spec.shape for spec in found.specs)
    assert (rows, columns) == other
    assert rows != columns
    assert "but backward fails for these inputs, so they are not checked" in found.notes[0]


def test_sizes_stay_different_where_the_framework_refuses_the_gradient():
    refused = "returned an invalid gradient at index 0 - got [{}, 4] but expected shape compatible with [{}, 4]"
    one, other = (spec.shape for spec in contrasted_backward(refused).specs)
    assert one != other


def test_an_exchange_of_gradients_does_not_lead_to_inputs_of_other_ranks():
    def hinge(pos, neg):
        return np.mean(np.maximum(1 - pos[:, None] + neg[None], 0))

    def attempt_backward(arguments):
        pos, neg = (argument.value for argument in arguments)
        refused = (
            f"invalid gradient at index 1 - got {list(pos.shape)} but expected shape compatible with {list(neg.shape)}"
        )
        failed = RuntimeError(f"HingeBackward returned an {refused}") if pos.ndim == neg.ndim == 1 else None
        return Trial(outputs=plain.attempt_of(hinge)(arguments).outputs, differentiable=(True,), backward_error=failed)

    found = infer(plain.info_of(hinge), plain.attempt_of(hinge), attempt_backward=attempt_backward)
    right = infer(plain.info_of(hinge), plain.attempt_of(hinge))
    assert found.specs == right.specs


@pytest.mark.parametrize(("default", "tried"), [(-1, True), (1, True), (0, False), (2.0, False)])
def test_an_axis_that_defaults_to_the_last_is_also_the_first(default, tried):
    def summed(x, dim=default):
        return x.sum(int(dim) % 2) ** 2

    found = infer(plain.info_of(summed), plain.attempt_of(summed))
    others = [specs[-1].value for specs in found.alternatives if specs[-1].name == "dim"]
    assert others == ([0] if tried else [])


def test_defaults_are_left_out_where_backward_fails_with_them_too():
    def scaled(x, scale=2.0):
        return x * scale

    def attempt_backward(arguments):
        trial = plain.attempt_of(scaled)(arguments)
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=ValueError("never"))

    found = infer(plain.info_of(scaled), plain.attempt_of(scaled), attempt_backward=attempt_backward)
    assert found.as_flags() == "-i x=3x4"


@pytest.mark.parametrize("count", [4, 12])
def test_many_tensors_of_one_shape_are_found(count):
    def total(*values):
        return sum(one * other for one, other in zip(values[::2], values[1::2], strict=True))

    names = [f"x{number}" for number in range(1, count + 1)]
    scope = {"total": total}
    exec(f"def products({', '.join(names)}):\n    return total({', '.join(names)})", scope)
    found = infer(plain.info_of(scope["products"]), plain.attempt_of(scope["products"]))
    assert [(spec.name, spec.shape) for spec in found.specs] == [(name, (3, 4)) for name in names]


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


def test_a_forward_that_writes_into_its_input_spoils_nothing():
    def in_place(x, y):
        x *= 2
        return x + y

    found = infer(plain.info_of(in_place), plain.attempt_of(in_place))
    assert [spec.shape for spec in found.specs] == [(3, 4), (3, 4)]


def test_backward_breaks_a_tie_and_never_more():
    def attempt_backward(arguments):
        trial = plain.attempt_of(plain.relu)(arguments)
        failed = ValueError("vectors only") if arguments[0].value.ndim != 1 else None
        return Trial(outputs=trial.outputs, differentiable=(True,), backward_error=failed)

    found = infer(plain.info_of(plain.relu), plain.attempt_of(plain.relu), attempt_backward=attempt_backward)
    assert found.specs == (InputSpec(name="input", shape=(3,)),)
    assert found.notes == (
        "forward also accepts -i input=3x4, but backward fails for these inputs, so they are not checked",
    )


def test_a_target_without_python_source_is_inferred_too():
    function = np.exp
    info = TargetInfo(
        name="exp", backend="numpy", forward=None, backward=None,
        parameters=plain.info_of(plain.relu).parameters,
    )  # fmt: skip
    assert infer(info, plain.attempt_of(function)).as_flags() == "-i input=3x4"


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


@pytest.mark.parametrize(
    ("got", "expected"), [([3, 20], "-i gates=3x20 -i c=3x5"), ([3, 5], "-i gates=3x4 -i c=3x5")], ids=["own", "other"]
)
def test_an_axis_is_as_long_as_backward_has_it_unless_that_is_another_input(got, expected):
    def forward(gates, c):
        parts = np.split(gates, 4, axis=-1)
        return parts[0] * c + parts[1] * parts[2] * parts[3]

    def backward(arguments):
        trial = plain.attempt_of(forward)(arguments)
        shape = list(np.shape(arguments[0].value))
        if not trial.ok or shape == got:
            return replace(trial, gradients=(np.ones(1), np.ones(1)))
        text = f"F returned an invalid gradient at index 0 - got {got} but expected shape compatible with {shape}"
        return replace(trial, backward_error=RuntimeError(text))

    found = infer(plain.info_of(forward), plain.attempt_of(forward), attempt_backward=backward)
    assert found.as_flags() == expected


def test_what_a_function_is_called_is_no_call_in_its_body():
    def outer(x, b):
        return np.sin(x + b)

    def plainly(x, b):
        return np.sin(x + b)

    found = [infer(plain.info_of(each), plain.attempt_of(each)).as_flags() for each in (outer, plainly)]
    assert found[0] == found[1]
