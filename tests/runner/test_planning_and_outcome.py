"""The runner's parts on values made by hand: seeds, merging, expectations, plans."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

import gradcli
from gradcli.cases import CheckSpec, Expectation
from gradcli.engine.autograd import Function
from gradcli.errors import NothingToCheckError, UsageError
from gradcli.findings import SURROGATE_ADVICE, FindingKind
from gradcli.reporters.console import console_case
from gradcli.reporters.plain import plain_case
from gradcli.results import CheckResult, Evidence
from gradcli.runner.case import check_object
from gradcli.runner.outcome.expect import VALUE_FINDINGS, against_expectation
from gradcli.runner.outcome.merge import merge
from gradcli.runner.outcome.notes import telling_notes, time_notes
from gradcli.runner.planning.configuration import default_targets
from gradcli.runner.planning.functions import functions_in
from gradcli.runner.planning.gather import gather, is_named
from gradcli.runner.planning.plan import case_of, case_seed
from gradcli.settings import Settings
from gradcli.verdict import Reason, Verdict
from gradcli.watchdog.case import Overrun, Watchdog
from tests.reporters.results import ERROR, FAILED, FINDING, INCONCLUSIVE, PASSED


def test_a_seed_depends_on_the_run_the_target_and_the_name_alone_and_never_changes() -> None:
    assert case_seed(0, "mymodule:LinearFunction", None) == 1125896961
    places = ("mine.py:F", "/home/one/mine.py:F", "../other/mine.py:F", r"C:\code\mine.py:F")
    assert len({case_seed(0, place, None) for place in places}) == 1
    others = {case_seed(1, "a:B", None), case_seed(0, "a:B", "c"), case_seed(0, "a:C", None), case_seed(0, "a:B", None)}
    assert len(others) == 4


def test_a_file_stands_for_its_private_functions_too_and_for_each_once(tmp_path: Path) -> None:
    file = tmp_path / "hidden_functions.py"
    file.write_text(
        "from gradcli.engine.autograd import Function\n"
        "class _Base(Function):\n    pass\n"
        "class _Double(Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return 2 * g\n"
        "Double = _Double\n"
    )
    assert functions_in(str(file)) == (f"{file}:_Double",)


def test_a_file_stands_for_the_functions_inside_its_classes_too(tmp_path: Path) -> None:
    file = tmp_path / "functions_in_classes.py"
    double = (
        "class {}(Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return 2 * g\n"
    )
    nested = textwrap.indent(double.format("_Double"), "    ")
    deeper = textwrap.indent(f"class Inner:\n{nested}", "    ")
    file.write_text(
        "from gradcli.engine.autograd import Function\n"
        f"{double.format('Double')}"
        f"class Layer:\n    also = Double\n    parent = Function\n{nested}{deeper}"
    )
    names = ("Double", "Layer._Double", "Layer.Inner._Double")
    assert functions_in(str(file)) == tuple(f"{file}:{name}" for name in names)


def test_a_package_is_a_module_unless_it_holds_specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "twice_as_much"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from gradcli.engine.autograd import Function\n"
        "class Twice(Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        return 2 * x\n"
        "    @staticmethod\n    def backward(ctx, g):\n        return 2 * g\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert [spec.target for spec in gather(["twice_as_much"])] == ["twice_as_much:Twice"]
    with pytest.raises(NothingToCheckError, match="a folder stands for the specs"):
        gather(["twice_as_much/"])
    (package / "one.yaml").write_text("target: elsewhere:Twice\n")
    assert [spec.target for spec in gather(["twice_as_much"])] == ["elsewhere:Twice"]


def test_a_spec_goes_before_the_run_but_checks_named_by_the_run_go_first() -> None:
    spec = CheckSpec(target="a:B", order=1, samples=7, seed=5, only=("gradient",), skip=("linearity",))
    case = case_of(spec, Settings(order=3, seed=1, only=("repeat",), skip=("mutation",)))
    assert (case.settings.order, case.settings.samples) == (1, 7)
    assert case.settings.only == ("repeat",)
    assert case.settings.skip == ("mutation", "linearity")
    assert case.seed == case_seed(5, "a:B", None)


class Overrated(Function):
    """sin(x) with a gradient that is too large by half."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 1.5 * g * x.cos()


