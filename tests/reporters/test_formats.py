"""What is said about a result: complete, in the order of the reader's questions, and the same on every run."""

import json
import math
from dataclasses import replace

import pytest

from gradcli.cases import Expectation, InputSpec
from gradcli.reporters.console import WIDTH, console_case, console_summary
from gradcli.reporters.formats import WHOLE, renderer
from gradcli.reporters.json_document import json_report
from gradcli.reporters.narrative import index_symbols
from gradcli.reporters.ndjson import ndjson_report
from gradcli.reporters.plain import plain_case, plain_report, plain_summary
from gradcli.reporters.wording import magnitude, number
from gradcli.results import CheckResult, Entry, Report
from gradcli.runner.outcome.expect import against_expectation
from gradcli.verdict import Verdict
from tests.reporters.results import ALL, ERROR, FAILED, FINDING, INCONCLUSIVE, PASSED, SKIPPED, report


def test_a_pass_is_one_line_that_can_be_searched_for() -> None:
    assert plain_case(PASSED) == (
        "PASS mymodule:LinearFunction orders=1,2 resolution=2e-11 forwards=14 backwards=9 seconds=0.031 "
        "inferred='-i input=3x4 -i weight=5x4 -a dim=-1'"
    )


def test_a_failure_says_what_where_how_it_is_known_and_what_to_do() -> None:
    assert plain_case(FAILED).splitlines() == [
        "FAIL mymodule:LinearFunction finding=wrong-factor input=weight factor=1/5 at=mymodule.py:21 "
        "replay=.gradcli/failures/LinearFunction-7f3a.json",
        f"  {FINDING.message}   [wrong-factor]",
        "    weight[i, j]       returned   numeric",
        "    [0, 0]         -0.340863604   -1.70431802 ± 3e-11",
        "    [0, 1]          0.045826754   0.22913377 ± 3e-11",
        "    20 of 20 entries are wrong",
        "    mymodule.py:21",
        "      19 │         if ctx.needs_input_grad[0]:",
        "      20 │             g = grad_output",
        "    ▸ 21 │             return g, None",
        "  inputs inferred: -i input=3x4 -i weight=5x4 -a dim=-1",
        "  smallest failing input   input = [[1.0]], weight = [[2.0]]",
        "  replay                   gradcli replay .gradcli/failures/LinearFunction-7f3a.json",
        "  more                     gradcli explain wrong-factor",
    ]


def test_an_inconclusive_case_says_why_and_what_to_do() -> None:
    text = plain_case(INCONCLUSIVE)
    assert text.startswith("INCONCLUSIVE mymodule:LinearFunction reason=kink ")
    assert "lies on a kink" in text
    assert "[kink]" in text
    assert "input was drawn at random: if forward is meant for a range of values, give it" in text
    assert "-i input=3x4 -i weight=5x4 -a dim=-1" in text


def test_an_error_shows_the_users_traceback_and_the_hint() -> None:
    lines = plain_case(ERROR).splitlines()
    assert lines[1].strip() == "forward raised NameError: name 'supper' is not defined"
    assert lines[2].strip() == "did you mean 'super'?"
    assert any("line 3, in forward" in line for line in lines)


def test_a_case_that_was_not_run_says_so() -> None:
    assert plain_case(SKIPPED).splitlines() == [
        "SKIP mymodule:LinearFunction", "  not run: stopped at the first failure",
    ]  # fmt: skip


def test_the_summary_counts_what_needs_attention_first() -> None:
    assert plain_summary(report(*ALL)) == (
        "1 failed · 1 error · 1 inconclusive · 1 passed · 1 skipped · 0.25 s · seed 0"
    )
    assert plain_summary(report()) == "nothing was checked · 0.25 s · seed 0"


def test_the_text_of_a_report_is_its_plain_text() -> None:
    import gradcli.api  # noqa: F401 - it sets what writes reports as text

    whole = report(PASSED, FAILED)
    assert str(whole) == plain_report(whole)
    assert str(whole).splitlines()[-1] == "1 failed · 1 passed · 0.25 s · seed 0"


@pytest.mark.parametrize("result", ALL, ids=lambda result: result.verdict.value)
@pytest.mark.parametrize("verbose", [False, True])
def test_a_screen_fits_100_columns_and_says_all_that_plain_text_says(result: CheckResult, verbose: bool) -> None:
    shown = console_case(result, verbose=verbose).plain
    assert max(len(line) for line in shown.splitlines()) <= WIDTH
    words = set(plain_case(result, verbose=verbose).partition("\n")[2].split())
    assert words <= set(shown.split())


def test_a_screen_of_a_pass_tells_for_each_input_how_exact_it_is() -> None:
    lines = console_case(PASSED).plain.splitlines()
    assert lines[0].startswith("✓ mymodule:LinearFunction   engine · 3 samples · orders 1 and 2")
    assert lines[0].endswith("0.03 s")
    assert lines[1] == "  input    3×4   ✓ within 2e-11   second order ✓ within 1e-11"
    assert lines[2] == "  weight   5×4   ✓ within 2e-11   second order ✓ within 1e-11"
    assert " ".join(" ".join(lines[3:]).split()) == (
        "would have shown a relative error of 2e-11 · inputs inferred: -i input=3x4 -i weight=5x4 -a dim=-1"
    )


def test_a_failure_that_was_expected_is_told_in_its_sentence() -> None:
    lines = console_case(replace(FAILED, verdict=Verdict.PASSED, expected="failed with wrong-factor")).plain
    assert "  failed with wrong-factor, as its spec expects\n" in lines
    assert "[wrong-factor]" in lines
    assert "within" not in lines


