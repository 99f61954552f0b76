"""Inputs are drawn inside their domain, reproducibly, away from kinks, with the dtype asked for."""

import numpy as np
import pytest

from gradcli.cases import DTYPES, InputSpec
from gradcli.errors import UsageError
from gradcli.inputs.builders import build
from gradcli.inputs.domains import DOMAINS
from gradcli.inputs.flags import parse_input
from gradcli.spec import model


def drawn(text, **settings):
    (argument,) = build([parse_input(text)], **{"seed": 0, **settings})
    return argument.value


def test_the_same_seed_and_name_give_the_same_numbers_in_any_order():
    x, y = parse_input("x=3x4"), parse_input("y=3x4")
    first, second = build([x, y], seed=7), build([y, x], seed=7)
    assert np.array_equal(first[0].value, second[1].value)
    assert np.array_equal(first[1].value, second[0].value)


def test_seed_sample_and_name_each_change_the_numbers():
    base = drawn("x=3x4", seed=1)
    assert not np.array_equal(base, drawn("x=3x4", seed=2))
    assert not np.array_equal(base, drawn("x=3x4", seed=1, sample=1))
    assert not np.array_equal(base, drawn("y=3x4", seed=1))


@pytest.mark.parametrize("seed", [-1, 0, 2**70])
def test_any_whole_number_is_a_seed(seed):
    assert np.isfinite(drawn("x=3", seed=seed)).all()


def test_normal_numbers_stay_away_from_zero_and_print_short():
    values = drawn("x=100000")
    assert np.abs(values).min() >= 1e-3
    assert np.array_equal(values, np.round(values, 6))


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("x=1000,domain=uniform", -1, 1),
        ("x=1000,domain=uniform,lo=2,hi=3", 2, 3),
        ("x=1000,domain=positive", 0, 2),
        ("x=1000,domain=unit", 0, 1),
        ("x=1000,domain=open-interval(-1,1)", -1, 1),
        ("x=1000,domain=open-interval,lo=1e-9,hi=2e-9", 1e-9, 2e-9),
    ],
)
def test_intervals_are_open(text, low, high):
    values = drawn(text)
    assert (values > low).all()
    assert (values < high).all()
    assert values.std() > 0


@pytest.mark.parametrize("width", [1e-7, 1e-19, 1e-300])
def test_a_narrow_interval_around_zero_has_different_numbers(width):
    values = drawn(f"x=1000,domain=open-interval,lo={-width},hi={width}")
    assert np.unique(values).size > 900
    assert np.abs(values).max() < width


@pytest.mark.parametrize("count", [2, 9, 100, 3000])
def test_distinct_numbers_keep_their_distance_and_avoid_zero(count):
    values = np.sort(drawn(f"x={count},domain=distinct"))
    assert np.diff(values).min() > 1e-4
    assert np.abs(values).min() > 1e-4


def test_distinct_numbers_are_in_random_order():
    assert not np.array_equal(drawn("x=50,domain=distinct"), np.sort(drawn("x=50,domain=distinct")))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_spd_is_hermitian_and_positive_definite(dtype):
    matrices = drawn(f"x=2x5x5,domain=spd,dtype={dtype}")
    assert np.array_equal(matrices, np.conj(np.swapaxes(matrices, -1, -2)))
    assert np.linalg.eigvalsh(matrices).min() > 0.1


def test_triangular_is_lower_and_well_conditioned():
    matrix = drawn("x=4x4,domain=triangular")
    assert np.array_equal(matrix, np.tril(matrix))
    assert np.abs(np.diag(matrix)).min() >= 1


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", ["1x1", "4x4", "2x3x3"])
def test_diagonally_dominant_is_well_conditioned_and_not_symmetric(shape, dtype):
    matrices = drawn(f"x={shape},domain=diagonally-dominant,dtype={dtype}")
    assert np.linalg.cond(matrices).max() < 20
    assert (np.linalg.det(matrices).real > 0).all()
    assert shape == "1x1" or not np.allclose(matrices, np.swapaxes(matrices, -1, -2), atol=0.05)


@pytest.mark.parametrize("shape", ["5x3", "3x5", "2x4x4"])
def test_orthogonal_has_orthonormal_columns_or_rows(shape):
    matrix = drawn(f"x={shape},domain=orthogonal")
    gram = np.swapaxes(matrix, -1, -2) @ matrix if matrix.shape[-2] >= matrix.shape[-1] else matrix @ matrix.T
    assert np.allclose(gram, np.eye(gram.shape[-1]))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("shape", ["5", "6x4", "2x3x1", "2x50257"])
def test_simplex_is_positive_and_sums_to_one(shape, dtype):
    drawn_ = drawn(f"x={shape},domain=simplex,dtype={dtype}")
    assert np.abs(drawn_.sum(-1) - 1).max() < (1e-6 if dtype == "float32" else 1e-15)
    assert (drawn_.real > 0).all()
    assert (drawn_.imag == 0).all()


def test_indices_cover_low_up_to_but_not_high():
    values = drawn("i=1000,domain=indices,low=2,high=5")
    assert set(values.tolist()) == {2, 3, 4}
    assert values.dtype == np.int64


