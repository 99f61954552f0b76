"""A failed check says that a fix is available where one is proven, within the budget, and never for what passes."""

import itertools
import json

import pytest

import gradcli
from gradcli import engine as torch
from gradcli.backends.registry import backend_named
from gradcli.diagnosis.slips.wording import AT_THESE_RANKS, CORRECTED
from gradcli.patches import Patch
from gradcli.reporters.ci.sarif import sarif_report
from gradcli.reporters.html.page import html_report
from gradcli.reporters.plain import plain_case
from gradcli.runner.outcome import patching
from gradcli.verdict import Verdict
from gradcli.watchdog.case import Watchdog

HEAD = "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n"
FORWARD = (
    "class Own(Function):\n    @staticmethod\n    def forward(ctx, x, w):\n        ctx.save_for_backward(x, w)\n"
    "        return w * torch.sin(x)\n\n    @staticmethod\n    def backward(ctx, g):\n"
    "        x, w = ctx.saved_tensors\n        return {}\n"
)
RIGHT = "g * w * torch.cos(x), g * torch.sin(x)"


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """The report of a check of the Function whose backward returns an expression."""
    monkeypatch.chdir(tmp_path)

    number = itertools.count()

    def check(returned: str, **options) -> gradcli.Report:
        file = tmp_path / f"own{next(number)}.py"  # a module is imported once
        file.write_text(HEAD + FORWARD.format(returned))
        return gradcli.check(f"{file.name}:Own", **options)

    return check


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "returned",
    [
        "g * w * torch.sin(x), g * torch.sin(x)",
        "-g * w * torch.cos(x), g * torch.sin(x)",
        "g * torch.sin(x), g * w * torch.cos(x)",
        "g * torch.cos(x), g * torch.sin(x)",
    ],
    ids=["function", "sign", "swap", "factor"],
)
def test_a_failure_names_the_command_and_every_report_has_the_edit(returned, checked, tmp_path):
    report = checked(returned)
    (case,) = report.cases
    assert case.verdict is Verdict.FAILED
    assert case.patch is not None
    assert checked_again(case.patch, checked)
    assert "fix available: gradcli fix own0.py:Own" in plain_case(case)
    assert "Fix available" in html_report(report)
    (fix,) = next(r["fixes"] for r in json.loads(sarif_report(report))["runs"][0]["results"] if "fixes" in r)
    assert applied(fix, case.patch.before) == case.patch.after
    assert "patch" not in case.to_dict()


def checked_again(patch: Patch, checked) -> bool:
    returned = patch.after.rpartition("return ")[2].strip()
    return checked(returned).cases[0].verdict is Verdict.PASSED


def applied(fix, text: str) -> str:
    """The text with the replacements of a SARIF fix made, as a viewer makes them."""
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "own0.py"
    lines = text.splitlines(keepends=True)
    for replacement in reversed(change["replacements"]):
        region = replacement["deletedRegion"]
        assert (region["startColumn"], region["endColumn"]) == (1, 1)
        lines[region["startLine"] - 1 : region["endLine"] - 1] = [replacement["insertedContent"]["text"]]
    return "".join(lines)


def test_nothing_is_offered_for_what_passes_what_has_no_edit_or_what_is_to_fail(checked):
    assert checked(RIGHT).cases[0].patch is None
    hopeless = checked("g * x * x * torch.exp(w * x), g * x").cases[0]  # two mistakes, and an edit fixes one
    assert hopeless.verdict is Verdict.FAILED
    assert hopeless.patch is None
    assert "fix available" not in plain_case(hopeless)
    assert checked("-g * w * torch.cos(x), g * torch.sin(x)", shrink=False).cases[0].patch is None


def test_where_the_budget_is_spent_no_proof_is_begun(checked, monkeypatch):
    def never(*_, **__):
        raise AssertionError("a proof was begun")

    monkeypatch.setattr(patching, "proof_of", never)
    monkeypatch.setattr(patching, "_LEAST_SECONDS", 1e9)
    assert checked("g * torch.cos(x), g * torch.sin(x)").cases[0].patch is None


def test_a_proof_that_is_not_at_its_end_in_time_proves_nothing(checked, monkeypatch):
    seen = []
    proof_of = patching.proof_of

    def recorded(*arguments, **keywords):
        seen.append(proof_of(*arguments, **keywords))
        return seen[-1]

    monkeypatch.setattr(patching, "proof_of", recorded)
    assert checked("g * torch.cos(x), g * torch.sin(x)").cases[0].patch is not None
    assert [proof is not None for proof in seen] == [True]
    monkeypatch.setattr(patching, "PATCHING_SECONDS", 1e-9)
    monkeypatch.setattr(patching, "_CHECKS", 0)
    monkeypatch.setattr(patching, "DELAY", 1e10)
    assert checked("g * torch.cos(x), g * torch.sin(x)").cases[0].patch is None
    assert [proof is not None for proof in seen] == [True, False]


def test_no_proof_is_begun_that_would_not_come_to_its_end(checked, monkeypatch):
    begun = []
    monkeypatch.setattr(patching, "proof_of", lambda *_, **__: begun.append(1))
    monkeypatch.setattr(Watchdog, "forward_seconds", property(lambda _: 1e-4))
    assert checked("g * torch.cos(x), g * torch.sin(x)").cases[0].patch is None
    assert begun == [1]
    monkeypatch.setattr(Watchdog, "forward_seconds", property(lambda _: 0.5))
    assert checked("g * torch.cos(x), g * torch.sin(x)").cases[0].patch is None
    assert begun == [1]


def test_changed_lines_are_counted_from_one_and_end_before_the_next():
    patch = Patch(file="a.py", before="a\nb\nc\n", after="a\nB\nB2\nc\nd\n", proven=())
    assert patch.changed_lines() == [(2, 3, "B\nB2\n"), (4, 4, "d\n")]
    assert backend_named("engine").framework.namespace is torch


@pytest.mark.parametrize("ranks", ["", AT_THESE_RANKS])
def test_a_correction_that_fails_elsewhere_is_said_to_do_so_once(ranks):
    message = patching.still_wrong(f"x: line 3 has `g` where `2 * g` belongs; {CORRECTED}{ranks}; save x")
    assert message.endswith(
        "belongs; with this corrected, the returned gradient is right at these inputs, but other "
        "checks still find it wrong; save x"
    )
