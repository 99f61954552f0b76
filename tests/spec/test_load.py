"""Specs become cases as the contract says, and hostile YAML becomes errors with file, line and column."""

import contextlib
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradcli.cases import Expectation, InputsFrom
from gradcli.checks import registry
from gradcli.errors import SpecError
from gradcli.spec.load import load_specs
from gradcli.spec.model import CHECKS

CONTRACT = """\
# specs/linear.yaml
target: gradcli.examples.linear:LinearFunction
defaults: {seed: 0, order: 2}
cases:
  - name: with bias
    inputs:
      input:  {shape: [20, 20]}
      weight: {shape: [30, 20]}
      bias:   {shape: [30]}
  - name: no bias
    inputs: {input: {shape: [3, 4]}, weight: {shape: [5, 4]}, bias: null}
expect: passed
"""


def test_the_contracts_own_spec(load, tmp_path):
    first, second = load(CONTRACT)
    assert first.case_id == "gradcli.examples.linear:LinearFunction[with bias]"
    assert [spec.as_flag() for spec in first.inputs] == ["-i input=20x20", "-i weight=30x20", "-i bias=30"]
    assert second.inputs[2].as_flag() == "-a bias=None"
    assert (first.seed, first.order, first.samples) == (0, 2, None)
    assert first.inputs_from is InputsFrom.SPEC
    assert second.origin == f"{tmp_path}/spec.yaml:10"


def test_a_document_without_cases_is_one_case_with_inferred_inputs(load):
    (case,) = load("target: a:B")
    assert case.inputs is None
    assert case.inputs_from is InputsFrom.INFERRED
    assert case.case_id == "a:B"


def test_several_documents(load):
    assert [case.target for case in load("target: a:A\n---\ntarget: b:B\n")] == ["a:A", "b:B"]


def test_every_combination_of_named_sizes_is_a_case(load):
    cases = load(
        "target: a:B\ncases:\n  - name: s\n    sizes: {n: [1, 2, 7], d: 4}\n"
        "    inputs: {x: {shape: [n, d]}, i: {shape: [n], domain: indices, high: d}}\n"
    )
    assert [case.name for case in cases] == ["s n=1", "s n=2", "s n=7"]
    assert [case.inputs[0].shape for case in cases] == [(1, 4), (2, 4), (7, 4)]
    assert cases[0].inputs[1].parameter("high") == 4


def test_only_the_sizes_that_a_case_uses_are_combined(load):
    cases = load(
        "target: a:B\nsizes: {n: [1, 2], m: [3, 4]}\ncases:\n  - inputs: {x: {shape: [n]}}\n"
        "  - name: both\n    inputs: {x: {shape: [n, m]}}\n"
    )
    assert [case.name for case in cases] == [
        "n=1",
        "n=2",
        "both n=1 m=3",
        "both n=1 m=4",
        "both n=2 m=3",
        "both n=2 m=4",
    ]


def test_scalars_are_read_as_yaml_1_2(load):
    (case,) = load(
        "target: a:B\ncases:\n  - inputs: {eps: 1e-6, no: no, on: on, old: 012, hex: 0x1F, yes: 'true', t: true,"
        " big: 1_000, time: 12:30, nothing: ~, text: hello, half: .5, inf: .inf, version: 1.0.0}\n"
    )
    values = {spec.name: spec.value for spec in case.inputs}
    assert values == {
        "eps": 1e-6, "no": "no", "on": "on", "old": 12, "hex": 31, "yes": "true", "t": True, "big": "1_000",
        "time": "12:30", "nothing": None, "text": "hello", "half": 0.5, "inf": math.inf, "version": "1.0.0",
    }  # fmt: skip
    assert isinstance(values["eps"], float)


def test_lists_and_python_literals_are_constants(load):
    (case,) = load("target: a:B\ncases:\n  - inputs: {k: [2, 3], size: {python: '(2, 2)'}, mode: sum}\n")
    assert [spec.value for spec in case.inputs] == [[2, 3], (2, 2), "sum"]
    assert all(spec.kind == "value" for spec in case.inputs)


def test_literal_tensors(load):
    (case,) = load("target: a:B\ncases:\n  - inputs: {x: {value: [[1, 2.5]]}, s: {value: 3.0, grad: false}}\n")
    assert [(s.kind, s.domain, s.value) for s in case.inputs] == [
        ("tensor", "literal", [[1, 2.5]]), ("tensor", "literal", 3.0),
    ]  # fmt: skip
    assert case.inputs[1].requires_grad is False


