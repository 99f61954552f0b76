"""Which cases are run: by words, tags and what failed last time; and which are not run again."""

import json
from pathlib import Path

import pytest

from gradcli.cases import CheckSpec, Problem
from gradcli.errors import NothingToCheckError, UsageError
from gradcli.runner.planning.choose import Choice, chosen, keyword_test
from gradcli.runner.planning.plan import Shard
from gradcli.runner.store.last import FILE, last_failed
from tests.conftest import Run

SPECS = (
    CheckSpec(target="a:Linear", name="with bias", tags=("slow", "dense")),
    CheckSpec(target="a:Linear", name="no bias", tags=("dense",)),
    CheckSpec(target="b:Conv"),
)


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("linear", [0, 1]),
        ("Linear and with", [0]),
        ("not Linear", [2]),
        ("Conv or with", [0, 2]),
        ("not (Conv or with)", [1]),
        ("not not Conv", [2]),
        ("a:Linear and not (no or Conv)", [0]),
        ("b: or a: and with", [0, 2]),
    ],
)
def test_words_choose_by_the_id(expression: str, fits: list[int]) -> None:
    assert chosen(SPECS, Choice(keyword=expression)) == tuple(SPECS[n] for n in fits)


@pytest.mark.parametrize("expression", ["", "and", "a and", "or b", "(a", "a)", "not", "a b", "( )"])
def test_an_expression_that_is_wrong_is_refused(expression: str) -> None:
    with pytest.raises(UsageError, match=r"^-k "):
        keyword_test(expression)


def test_tags_choose_cases_that_have_one_of_them() -> None:
    assert chosen(SPECS, Choice(tags=("slow",))) == SPECS[:1]
    assert chosen(SPECS, Choice(tags=("slow", "dense"))) == SPECS[:2]
    with pytest.raises(UsageError, match="--tag fast: no case has this tag; tags of these cases: dense, slow"):
        chosen(SPECS, Choice(tags=("fast",)))


def test_a_target_with_a_problem_is_never_left_out() -> None:
    wrong = CheckSpec(target="c:Gone", problem=Problem(message="no module c", exit_code=2))
    assert chosen((*SPECS, wrong), Choice(keyword="Conv")) == (SPECS[2], wrong)


def test_equal_cases_of_two_specs_have_ids_of_their_own(gradcli: Run, folder: Path) -> None:
    (folder / "specs").mkdir()
    spec = "target: functions.py:Square\ndefaults: {order: 1, samples: 1}\ncases:\n- {inputs: {x: {shape: [3]}}NAME}\n"
    (folder / "specs/a.yaml").write_text(spec.replace("NAME", ""))
    (folder / "specs/b.yaml").write_text(spec.replace("NAME", ""))
    (folder / "specs/c.yaml").write_text(spec.replace("NAME", ", name: own"))
    both = gradcli("check", "specs", "--report", "r.json")
    assert both.returncode == 0
    ids = [case["id"] for case in json.loads((folder / "r.json").read_text())["cases"]]
    assert ids == ["functions.py:Square", "functions.py:Square[specs/b.yaml:4]", "functions.py:Square[own]"]
    assert gradcli("merge", "r.json").returncode == 0
    right = gradcli("check", "specs", str(folder / "specs/a.yaml"), "--report", "r.json")
    assert right.returncode == 0
    assert b"3 passed" in right.stdout
    assert gradcli("merge", "r.json").returncode == 0


def test_nothing_that_fits_is_said() -> None:
    with pytest.raises(NothingToCheckError, match="none of 3 cases matches -k 'Pool'"):
        chosen(SPECS, Choice(keyword="Pool"))


def test_what_failed_last_time_alone_or_first() -> None:
    failed = frozenset({"b:Conv"})
    assert chosen(SPECS, Choice(failed=failed)) == SPECS[2:]
    assert chosen(SPECS, Choice(failed=failed, first=True)) == (SPECS[2], *SPECS[:2])


def test_a_new_case_moves_no_other_to_another_share() -> None:
    ids = [f"m:F{n}" for n in range(300)]
    shares = [Shard(index=index, count=3) for index in (1, 2, 3)]
    assert all(sum(share.holds(name) for share in shares) == 1 for name in ids)
    assert all(70 < sum(share.holds(name) for name in ids) < 130 for share in shares)


@pytest.fixture
def suite(folder: Path) -> Path:
    (folder / "specs").mkdir()
    (folder / "specs/a.yaml").write_text(
        "target: functions:Square\ndefaults: {tags: quick, order: 1}\n---\n"
        "target: functions:Forgets\ndefaults: {order: 1}\n"
    )
    return folder


def ids(stdout: bytes) -> list[tuple[str, str]]:
    return [(case["id"], case["verdict"]) for case in json.loads(stdout)["cases"]]