@pytest.mark.parametrize("budget", [None, 1e-9])
def test_what_is_allowed_passes_whatever_the_budget_and_is_told_once(budget: float | None) -> None:
    x = gradcli.engine.tensor([0.5, 2.0], requires_grad=True)
    report = gradcli.check(Overrated, (x,), allow={"wrong-factor": "by design"}, budget=budget, shrink=False)
    assert report.ok
    text = str(report)
    assert text.count("allowed: by design") == 1
    assert "the error appears where" not in text
    shown = console_case(report.cases[0]).plain
    assert "wrong, as allowed" in shown
    assert "would have shown" not in shown
    assert not gradcli.check(Overrated, (x,), allow={"wrong-sign": "by design"}, budget=budget, shrink=False).ok


def test_a_finding_that_is_expected_is_found_whatever_the_budget() -> None:
    def expecting(finding: str) -> CheckResult:
        spec = CheckSpec(target="tests:Overrated", expect=Expectation(verdict="failed", findings=(finding,)))
        return check_object(Overrated, case_of(spec, Settings(budget=1e-9, samples=1)))

    assert expecting("wrong-factor").verdict is Verdict.PASSED
    assert expecting("wrong-sign").verdict is Verdict.FAILED


def test_samples_merge_to_the_worst_verdict_bound_and_resolution() -> None:
    first = Evidence(check="gradient", verdict=Verdict.PASSED, input="x", bound=1e-12, resolution=1e-11)
    second = replace(first, bound=3e-12, resolution=5e-12, note="moved off a kink", max_rel_error=1e-15)
    third = replace(first, verdict=Verdict.INCONCLUSIVE, reason=Reason.NOISE, bound=None, resolution=None)
    other = Evidence(check="gradient", verdict=Verdict.PASSED, input="y")
    (merged, kept) = merge([[first, other], [second], [third]])
    assert merged.verdict is Verdict.INCONCLUSIVE
    assert merged.reason is Reason.NOISE
    assert (merged.bound, merged.resolution, merged.max_rel_error) == (3e-12, 1e-11, 1e-15)
    assert merged.note is None, "what was accepted in one sample does not say what is undecided in another"
    assert kept == other


def test_a_note_of_several_samples_is_said_once_with_its_largest_figures() -> None:
    first = Evidence(check="gradient", verdict=Verdict.PASSED, input="x", note="steps by about 3e-08; moved off a kink")
    notes = (None, "steps by about 5e-07", "moved off a kink; steps by about 2e-08", "has 2 entries", "has 3 entries")
    (merged,) = merge([[first], *([replace(first, note=note)] for note in notes)])
    assert merged.note == (
        "steps by about 5e-07 (likewise in 2 other samples); moved off a kink; has 2 entries; has 3 entries"
    )


def test_notes_of_one_sample_that_differ_in_their_figures_are_all_kept() -> None:
    evidence = Evidence(check="gradient", verdict=Verdict.PASSED, note="kink at 0.25; kink at 0.75")
    assert merge([[evidence], [evidence]])[0].note == "kink at 0.25; kink at 0.75"
    other = replace(evidence, note="kink at 0.5")
    assert merge([[evidence], [other]])[0].note == "kink at 0.5 (likewise in 1 other sample); kink at 0.75"


@pytest.mark.parametrize("verdict", [Verdict.PASSED, Verdict.INCONCLUSIVE])
def test_what_one_sample_leaves_open_does_not_excuse_a_failure_in_another(verdict) -> None:
    wrong = Evidence(check="gradient", verdict=Verdict.FAILED, input="x", note="forward iterates")
    excused = replace(wrong, verdict=verdict, note="rounding may explain the difference")
    assert merge([[excused], [wrong]])[0].note == "forward iterates"
    assert merge([[excused], [excused]])[0].note == excused.note