def test_defaults_are_overridden_by_cases(load):
    one, two = load(
        "target: a:B\ndefaults: {seed: 3, order: 1, samples: 5, dtype: float32, skip: batching}\n"
        "cases:\n  - name: a\n    inputs: {x: {shape: [2]}, i: {shape: [2], domain: indices}}\n"
        "  - {name: b, seed: 4, skip: [forward-mode], dtype: float64, inputs: {x: {shape: scalar}}}\n"
    )
    assert (one.seed, one.order, one.samples, one.skip) == (3, 1, 5, ("batching",))
    assert [spec.dtype for spec in one.inputs] == ["float32", None]
    assert (two.seed, two.order, two.skip) == (4, 1, ("forward-mode",))
    assert (two.inputs[0].dtype, two.inputs[0].shape) == ("float64", ())


def test_expectations_of_document_and_case(load):
    cases = load(
        "target: a:B\nexpect: failed\nfindings: wrong-sign\ncases:\n  - name: a\n  - {name: b, expect: passed}\n"
        "  - {name: c, expect: surrogate}\n  - {name: d, findings: [wrong-factor, transposed]}\n"
    )
    assert [case.expect for case in cases] == [
        Expectation(verdict="failed", findings=("wrong-sign",)),
        Expectation(),
        Expectation(verdict="surrogate"),
        Expectation(verdict="failed", findings=("wrong-factor", "transposed")),
    ]


def test_a_hand_written_gradient_is_named(load):
    (case,) = load("target: m:f\ngrad: m:df")
    assert case.grad == "m:df"