def test_one_hot_and_boolean():
    assert (drawn("x=6x4,domain=one-hot").sum(-1) == 1).all()
    for sample in range(20):
        mask = drawn("m=3,domain=boolean", sample=sample)
        assert mask.dtype == np.bool_
        assert mask.any()
        assert not mask.all()
        assert mask.sum() == 2, "a softmax over one entry is constant"
        four = drawn("m=2x2,domain=boolean", sample=sample)
        assert four.sum() == 2, "some masks keep the entries that are False"
        rows = drawn("m=2x5x3,domain=boolean", sample=sample).sum(-1)
        assert set(np.unique(rows)) <= {1, 2}, "a mean over a row without entries is no number"
    assert set(drawn("y=6,domain=binary").tolist()) == {0.0, 1.0}
    assert set(drawn("y=6,domain=binary,dtype=int64").tolist()) == {0, 1}
    pointers = drawn("p=5,domain=pointers,high=7")
    assert pointers.dtype == np.int64
    assert (pointers[0], pointers[-1]) == (0, 7)
    assert (np.diff(pointers) >= 0).all()
    assert drawn("p=4,domain=pointers")[-1] == 4


def test_literal_is_the_value_in_every_sample():
    assert np.array_equal(drawn("x=2x2,value=[[1,2],[3,4.5]]", sample=3), [[1, 2], [3, 4.5]])


def test_npz_reads_a_named_array_and_a_npy_file(tmp_path):
    np.savez(tmp_path / "data.npz", a=np.arange(3.0), b=np.ones((2, 2)))
    np.save(tmp_path / "one.npy", np.arange(4.0))
    assert np.array_equal(drawn(f"x=3,domain=npz:{tmp_path}/data.npz,key=a"), [0, 1, 2])
    assert np.array_equal(drawn(f"x=4,path={tmp_path}/one.npy"), [0, 1, 2, 3])
    with pytest.raises(UsageError, match="arrays a, b; name one by key"):
        drawn(f"x=3,domain=npz:{tmp_path}/data.npz")


def test_npz_never_unpickles(tmp_path):
    np.save(tmp_path / "evil.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UsageError, match=r"cannot be read as \.npz or \.npy: it holds Python objects, not numbers$"):
        drawn(f"x=1,path={tmp_path}/evil.npy")


def test_a_file_of_another_kind_is_refused_without_advice_to_unpickle_it(tmp_path):
    (tmp_path / "code.py").write_text("import os\n")
    with pytest.raises(UsageError, match=r"cannot be read as \.npz or \.npy: it is a file of another kind$"):
        drawn(f"x=1,path={tmp_path}/code.py")


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_drawn(dtype):
    values = drawn(f"x=3x3,dtype={dtype}")
    assert values.dtype == np.dtype("float32" if dtype == "bfloat16" else dtype)
    assert values.shape == (3, 3)


def test_bfloat16_has_eight_bits_of_precision():
    values = drawn("x=100,dtype=bfloat16")
    assert not (values.view(np.uint32) & 0xFFFF).any()


def test_floats_and_complex_require_a_gradient_and_others_do_not():
    texts = ["x=2", "z=2,dtype=complex64", "i=2,domain=indices", "m=2,domain=boolean", "f=2,grad=false"]
    assert [a.requires_grad for a in build([parse_input(t) for t in texts], seed=0)] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_the_runs_dtype_holds_for_floats_only():
    texts = ["x=2", "i=2,domain=indices", "m=2,domain=boolean", "y=2,dtype=float64"]
    built = build([parse_input(t) for t in texts], seed=0, dtype="float32")
    assert [str(a.value.dtype) for a in built] == ["float32", "int64", "bool", "float64"]


def test_a_constant_is_handed_over_as_a_copy():
    spec = InputSpec(name="k", kind="value", value=[1, 2])
    (argument,) = build([spec], seed=0)
    argument.value.append(3)
    assert spec.value == [1, 2]
    assert not argument.is_tensor


def test_empty_and_scalar_shapes():
    assert drawn("x=0x3").shape == (0, 3)
    assert drawn("x=0,domain=distinct").shape == (0,)
    assert drawn("x=scalar").shape == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x=3x4,domain=spd", "square matrix"),
        ("x=3,domain=orthogonal", "needs a matrix"),
        ("x=2,value=[1,2,3]", r"values have shape \[3\]"),
        ("x=2,value=[[1],[2,3]]", "of equal lengths"),
        ("x=2,value=['a','b']", "numbers only"),
        ("i=3,domain=indices,low=4,high=4", "low < high"),
        ("x=3,domain=uniform,lo=2,hi=1", "lo < hi"),
        ("i=3,domain=indices,grad=true", "float or complex"),
        ("x=999999x999999", "elements"),
        ("x=3,path=/nowhere/at/all.npz", "cannot be read"),
        ("x=3,domain=literal", "needs value"),
        ("x=0,domain=one-hot", "at least one class"),
        ("x=1,domain=pointers", "at least two numbers"),
        ("x=3,domain=pointers,high=-1", "at least 0"),
        ("x=0,domain=simplex", "at least one class"),
        ("x=1,value=[1j],dtype=float64", "complex"),
    ],
)
def test_what_cannot_be_drawn_says_which_input_and_why(text, message):
    with pytest.raises(UsageError, match=message) as caught:
        drawn(text)
    assert str(caught.value).startswith((f"input {text[0]}: ", f"-i {text}: "))


def test_spec_files_know_the_same_domains():
    assert {name: keys for name, (_, keys) in model.DOMAIN_FORMS.items()} == {
        name: domain.parameters for name, domain in DOMAINS.items()
    }