def test_an_error_in_percent_is_a_measured_number() -> None:
    first = Evidence(check="gradient", verdict=Verdict.PASSED, note="below 5.5 % of the largest")
    samples = [
        [first],
        [replace(first, note="below 8 % of the largest")],
        [replace(first, note="below 9e-04 of the largest")],
    ]
    assert merge(samples)[0].note == "below 8 % of the largest (likewise in 2 other samples)"


def test_what_holds_for_several_inputs_is_said_once_with_their_names() -> None:
    x = Evidence(check="gradient", verdict=Verdict.PASSED, input="x", note="forward's values step")
    w = replace(x, input="w", output=1)
    named = replace(x, input="b", note="b is empty")
    alone = replace(x, input=None, note="raised to float64")
    assert telling_notes([x, w, replace(x, output=1), named, alone]) == (
        "x, w: forward's values step",
        "b is empty",
        "raised to float64",
    )
    assert telling_notes([replace(x, input="a", note="accepted")]) == ("a: accepted",)


def test_a_not_a_number_is_the_worst_error() -> None:
    first = Evidence(check="gradient", verdict=Verdict.FAILED, max_abs_error=float("nan"))
    (merged,) = merge([[first], [replace(first, max_abs_error=1.0)]])
    assert merged.max_abs_error != merged.max_abs_error


def test_zero_everywhere_must_hold_in_every_sample() -> None:
    zero = Evidence(check="gradient", verdict=Verdict.PASSED, zero_everywhere=True)
    assert not merge([[zero], [replace(zero, zero_everywhere=False)]])[0].zero_everywhere


@pytest.mark.parametrize(
    ("result", "wanted", "verdict", "note"),
    [
        (FAILED, ("wrong-factor",), Verdict.PASSED, None),
        (FAILED, ("wrong-sign", "wrong-factor"), Verdict.PASSED, None),
        (FAILED, (), Verdict.PASSED, None),
        (FAILED, ("wrong-sign",), Verdict.FAILED, "expected: failed with wrong-sign; got: failed with wrong-factor"),
        (PASSED, (), Verdict.FAILED, "expected: failed; got: passed"),
        (INCONCLUSIVE, ("wrong-sign",), Verdict.FAILED, "expected: failed with wrong-sign; got: inconclusive"),
    ],
)
def test_a_case_that_must_fail_passes_only_when_it_fails_as_stated(
    result: CheckResult, wanted: tuple[str, ...], verdict: Verdict, note: str | None
) -> None:
    judged = against_expectation(result, Expectation(verdict="failed", findings=wanted))
    assert judged.verdict is verdict
    if note is None:
        assert judged.expected == "failed with wrong-factor"
        assert "expected='failed with wrong-factor'" in plain_case(judged)
        assert "\n" not in plain_case(judged)
    else:
        assert note in judged.notes[0]


def test_a_case_that_must_fail_and_raises_is_still_an_error() -> None:
    assert against_expectation(ERROR, Expectation(verdict="failed")).verdict is Verdict.ERROR