def test_a_file_target_is_looked_for_beside_the_spec(load, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("")
    monkeypatch.chdir(tmp_path.parent)
    (case,) = load("target: mine.py:F")
    assert case.target == f"{tmp_path.name}/mine.py:F"
    (other,) = load("target: elsewhere.py:F")
    assert other.target == "elsewhere.py:F"


def test_a_data_file_is_looked_for_beside_the_spec(load, tmp_path, monkeypatch):
    (tmp_path / "d.npz").write_bytes(b"")
    monkeypatch.chdir(tmp_path.parent)
    (case,) = load("target: a:B\ncases:\n  - inputs: {x: {domain: 'npz:d.npz'}, y: {path: d.npz, key: k}}\n")
    assert case.inputs[0].domain == f"npz:{tmp_path.name}/d.npz"
    assert case.inputs[1].parameter("path") == f"{tmp_path.name}/d.npz"


def test_a_directory_gives_its_own_specs_sorted_and_no_subdirectories(tmp_path):
    for name in ("b.yaml", "a.yml", "c.txt", "sub/d.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"target: m:{name[0].upper()}")
    assert [case.target for case in load_specs(tmp_path)] == ["m:A", "m:B"]
    assert load_specs(tmp_path / "sub")[0].target == "m:S"
    (tmp_path / "empty").mkdir()
    assert load_specs(tmp_path / "empty") == ()


def test_names_and_values_that_no_run_can_accept_are_errors_of_the_file(problems):
    assert problems(
        "target: a:b\ndefaults: {skip: [memory, layuot], dtype: float33}\ncases:\n"
        "  - only: gradientt\n    dtype: float32\n"
        "    inputs: {x: {shape: [3], value: [1.0, 2.0]}, y: {shape: [2], value: 1.0}, z: {value: [[1], [2, 3]]}}\n"
    ) == [
        "2:27: unknown check 'layuot' (did you mean 'layout'?)",
        "2:43: unknown dtype 'float33' (did you mean 'float32'?)",
        "4:11: unknown check 'gradientt' (did you mean 'gradient'?)",
        "6:37: the values have shape [2], but shape [3] was given",
        "6:73: the values have shape [], but shape [2] was given",
        "6:90: the nested lists of value must have equal lengths",
    ]


def test_values_of_their_own_shape_are_accepted(load):
    (case,) = load(
        "target: a:B\nsizes: {n: [2]}\ncases:\n"
        "  - inputs: {x: {shape: [2, 1], value: [[1.0], [2]]}, y: {shape: scalar, value: 1.0},"
        " z: {shape: [n], value: [1, 2]}, e: {shape: [0, 3], value: []}}\n"
    )
    assert [spec.shape for spec in case.inputs] == [(2, 1), (), (2,), (0, 3)]


def test_the_names_of_checks_are_those_of_the_registry():
    assert set(CHECKS) == {check.name for check in registry.CHECKS}


def test_the_problems_of_every_file_are_told(tmp_path):
    (tmp_path / "a.yaml").write_text("targe: x:Y")
    (tmp_path / "b.yaml").write_text("target: 3")
    with pytest.raises(SpecError) as caught:
        load_specs(tmp_path)
    assert len(caught.value.problems) == 3


def test_all_errors_of_a_file_come_at_once_in_its_order(problems):
    found = problems(
        "target: a:b\nseed: 3\ncases:\n"
        "  - inputs: {x: {shpae: [3]}, y: {shape: [n, -1]}, y: 3}\n    order: two\n    expect: failled\n"
        "  - inputs: {x: {shape: [3], domain: spdd, dtype: flot}, z: {shape: [2], high: 3}}\n"
        "    findings: missing-grad\n"
        "  - 3\n"
    )
    assert found[0] == "2:1: unknown key 'seed'; it belongs under defaults or in a case"
    assert found[1] == "4:18: unknown key 'shpae' (did you mean 'shape'?)"
    assert [problem.split(": ")[0] for problem in found] == [
        "2:1", "4:18", "4:43", "4:46", "4:52", "5:12", "6:13", "7:38", "7:51", "7:80", "8:15", "8:15", "9:5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: the file is empty"),
        ("# only a comment\n", "1:1: the file is empty"),
        ("- a\n", "1:1: expected a mapping with 'target', got a list"),
        ("hello", "1:1: expected a mapping with 'target', got the string 'hello'"),
        ("target: a:B\n---\n", "expected a mapping with 'target', got null"),
        ("cases: []", "1:1: missing key 'target'"),
        ("target: a:B\ncases: []", "2:8: the list of cases is empty"),
        ("target: a:B\ncases: {}", "2:8: cases must be a list, got a mapping"),
        ("target: ''", "1:9: target must be a string, got the string ''"),
        ("target: [a]", "1:9: target must be a string, got a list"),
        ("target: a:B\ntarget: a:C", "2:1: duplicate key 'target' (first given in line 1)"),
        ("target: a:B\n[x]: 3", "2:1: a key must be a string, got a list"),
        ("target: a:B\n<<: {expect: passed}", "2:1: merge keys"),
        ("target: a:B\ndefaults: {seed: -1}", "2:18: seed must be a whole number of at least 0, got -1"),
        ("target: a:B\ndefaults: {order: 0}", "2:19: order must be a whole number from 1 to 9, got 0"),
        ("target: a:B\ndefaults: {order: 10}", "2:19: order must be a whole number from 1 to 9, got 10"),
        ("target: a:B\ndefaults: {order: true}", "2:19: order must be a whole number from 1 to 9, got true"),
        ("target: a:B\ndefaults: {samples: 1.5}", "2:21: samples must be a whole number of at least 1, got 1.5"),
        ("target: a:B\ndefaults: {samples: 10001}", "2:21: samples must be at most 10000"),
        ("target: a:B\ndefaults: 3", "2:11: defaults must be a mapping, got 3"),
        ("target: a:B\nfindings: [wrong-sign]", "2:11: the key 'findings' needs expect: failed"),
        ("target: a:B\nexpect: fail", "2:9: unknown expectation 'fail' (did you mean 'failed'?)"),
        ("target: a:B\nexpect: failed\nfindings: [x, {}]", "3:11: findings must be a string or a list of strings"),
        ("target: a:B\nexpect: failed\nfindings: [wrong-sign, wrong-sing]", "3:24: unknown finding 'wrong-sing'"),
        ("target: a:B\ncases:\n- inputs: [x]", "3:11: inputs must be a mapping, got a list"),
        ("target: a:B\ncases:\n- inputs: {x: {}}", "3:15: input 'x' needs a shape"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: 3}}", "3:23: shape must be a list of sizes"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: [2.5]}}", "3:24: a size must be a whole number"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: [n]}}", "3:24: size 'n' is not given under sizes"),
        ("target: a:B\ncases:\n- sizes: {nn: 3}\n  inputs: {x: {shape: [n]}}", "(did you mean 'nn'?)"),
        ("target: a:B\ncases:\n- sizes: {n: 3}\n  inputs: {x: {shape: [2]}}", "3:11: no shape of this case uses size"),
        ("target: a:B\nsizes: {n: [1, x]}", "2:16: a size must be a whole number"),
        ("target: a:B\nsizes: {n: []}", "2:12: size 'n' has no value"),
        ("target: a:B\nsizes: {n: [1, 1]}", "2:12: size 'n' lists the same value twice"),
        ("target: a:B\nsizes: {2: 3}", "2:9: a size needs a name"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: [3], domain: 'spd(1)'}}", "cannot be followed by '(1)'"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: [3], domain: 'open-interval(0)'}}", "as in open-interval(-1, 1)"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: [3], grad: maybe}}", "grad must be true or false"),
        ("target: a:B\ncases:\n- inputs: {x: {shape: [3], domain: indices, high: 2.5}}", "high must be a whole number"),
        ("target: a:B\ncases:\n- inputs: {x: {value: [a]}}", "value must hold numbers only"),
        ("target: a:B\ncases:\n- inputs: {x: {python: 'f()'}}", "the key 'python' must be a literal"),
        ("target: a:B\ncases:\n- inputs: {x: {python: '1', shape: [2]}}", "the key 'python' gives the whole argument"),
        ("target: a:B\ncases:\n- inputs: {'a b': 3}", "3:12: expected the name of a parameter of forward"),
        ("target: a:B\ncases:\n- {}\n- {}", "4:1: the case a:B is already in line 3"),
        ("target: !!python/object/apply:os.system [ls]", "1:9: YAML tags are not allowed"),
        ("target: !mine x", "1:9: YAML tags are not allowed"),
        ("target: !!binary aGVsbG8=", "1:9: YAML tags are not allowed"),
        ("target: a:B\ncases: [\n", "not valid YAML"),
        ("target: 'open", "not valid YAML"),
        ("target: a: b", "1:10: not valid YAML"),
        ("\ttarget: x", "1:1: not valid YAML"),
        ("target: *nowhere", "1:9: not valid YAML: found undefined alias"),
        ("target: a\x00b", "1:10: the character '\\x00' is not allowed"),
        (b"target: \xff\xfe", "1:9: not UTF-8: byte 0xff"),
        ("%YAML 9.9\n---\ntarget: x:Y", "not valid YAML"),
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_with_its_place(problems, text, problem):
    assert any(problem in found for found in problems(text))