def test_a_declared_surrogate_is_noted_once() -> None:
    declared = against_expectation(FAILED, Expectation(verdict="surrogate"))
    assert console_case(declared, width=None).plain.count("accepted as a surrogate gradient") == 1
    assert (
        plain_case(declared).splitlines()[0].startswith("PASS mymodule:LinearFunction orders=1,2 expected='surrogate'")
    )


def test_colour_underlines_the_verdict_only() -> None:
    assert console_summary(report(FAILED)).style == "bold red"
    assert console_summary(report(PASSED)).style == "bold green"


def test_json_holds_every_key_of_the_contract_and_only_numbers_that_json_has() -> None:
    entry = Entry(index=(0,), analytic=math.nan, numeric=math.inf, bound=0.0)
    finding = replace(FINDING, entries=(entry,))
    value = InputSpec(name="eps", kind="value", value=-math.inf)
    odd = replace(FAILED, findings=(finding,), inputs=(value,))
    document = json.loads(json_report(report(odd, PASSED)), parse_constant=pytest.fail)
    assert list(document) == ["schema", "gradcli", "seed", "verdict", "exit_code", "summary", "cases"]
    assert set(document["summary"]) == {
        "cases", "passed", "failed", "inconclusive", "error", "skipped", "seconds",
    }  # fmt: skip
    contract = {
        "id", "target", "name", "backend", "verdict", "seed", "samples", "inputs_from", "inputs", "checks",
        "findings", "evaluations", "seconds", "replay",
    }  # fmt: skip
    assert all(contract <= set(case) for case in document["cases"])
    written = document["cases"][0]["findings"][0]
    assert written["analytic"] == ["nan"]
    assert written["numeric"] == ["inf"]
    assert document["cases"][0]["inputs"][0]["value"] == "-inf"
    assert written["location"] == {"file": "mymodule.py", "line": 21}


HUGE = complex(1.7e308, 1.7e308)


@pytest.mark.parametrize(
    ("returned", "right", "shown"),
    [
        (complex("nan"), 1.5 - 2j, "nan   1.5-2j ± 1e-12"),
        (complex(1.5, math.nan), 1.5 - 2j, "1.5+nanj   1.5-2j ± 1e-12"),
        (1.5 - 2j, complex("nan"), "1.5-2j   not measured"),
        (HUGE, -HUGE, "1.7e+308+1.7e+308j   -1.7e+308-1.7e+308j ± 1e-12"),
        (1.5 - 2j, 1.5 + 2j, "1.5-2j   1.5+2j ± 1e-12"),
    ],
)
def test_complex_entries_are_shown_in_every_format(returned: complex, right: complex, shown: str) -> None:
    """`abs` raises OverflowError where the absolute value of a complex number has no float."""
    entry = Entry(index=(0,), analytic=returned, numeric=right, bound=1e-12)
    odd = replace(FAILED, findings=(replace(FINDING, entries=(entry,)),))
    (row,) = [line for line in plain_case(odd).splitlines() if line.strip().startswith("[0]")]
    assert " ".join(row.split()) == " ".join(f"[0] {shown}".split())
    assert row.strip() in console_case(odd).plain
    for name in WHOLE:
        assert renderer(name)(report(odd)).endswith("\n")


def test_ndjson_and_json_hold_the_same() -> None:
    whole = report(*ALL)
    *cases, summary = [json.loads(line) for line in ndjson_report(whole).splitlines()]
    assert {**summary, "cases": cases} == json.loads(json_report(whole))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2.345e-11, "2e-11"),
        (0.0, "0"),
        (1e-300, "1e-300"),
        (math.inf, "inf"),
        (0.05, "0.05"),
        (12.34, "12.3"),
        (1e7, "1e7"),
    ],
)
def test_sizes_are_written_in_one_digit(value: float, shown: str) -> None:
    assert magnitude(value) == shown


def test_complex_entries_are_shown_with_both_parts() -> None:
    assert number(1.5 - 2j) == "1.5-2j"
    assert number(None) == "None"
    assert index_symbols(3) == "[i, j, k]"


def test_close_values_are_shown_with_digits_that_tell_them_apart() -> None:
    entry = Entry(index=(0,), analytic=1.0, numeric=1.0 + 3e-12, bound=1e-14)
    rows = plain_case(replace(FAILED, findings=(replace(FINDING, entries=(entry,)),))).splitlines()
    row = next(line for line in rows if line.strip().startswith("[0]"))
    returned, numeric = row.split()[1:3]
    assert returned != numeric


@pytest.mark.parametrize(
    ("cases", "allow", "code"),
    [
        ([PASSED], False, 0),
        ([PASSED, SKIPPED], False, 0),
        ([SKIPPED], False, 5),
        ([], False, 5),
        ([PASSED, INCONCLUSIVE], False, 4),
        ([PASSED, INCONCLUSIVE], True, 0),
        ([INCONCLUSIVE, ERROR], True, 3),
        ([ERROR, FAILED], False, 1),
    ],
)
def test_the_first_of_the_ranked_codes_wins(cases: list[CheckResult], allow: bool, code: int) -> None:
    whole: Report = report(*cases, allow_inconclusive=allow)
    assert whole.exit_code == code
    assert whole.ok is (code == 0)


def test_every_verdict_has_a_word_and_a_glyph() -> None:
    for result in ALL:
        assert plain_case(result).split()[0].isupper()
        assert console_case(result).plain[0] in "✓✗?!-"
    assert {result.verdict for result in ALL} == set(Verdict)