def test_a_surrogate_may_have_wrong_values_and_says_so_but_may_break_no_rule() -> None:
    surrogate = Expectation(verdict="surrogate")
    allowed = against_expectation(FAILED, surrogate)
    assert allowed.verdict is Verdict.PASSED
    assert FINDING.message in allowed.notes[0]
    assert against_expectation(INCONCLUSIVE, surrogate).verdict is Verdict.INCONCLUSIVE
    for kind in set(FindingKind) - VALUE_FINDINGS:
        broken = replace(FAILED, findings=(FINDING, replace(FINDING, kind=kind)))
        assert against_expectation(broken, surrogate).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("gradients", "verdict"),
    [("g * w.sign(), (g * w.sign()).sum()", Verdict.PASSED), ("(g * w.sign()).sum(), g * a", Verdict.FAILED)],
)
def test_a_surrogate_has_the_shape_of_its_input(gradients, verdict, tmp_path) -> None:
    (tmp_path / "written.py").write_text(
        "import gradcli.engine as torch\n\n\nclass Scaled(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, w, a):\n        ctx.save_for_backward(w, a)\n        return w.sign() * a\n\n"
        "    @staticmethod\n    def backward(ctx, g):\n        w, a = ctx.saved_tensors\n"
        f"        return {gradients}\n"
    )
    spec = tmp_path / "scaled.yaml"
    spec.write_text(
        f"target: {tmp_path / 'written.py'}:Scaled\nexpect: surrogate\n"
        "cases: [inputs: {w: {shape: [2, 3]}, a: {shape: scalar}}]\n"
    )
    (case,) = gradcli.check(str(spec)).cases
    assert case.verdict is verdict, case


def test_what_a_spec_declares_is_not_advised_again() -> None:
    finding = replace(FAILED.findings[0], message=f"x: wrong; {SURROGATE_ADVICE}")
    failed = replace(FAILED, findings=(finding,))
    allowed = against_expectation(failed, Expectation(verdict="surrogate"))
    assert allowed.notes[0] == "accepted as a surrogate gradient, which the spec declares: x: wrong"
    assert allowed.findings[0].message == "x: wrong"
    assert SURROGATE_ADVICE in against_expectation(failed, Expectation()).findings[0].message


@pytest.mark.parametrize(
    ("target", "named"),
    [("a.b:C", True), ("a.py:C.D", True), ("a.b", False), ("a.py", False), (r"C:\x\a.py", False), (r"C:\a.py:B", True)],
)
def test_a_name_follows_a_colon_that_is_not_a_drives(target: str, named: bool) -> None:
    assert is_named(target) is named


def test_without_a_target_the_configured_specs_are_checked_seen_from_the_folder_below(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gradcli]\nspecs = ["gradients"]\n')
    (tmp_path / "inner").mkdir()
    with pytest.raises(
        UsageError, match=r"pyproject.toml:2: \[tool.gradcli\] specs: there is no file or folder gradients"
    ):
        default_targets(tmp_path)
    (tmp_path / "gradients").mkdir()
    assert default_targets(tmp_path) == ("gradients",)
    assert default_targets(tmp_path / "inner") == (str(tmp_path / "gradients"),)


def test_without_configuration_the_folder_specs_is_checked_and_without_that_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    with pytest.raises(NothingToCheckError, match=r"no target was given, no pyproject\.toml here or above lists specs"):
        default_targets(tmp_path)
    (tmp_path / "specs").mkdir()
    assert default_targets(tmp_path) == ("specs",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.gradcli]\nspec = ['a']\n", r"unknown key 'spec' \(did you mean 'specs'\?\)"),
        ("[tool.gradcli]\nspecs = 'a'\n", "expected specs to be a list of paths, got specs='a'"),
        ("[tool]\ngradcli = 3\n", r"expected a table \[tool.gradcli\], got int"),
        ("[tool.gradcli\n", "cannot be read"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        default_targets(tmp_path)


def test_calls_after_the_checks_are_not_said_to_be_left_out_of_these() -> None:
    watchdog = Watchdog()
    watchdog.overruns = [Overrun("naming", 0.2, "<slip>:40"), Overrun("shrinking", 0.3, "mine.py:4")]
    assert time_notes(watchdog, 3, 3) == ()
    watchdog.overruns.append(Overrun("other-inputs", 0.5, "mine.py:4"))
    (note,) = time_notes(watchdog, 3, 3)
    assert note.startswith("a call at inputs that gradcli chose was stopped after 0.5 s (other-inputs, mine.py:4)")