def test_a_byte_order_mark_is_no_problem(load):
    assert load(b"\xef\xbb\xbftarget: a:B")[0].target == "a:B"


def test_billion_laughs_end_quickly(problems):
    lines = ["a: &a [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"{new}: &{new} [{','.join(['*' + old] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    (problem,) = problems("\n".join(lines))
    assert "aliases expand to more than" in problem


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}"])
def test_an_alias_that_holds_itself(problems, text):
    assert "more than 32 levels of nesting" in problems(text)[0]


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 50_000, "\n".join(" " * n + "- -" for n in range(200))])
def test_depth_is_bounded(problems, text):
    assert len(problems(text)) == 1


def test_the_number_of_values_and_bytes_is_bounded(problems):
    assert "more than 20,000 values" in problems("a: [" + "1," * 100_000 + "]")[0]
    assert "at most 1,048,576" in problems("a: " + "x" * 2**20)[0]


def test_the_number_of_combinations_is_bounded(problems):
    sizes = ", ".join(f"s{n}: [1,2,3,4,5,6,7,8,9,10]" for n in range(4))
    assert "10,000 combinations" in problems(f"target: a:B\nsizes: {{{sizes}}}\n")[0]


def test_a_missing_file_and_a_device_are_refused(tmp_path):
    with pytest.raises(SpecError, match="no such file"):
        load_specs(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="not a regular file"):
        load_specs(type(tmp_path)("/dev/zero"))


def test_a_directory_called_yaml_is_read_as_a_directory(tmp_path):
    (tmp_path / "x.yaml").mkdir()
    with pytest.raises(SpecError, match="is a directory"):
        load_specs(tmp_path)


LINES = st.lists(
    st.sampled_from(
        (
            "target: a:B",
            "cases:",
            "  - name: x",
            "    inputs: {x: {shape: [n]}}",
            "    sizes: {n: 2}",
            "---",
            "...",
            "? ",
            "- &a",
            "*a",
            "!!set",
            "expect: failed",
            "findings: 3",
            "%YAML 1.2",
            "defaults: {",
            "}",
            "|",
        )
    )
    | st.text(max_size=6),
    max_size=8,
)


@given(LINES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_at_all_raises_anything_but_a_spec_error(tmp_path, lines):
    path = tmp_path / "any.yaml"
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    with contextlib.suppress(SpecError):
        assert all(case.target for case in load_specs(path))
