"""The commands beside check, and what the options of check refuse."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradcli._version import __version__
from gradcli.checks.registry import CHECKS
from gradcli.cli.arguments.options import format_from, reports_from, shard_from
from gradcli.errors import UsageError
from gradcli.findings import FindingKind
from gradcli.reporters.formats import WHOLE
from gradcli.runner.executors.futures import require_executor
from gradcli.runner.planning.limits import as_option, require_settings
from gradcli.runner.planning.plan import Shard
from gradcli.settings import Settings
from gradcli.verdict import Reason, Verdict
from tests.conftest import Run


def test_the_version_is_told_without_importing_numpy_rich_or_typer() -> None:
    program = (
        "import sys\nfrom gradcli.__main__ import main\nsys.argv[1:] = ['--version']\ncode = main()\n"
        "print(sorted({'numpy', 'rich', 'typer', 'torch', 'jax', 'yaml'} & set(sys.modules)), code)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"gradcli {__version__}", "[] 0"]


def test_checking_without_a_framework_imports_none(gradcli: Run, folder: Path) -> None:
    (folder / "watches.py").write_text(
        "import atexit, sys\nfrom functions import Square\n"
        "atexit.register(lambda: sys.stderr.write(str(sorted({'torch', 'jax', 'dask'} & set(sys.modules)))))\n"
        "class Watched(Square): pass\n"
    )
    assert gradcli("check", "watches:Watched").stderr == b"[]"


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["trace", "-h"], ["list", "--help"],
                                       ["explain", "--help"], ["init", "--help"], ["replay", "--help"]])  # fmt: skip
def test_help_goes_to_standard_output_and_explains_every_option(gradcli: Run, arguments: list[str]) -> None:
    ended = gradcli(*arguments)
    assert ended.returncode == 0
    assert ended.stderr == b""
    assert b"Usage: gradcli" in ended.stdout


def test_a_misspelt_command_or_option_is_answered_with_the_right_one(gradcli: Run) -> None:
    assert b"'check'" in gradcli("chek").stderr
    assert b"--samples" in gradcli("check", "--sampels", "3").stderr


def test_every_name_that_a_report_can_hold_is_explained(gradcli: Run) -> None:
    table = gradcli("explain").stdout.decode()
    names = [member.value for enum in (FindingKind, Verdict, Reason) for member in enum] + [c.name for c in CHECKS]
    words = table.split()
    assert [name for name in names if name not in words] == []
    for name in ("missing-gradient", "GC105", "gc105", "MISSING_GRADIENT"):
        full = gradcli("explain", name).stdout.decode()
        assert "how it is detected" in full
        assert FindingKind.MISSING_GRADIENT.remedy in full


def test_an_unknown_name_is_answered_with_close_ones(gradcli: Run) -> None:
    assert b"missing-gradient" in gradcli("explain", "mising-gradient").stderr


def test_list_shows_backend_signature_and_inputs(gradcli: Run) -> None:
    lines = gradcli("list", "functions").stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == [
        f"functions:{name}" for name in ("Square", "Forgets", "Raises", "Product", "Rectified")
    ]
    assert "engine   (x, y, scale=1.0)   inferred: -i x=" in lines[3]
    assert "no inputs:" in lines[2]


def test_init_writes_a_spec_that_passes_and_never_overwrites_it(gradcli: Run, folder: Path) -> None:
    assert gradcli("init", "functions:Product").returncode == 0
    spec = folder / "specs" / "product.yaml"
    text = spec.read_text()
    assert text.startswith("# yaml-language-server: $schema=.gradcli-schema.json\ntarget: functions:Product\n")
    assert gradcli("check").returncode == 0
    again = gradcli("init", "functions:Product")
    assert again.returncode == 2
    assert b"already exists" in again.stderr
    assert spec.read_text() == text


def test_reports_are_written_beside_the_output_in_the_format_of_their_suffix(gradcli: Run, folder: Path) -> None:
    ended = gradcli("check", "functions:Square", "--report", "out/r.json", "--report", "r.ndjson", "--format", "json")
    assert json.loads((folder / "out" / "r.json").read_text()) == json.loads(ended.stdout)
    assert len((folder / "r.ndjson").read_text().splitlines()) == 2


def test_a_specs_expectations_decide(gradcli: Run, folder: Path) -> None:
    (folder / "specs").mkdir()
    (folder / "specs" / "a.yaml").write_text(
        "target: functions:Forgets\ncases:\n  - inputs: {x: {shape: [3]}}\n"
        "expect: failed\nfindings: [wrong-factor]\n---\ntarget: functions:Square\nexpect: passed\n"
    )
    assert gradcli("check").returncode == 0
    (folder / "specs" / "b.yaml").write_text("target: functions:Square\nexpect: failed\n")
    ended = gradcli("check", "specs")
    assert ended.returncode == 1
    assert b"expected: failed; got: passed" in ended.stdout


def test_errors_of_all_specs_come_at_once_each_with_its_place(gradcli: Run, folder: Path) -> None:
    (folder / "a.yaml").write_text("target: functions:Square\ncases:\n  - inptus: {}\n")
    (folder / "b.yaml").write_text("target: functions:Square\nexpect: pased\n")
    ended = gradcli("check", "a.yaml", "b.yaml")
    assert ended.returncode == 2
    first, second = ended.stderr.decode().splitlines()
    assert first.startswith("a.yaml:3:5: unknown key 'inptus'")
    assert second.startswith("b.yaml:2:")


def test_all_targets_that_cannot_be_found_are_named_together(gradcli: Run) -> None:
    said = gradcli("check", "functions:Sqare", "functions:Froget", "functions:Square").stderr.decode()
    assert "Sqare" in said
    assert "Froget" in said


def test_a_module_that_cannot_be_imported_shows_the_users_traceback_alone(gradcli: Run, folder: Path) -> None:
    (folder / "broken.py").write_text("def f():\n    return undefined_name\n\nf()\n")
    said = gradcli("check", "broken:X").stderr.decode()
    assert 'broken.py", line 2, in f' in said
    assert "gradcli/" not in said.replace("tests/", "")


def test_required_resolution_turns_a_pass_that_sees_too_little_into_a_failure(gradcli: Run) -> None:
    ended = gradcli("check", "functions:Square", "--require-resolution", "1e-30")
    assert ended.returncode == 1
    assert b"and --require-resolution demands 1.0e-30" in ended.stdout
    assert gradcli("check", "functions:Square", "--require-resolution", "1e-6").returncode == 0


def test_sample_inputs_of_the_target_are_used_before_inference(gradcli: Run, folder: Path) -> None:
    (folder / "sampled.py").write_text(
        "import numpy as np\nfrom functions import Square\nclass Sampled(Square):\n    @staticmethod\n"
        "    def sample_inputs():\n        return [(np.array([1.0, 2.0]),), (np.array(3.0),)]\n"
    )
    (case,) = json.loads(gradcli("check", "sampled:Sampled", "--format", "json").stdout)["cases"]
    assert (case["inputs_from"], case["samples"], case["verdict"]) == ("sample_inputs", 2, "passed")
    assert case["inputs"][0]["shape"] == [2]


def test_a_value_given_by_a_flag_is_shown_with_its_shape_as_a_flag_that_works(gradcli: Run) -> None:
    (case,) = json.loads(
        gradcli("check", "functions:Square", "-i", "x=any,value=[0.5,2.0]", "--format", "json").stdout
    )["cases"]
    assert (case["verdict"], case["inputs_from"], case["samples"]) == ("passed", "flags", 1)
    assert case["inputs"][0]["shape"] == [2]


@pytest.mark.parametrize("form", ["html", "jsn", "xml"])
def test_a_format_that_is_not_there_is_refused_with_those_that_are(form: str) -> None:
    with pytest.raises(UsageError, match="available: table, plain, json, ndjson"):
        format_from(form, terminal=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["json", "ndjson", "junit", "sarif", "markdown"])
def test_a_report_is_the_text_that_its_format_prints(gradcli: Run, folder: Path, form: str) -> None:
    path = folder / f"deep/er/report{WHOLE[form][0]}"
    shown = gradcli("check", "functions:Square", "functions:Forgets", "--format", form, "--report", str(path))
    assert shown.returncode == 1
    assert path.read_bytes() == shown.stdout
    assert b"Forgets" in shown.stdout


def test_the_table_goes_into_the_summary_of_a_github_step(gradcli: Run, folder: Path) -> None:
    summary = folder / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    ended = gradcli(
        "check", "functions:Forgets", "--format", "github", environment={"GITHUB_STEP_SUMMARY": str(summary)}
    )
    assert ended.returncode == 1
    assert b"\n::error file=functions.py,line=" in ended.stdout
    assert summary.read_text(encoding="utf-8").startswith("before\n# gradcli: failed")


def test_the_format_follows_the_terminal() -> None:
    assert format_from(None, terminal=True) == "table"
    assert format_from(None, terminal=False) == "plain"
    assert format_from("json", terminal=True) == "json"


@pytest.mark.parametrize("path", ["r.txt", "r", f"{__file__}/r.json", "."])
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(path: str) -> None:
    with pytest.raises(UsageError, match="--report"):
        reports_from([path])


def test_an_executor_that_is_not_there_is_refused() -> None:
    for name in ("processes", "dask", "dask:localhost:8786", "mymodule:executor"):
        require_executor(name)
    with pytest.raises(UsageError, match="expected processes, dask, dask:ADDRESS or module:factory"):
        require_executor("slurm")


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_a_share_is_one_of_its_number(text: str) -> None:
    with pytest.raises(UsageError, match="expected I/N"):
        shard_from(text)
    assert shard_from("2/5") == Shard(index=2, count=5)


@pytest.mark.parametrize(
    "settings", [Settings(dtype="float63"), Settings(dtype="int64"), Settings(timeout=0.0),
                 Settings(require_resolution=float("nan")), Settings(timeout=-1.0)]
)  # fmt: skip
def test_settings_that_no_run_can_have_are_refused(settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"^--(dtype|timeout|require-resolution) "):
        require_settings(settings, as_option)


def test_inputs_for_which_gradients_fit_are_inferred_and_the_others_are_named(gradcli: Run, folder: Path) -> None:
    (folder / "scalar.py").write_text(
        "from gradcli.engine.autograd import Function\n\n\n"
        "class Gained(Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x, gain):\n"
        "        ctx.save_for_backward(x, gain)\n"
        "        return x * gain\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        x, gain = ctx.saved_tensors\n"
        "        return g * gain, (g * x).sum()\n"
    )
    inferred = gradcli("check", "scalar:Gained")
    assert inferred.returncode == 0, inferred.stdout
    assert b"-i gain=scalar" in inferred.stdout
    assert b"forward also accepts" in inferred.stdout or b"also accepts -i" in inferred.stdout
    failed = gradcli("check", "scalar:Gained", "-i", "x=3x4", "-i", "gain=4")
    assert failed.returncode == 1
    assert b"wrong-shape" in failed.stdout
    given = gradcli("check", "scalar:Gained", "-i", "x=3x4", "-i", "gain=scalar")
    assert given.returncode == 0, given.stdout