def test_the_command_chooses(gradcli: Run, suite: Path) -> None:
    assert ids(gradcli("check", "--tag", "quick", "--format", "json").stdout) == [("functions:Square", "passed")]
    assert ids(gradcli("check", "-k", "not square", "--format", "json").stdout) == [("functions:Forgets", "failed")]
    assert gradcli("check", "-k", "nothing").returncode == 5
    assert gradcli("check", "-k", "(").returncode == 2


def test_the_command_remembers_what_failed(gradcli: Run, suite: Path) -> None:
    assert len(ids(gradcli("check", "--last-failed", "--format", "json").stdout)) == 2
    assert last_failed(suite) == {"functions:Forgets"}
    assert ids(gradcli("check", "--last-failed", "--format", "json").stdout) == [("functions:Forgets", "failed")]
    first, _ = ids(gradcli("check", "--failed-first", "--format", "json").stdout)
    assert first == ("functions:Forgets", "failed")
    (suite / "functions.py").write_text(
        (suite / "functions.py").read_text().replace("return x * grad", "return 2 * x * grad")
    )
    assert gradcli("check", "--last-failed").returncode == 0
    assert last_failed(suite) == frozenset()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "gradcli.last/1", "failed": [1]}', "[" * 100_000])
def test_a_damaged_memory_is_said(gradcli: Run, suite: Path, text: str) -> None:
    (suite / FILE).parent.mkdir(exist_ok=True)
    (suite / FILE).write_text(text)
    ended = gradcli("check", "--last-failed")
    assert ended.returncode == 2
    assert b"is damaged (" in ended.stderr
    assert gradcli("check").returncode == 1


def forwards(stdout: bytes) -> dict[str, bool]:
    """Whether each case was run now: its notes do not say that it was kept."""
    return {case["id"]: not any("--cache" in note for note in case["notes"]) for case in json.loads(stdout)["cases"]}


def test_what_passed_and_did_not_change_is_not_run_again(gradcli: Run, suite: Path) -> None:
    def run(*options: str) -> dict[str, bool]:
        return forwards(gradcli("check", "--cache", "--format", "json", *options).stdout)

    both, again = (
        {"functions:Square": True, "functions:Forgets": True},
        {"functions:Square": False, "functions:Forgets": True},
    )
    assert run() == both
    assert run() == again
    assert run("--seed", "3") == both
    assert run("--seed", "3") == again
    (suite / "helper.py").write_text("x = 1\n")
    assert run() == both
    assert run() == again
    (suite / "functions.py").write_text((suite / "functions.py").read_text() + "\n# changed\n")
    assert run() == both
    (suite / "specs/a.yaml").write_text((suite / "specs/a.yaml").read_text().replace("quick", "other"))
    assert run() == both
    assert forwards(gradcli("check", "--format", "json").stdout) == both


def test_a_kept_result_says_the_same_and_why_it_was_not_run(gradcli: Run, suite: Path) -> None:
    def case() -> dict[str, object]:
        (found,) = json.loads(gradcli("check", "--cache", "-k", "Square", "--format", "json").stdout)["cases"]
        return {key: value for key, value in found.items() if key not in ("seconds", "notes")}

    assert case() == case()
    assert b"has changed since it passed" in gradcli("check", "--cache", "-k", "Square").stdout


def test_a_damaged_file_of_the_cache_is_run_again(gradcli: Run, suite: Path) -> None:
    gradcli("check", "--cache", "-k", "Square")
    (kept,) = (suite / ".gradcli/cache").glob("*.json")
    kept.write_text("{}")
    assert forwards(gradcli("check", "--cache", "-k", "Square", "--format", "json").stdout) == {
        "functions:Square": True
    }


def test_a_module_of_a_package_depends_on_all_of_it(gradcli: Run, folder: Path) -> None:
    (folder / "pack/inner").mkdir(parents=True)
    (folder / "pack/__init__.py").write_text("raise SystemExit('imported')\n")
    (folder / "pack/__init__.py").write_text("")
    (folder / "pack/inner/__init__.py").write_text("")
    (folder / "pack/helper.py").write_text("FACTOR = 2\n")
    (folder / "pack/inner/f.py").write_text(
        "from gradcli.engine.autograd import Function\nfrom pack.helper import FACTOR\n\n"
        "class F(Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return FACTOR * g\n"
    )
    command = ("check", "pack.inner.f:F", "--cache", "--order", "1", "--format", "json")
    assert gradcli(*command).returncode == 0
    assert forwards(gradcli(*command).stdout) == {"pack.inner.f:F": False}
    (folder / "pack/helper.py").write_text("FACTOR = 3.0\n")  # of another length: Python compares seconds and sizes
    assert gradcli(*command).returncode == 1
