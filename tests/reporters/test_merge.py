"""A report read back is the report that was written, and the parts of a run become the whole of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import gradcli
from gradcli.cli.commands.merge import merged_report
from gradcli.documents import read_report
from gradcli.errors import UsageError
from gradcli.reporters.formats import renderer
from gradcli.reporters.json_document import json_report
from gradcli.reporters.narrative import entry_rows
from gradcli.reporters.ndjson import ndjson_report
from gradcli.reporters.wording import summary
from gradcli.results import CheckResult, Entry, Report
from gradcli.verdict import Fault, Verdict
from tests.conftest import Run
from tests.programs.hostile_texts import many_kinds
from tests.reporters.results import ALL, ERROR, FAILED, FINDING, INCONCLUSIVE, PASSED, SKIPPED, report

ODD = replace(
    FINDING,
    entries=(
        Entry(index=(), analytic=float("nan"), numeric=float("inf"), bound=1.0),
        Entry(index=(1,), analytic=None, numeric=1 - 2j, bound=1.0),
    ),
)
REPORTS = {
    "of each verdict": report(*ALL),
    "hostile": many_kinds(),
    "odd numbers": report(replace(FAILED, findings=(ODD,))),
    "faults": report(*(replace(ERROR, case_id=fault.value, fault=fault) for fault in Fault)),
    "allowed": report(INCONCLUSIVE, allow_inconclusive=True),
    "interrupted": replace(report(PASSED), interrupted=True),
    "empty": report(),
}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("write", [json_report, ndjson_report], ids=["json", "ndjson"])
def test_what_was_written_is_read_back(name: str, write: object, tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_text(write(REPORTS[name]), encoding="utf-8")  # type: ignore[operator]
    back = read_report(path)
    assert back.to_dict() == REPORTS[name].to_dict()
    assert back.exit_code == REPORTS[name].exit_code
    assert renderer("junit")(back).count("<testcase") == len(back.cases)


def test_a_real_run_is_read_back(tmp_path: Path) -> None:
    whole = gradcli.check("gradcli.examples.linear:LinearFunction", order=1)
    path = tmp_path / "r.json"
    path.write_text(json_report(whole), encoding="utf-8")
    assert read_report(path).to_dict() == whole.to_dict()


def test_lines_that_were_cut_off_leave_the_cases_before(tmp_path: Path) -> None:
    path = tmp_path / "r.ndjson"
    text = ndjson_report(report(PASSED, replace(FAILED, case_id="other")))
    for cut in (text[: text.rindex('{"schema')], text[: text.rindex('{"schema') + 20]):
        path.write_text(cut, encoding="utf-8")
        back = read_report(path)
        assert [case.case_id for case in back.cases] == [PASSED.case_id, "other"]
        assert back.interrupted
        assert back.exit_code == 1


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"hello", "line 1 is not JSON"),
        (b"[1, 2]", "not a report"),
        (b'{"schema": "gradcli.report/2", "cases": []}', "it has the schema 'gradcli.report/2'"),
        (b'{"schema": "gradcli.report/1", "cases": [{}]}', "KeyError"),
        (b'{"schema": "gradcli.report/1", "cases": 3}', "not a report"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not a report"),
    ],
)
def test_a_file_that_is_no_report_is_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=problem):
        read_report(path)
    with pytest.raises(UsageError, match="no such file"):
        read_report(tmp_path / "none.json")
    with pytest.raises(UsageError, match="not a regular file"):
        read_report(tmp_path)


def of(name: str, case: CheckResult) -> CheckResult:
    return replace(case, case_id=name)


def test_the_parts_of_a_run_become_the_whole() -> None:
    whole = report(of("a", PASSED), of("b", FAILED), of("c", INCONCLUSIVE), of("d", ERROR), of("e", SKIPPED))
    parts = [(f"{n}.json", replace(whole, cases=whole.cases[n::2], seconds=0.125)) for n in range(2)]
    merged = merged_report(parts)
    assert sorted(case.case_id for case in merged.cases) == list("abcde")
    assert merged.to_dict()["summary"] == whole.to_dict()["summary"]
    assert merged.exit_code == whole.exit_code == 1


def test_a_share_without_cases_changes_nothing() -> None:
    assert merged_report([("a", report()), ("b", report(PASSED))]).exit_code == 0
    assert merged_report([("a", report())]).exit_code == 5


def test_an_inconclusive_case_counts_unless_every_part_allows_it() -> None:
    allowed = report(of("a", INCONCLUSIVE), allow_inconclusive=True)
    counted = report(of("b", INCONCLUSIVE))
    assert merged_report([("a", allowed), ("b", report(PASSED))]).exit_code == 0
    assert merged_report([("a", allowed), ("b", counted)]).exit_code == 4


def test_an_interrupted_part_lets_nothing_pass_and_hides_no_failure() -> None:
    cut = replace(report(of("a", PASSED)), interrupted=True)
    merged = merged_report([("a", cut), ("b", report(of("b", PASSED)))])
    assert (merged.exit_code, merged.verdict, merged.ok) == (130, Verdict.INCONCLUSIVE, False)
    assert "2 passed · interrupted: the other cases are missing" in summary(merged)
    failed = merged_report([("a", cut), ("b", report(of("b", FAILED)))])
    assert (failed.exit_code, failed.verdict) == (1, Verdict.FAILED)
    assert replace(cut, cases=()).exit_code == 130


def test_what_cannot_be_one_run_is_refused() -> None:
    with pytest.raises(UsageError, match=r"b.json: the case .* is also in a.json"):
        merged_report([("a.json", report(PASSED)), ("b.json", report(PASSED))])
    with pytest.raises(UsageError, match=r"the seeds of these reports differ \(0 in a\.json, 7 in b\.json\)"):
        merged_report([("a.json", report(PASSED)), ("b.json", Report(cases=(), seed=7))])


def test_shards_merged_are_the_run_in_one_piece(gradcli: Run, folder: Path) -> None:
    (folder / "specs").mkdir()
    names = ["Square", "Forgets", "Product", "Rectified", "Raises"]
    (folder / "specs/a.yaml").write_text("\n---\n".join(f"target: functions:{name}" for name in names))
    whole = json.loads(gradcli("check", "--format", "json", "--order", "1").stdout)
    for share in (1, 2, 3):
        suffix = "ndjson" if share == 2 else "json"
        gradcli("check", "--order", "1", "--shard", f"{share}/3", "--report", f"part{share}.{suffix}")
    ended = gradcli("merge", "part1.json", "part2.ndjson", "part3.json", "--format", "json", "--report", "all.xml")
    merged = json.loads(ended.stdout)

    def essence(document: dict) -> list:
        kept = ("id", "verdict", "seed", "findings", "inputs")
        return sorted([[case[key] for key in kept] for case in document["cases"]], key=lambda case: case[0])

    assert essence(merged) == essence(whole)
    assert ended.returncode == merged["exit_code"] == whole["exit_code"] == 1
    assert (folder / "all.xml").read_text().count("<testcase") == len(names)
    assert {case["verdict"] for case in merged["cases"]} == {
        v.value for v in (Verdict.PASSED, Verdict.FAILED, Verdict.ERROR)
    }


MEASURED = replace(
    FAILED,
    findings=(
        replace(
            FINDING,
            entries=(
                Entry(index=(0,), analytic=1.0, numeric=2.0, bound=1e-9),
                Entry(index=(1,), analytic=1.0, numeric=5.0, bound=float("inf")),
            ),
        ),
    ),
)


@pytest.mark.parametrize("with_bounds", [True, False])
def test_what_was_measured_is_shown_from_a_document(with_bounds: bool, tmp_path: Path) -> None:
    document = json.loads(json_report(report(MEASURED)))
    (finding,) = document["cases"][0]["findings"]
    assert finding["bounds"] == [1e-9, "inf"]
    if not with_bounds:
        del finding["bounds"]
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    rows = entry_rows(read_report(path).cases[0].findings[0])[1:]
    assert [row[2] for row in rows] == (["2 ± 1e-9", "not measured"] if with_bounds else ["2", "5"])
