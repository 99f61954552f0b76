"""Saved failures: exact, replayable, and never in the way of a verdict."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradcli.cases import Argument
from gradcli.errors import UsageError
from gradcli.runner.store.failures import Failure, load, save
from tests.conftest import Run

VALUES = arrays.arrays(
    dtype=st.sampled_from(["float64", "float32", "float16", "complex128", "complex64", "int64", "uint8", "bool"]),
    shape=arrays.array_shapes(min_dims=0, min_side=0, max_dims=3),
)


def _failure(*arguments: Argument) -> Failure:
    return Failure(target="a/b.py:C.D", name=None, seed=3, order=2, dtype="float64", arguments=arguments)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
def test_arrays_come_back_bit_for_bit(tmp_path: Path, value: np.ndarray) -> None:
    saved = Argument(name="x", value=value, is_tensor=True, requires_grad=True, domain="normal", keyword=True)
    (loaded,) = load(save(_failure(saved), tmp_path)).arguments
    assert loaded.value.dtype == value.dtype
    assert loaded.value.shape == value.shape
    np.testing.assert_array_equal(loaded.value, value)
    assert (loaded.name, loaded.requires_grad, loaded.domain, loaded.keyword) == ("x", True, "normal", True)


def test_large_arrays_come_back_bit_for_bit_too(tmp_path: Path) -> None:
    value = np.random.default_rng(0).standard_normal((100, 70)).T
    (loaded,) = load(save(_failure(Argument(name="x", value=value, is_tensor=True)), tmp_path)).arguments
    np.testing.assert_array_equal(loaded.value, value)


@pytest.mark.parametrize(
    "value", [None, True, -1, 1e-300, 1 + 2j, "text", (2, [3.5, None]), b"x", math.inf, (-math.inf, "nan")], ids=repr
)
def test_python_values_come_back_equal(tmp_path: Path, value: object) -> None:
    (loaded,) = load(save(_failure(Argument(name="p", value=value, is_tensor=False)), tmp_path)).arguments
    assert loaded.value == value
    assert type(loaded.value) is type(value)


def test_a_value_without_an_exact_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="input 'f' cannot be written as a Python literal: <built-in function sin>"):
        save(_failure(Argument(name="f", value=math.sin, is_tensor=False)), tmp_path)


def test_the_name_of_a_file_tells_the_target_and_equal_failures_share_it(tmp_path: Path) -> None:
    first, second = (save(_failure(), tmp_path / "failures") for _ in range(2))
    assert first == second
    assert first.name.startswith("C.D-")
    assert (tmp_path / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not a saved failure"),
        ("[]", "expected a saved failure with schema 'gradcli.failure/1', got schema=None"),
        ('{"schema": "gradcli.report/1"}', "got schema='gradcli.report/1'"),
        ('{"schema": "gradcli.failure/1"}', "is damaged: the field 'target' is missing"),
    ],
)
def test_a_file_that_is_no_failure_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        load(path)


def test_a_failure_is_saved_and_replays_to_the_same_finding_until_it_is_mended(gradcli: Run, folder: Path) -> None:
    first = json.loads(gradcli("check", "functions:Forgets", "--format", "json").stdout)["cases"][0]
    assert first["replay"].startswith(".gradcli/failures/Forgets-")
    again = gradcli("replay", first["replay"], "--format", "json")
    assert again.returncode == 1
    assert [f["name"] for f in json.loads(again.stdout)["cases"][0]["findings"]] == ["wrong-factor"]
    functions = folder / "functions.py"
    functions.write_text(functions.read_text().replace("return x * grad_output", "return 2 * x * grad_output"))
    assert gradcli("replay", first["replay"]).returncode == 0


PAIR = """import gradcli.engine as torch


def root(x):
    y = torch.sqrt(x * x + 1)
    return y, y


def right(g, x, y):
    return g * x / y


def wrong(g, x, y):
    return 2 * g * x / y
"""


def test_the_failure_of_a_function_with_saved_values_replays(gradcli: Run, folder: Path) -> None:
    (folder / "pair.py").write_text(PAIR)
    given = ("-i", "x=3", "--saved", "y", "--grad")
    assert gradcli("check", "pair.py:root", *given, "right").returncode == 0
    first = json.loads(gradcli("check", "pair.py:root", *given, "wrong", "--format", "json").stdout)["cases"][0]
    again = gradcli("replay", first["replay"], "--format", "json")
    assert again.returncode == 1, again.stderr
    assert [f["name"] for f in json.loads(again.stdout)["cases"][0]["findings"]] == ["wrong-factor"]
    saved = folder / first["replay"]
    saved.write_text(saved.read_text().replace('"y"', "7"))
    refused = gradcli("replay", first["replay"])
    assert refused.returncode == 2
    assert b"is damaged: expected saved to be a list of names, got saved=[7]" in refused.stderr


def test_a_folder_that_cannot_be_written_changes_no_verdict_and_is_told(gradcli: Run, folder: Path) -> None:
    (folder / ".gradcli").write_text("a file where the folder should be")
    ended = gradcli("check", "functions:Forgets", "--format", "json")
    assert ended.returncode == 1
    assert json.loads(ended.stdout)["cases"][0]["replay"] is None
    assert b"could not be saved for replay" in ended.stderr


def test_a_run_that_is_refused_writes_nothing(gradcli: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert gradcli("check", "functions:Sqare", "--report", "report.json").returncode == 2
    assert gradcli("check", "functions:Forgets", "--report", "report.txt", "--report", "report.json").returncode == 2
    after = [path for path in sorted(folder.iterdir()) if path.name != "__pycache__"]
    assert after == before
