"""JUnit, SARIF, GitHub and Markdown: valid by their public schemas, and no text of the user's acts in them."""

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema

from gradcli.findings import FindingKind
from gradcli.reporters.ci.github import annotations, github_report
from gradcli.reporters.ci.junit import junit_report
from gradcli.reporters.ci.markdown import markdown_report
from gradcli.reporters.ci.sarif import sarif_report
from gradcli.reporters.escaping import code_block, code_span, printable
from gradcli.reporters.formats import SUFFIXES, WHOLE, renderer
from gradcli.results import Location, Report
from gradcli.verdict import Verdict
from tests.programs.hostile_texts import NASTY, hostile_cases, many_kinds
from tests.reporters.results import ALL, ERROR, FAILED, FINDING, INCONCLUSIVE, PASSED, SKIPPED, report

DATA = Path(__file__).parent / "data"
REPORTS = {"hostile": many_kinds(), "of each verdict": report(*ALL), "empty": report()}


@pytest.fixture(scope="module")
def junit_schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(str(DATA / "junit-10.xsd"))


@pytest.fixture(scope="module")
def sarif_validator() -> jsonschema.protocols.Validator:
    schema = json.loads((DATA / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("name", REPORTS)
def test_junit_is_valid_by_the_public_schema(name: str, junit_schema: xmlschema.XMLSchema) -> None:
    junit_schema.validate(junit_report(REPORTS[name]))


def test_the_junit_schema_refuses_an_unknown_attribute(junit_schema: xmlschema.XMLSchema) -> None:
    text = junit_report(report(PASSED)).replace("<testcase ", '<testcase colour="red" ')
    assert not junit_schema.is_valid(text)


def test_junit_tells_failures_from_errors() -> None:
    root = ElementTree.fromstring(junit_report(report(*ALL)))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("5", "1", "2")
    (failure,) = root.iter("failure")
    assert failure.get("type") == "wrong-factor"
    assert failure.get("message") == f"mymodule.py:21: {FINDING.message}"
    assert "gradcli replay" in str(failure.text)
    assert [error.get("type") for error in root.iter("error")] == ["kink", "error"]
    assert [skipped.get("message") for skipped in root.iter("skipped")] == ["not run: stopped at the first failure"]


def test_an_inconclusive_case_is_an_error_of_junit_only_where_it_counts() -> None:
    counted = ElementTree.fromstring(junit_report(report(INCONCLUSIVE)))
    allowed = ElementTree.fromstring(junit_report(report(INCONCLUSIVE, allow_inconclusive=True)))
    assert [len(list(root.iter("error"))) for root in (counted, allowed)] == [1, 0]
    assert [len(list(root.iter("skipped"))) for root in (counted, allowed)] == [0, 1]


def test_junit_has_a_suite_for_each_module_and_a_case_for_each_case() -> None:
    other = replace(PASSED, case_id="other.py:F[big]", target="other.py:F", name="big")
    root = ElementTree.fromstring(junit_report(report(PASSED, other, FAILED)))
    names = {suite.get("name"): [case.get("name") for case in suite] for suite in root}
    assert names == {"mymodule": ["LinearFunction", "LinearFunction"], "other.py": ["F[big]"]}


@pytest.mark.parametrize("name", REPORTS)
def test_sarif_is_valid_by_the_official_schema(name: str, sarif_validator: jsonschema.protocols.Validator) -> None:
    text = sarif_report(REPORTS[name])
    assert text.isascii()
    sarif_validator.validate(json.loads(text))


def test_the_sarif_schema_refuses_a_wrong_level(sarif_validator: jsonschema.protocols.Validator) -> None:
    text = sarif_report(report(FAILED)).replace('"level": "error",\n     "message"', '"level": "bad",\n     "message"')
    assert not sarif_validator.is_valid(json.loads(text))


def test_sarif_puts_a_result_at_the_line_of_backward() -> None:
    (run,) = json.loads(sarif_report(report(*ALL)))["runs"]
    fail, opened = run["results"]
    place = fail["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "mymodule.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 21, "snippet": {"text": "            return g, None"}}
    assert run["tool"]["driver"]["rules"][fail["ruleIndex"]]["id"] == fail["ruleId"] == "GC101"
    assert (opened["kind"], opened["level"], opened["ruleId"]) == ("open", "none", "inconclusive/kink")
    assert run["invocations"][0]["executionSuccessful"] is False
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 1


def test_sarif_has_a_rule_with_help_for_every_finding() -> None:
    (run,) = json.loads(sarif_report(report()))["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    for kind in FindingKind:
        assert rules[kind.code]["shortDescription"]["text"] == kind.sentence
        assert kind.remedy in rules[kind.code]["help"]["text"]


def test_a_fingerprint_survives_a_move_to_another_line_and_nothing_else() -> None:
    def fingerprint(**changes: object) -> str:
        finding = replace(FINDING, **changes)
        text = sarif_report(report(replace(FAILED, findings=(finding,))))
        return str(json.loads(text)["runs"][0]["results"][0]["partialFingerprints"])

    assert fingerprint(location=Location(file="mymodule.py", line=90)) == fingerprint()
    assert fingerprint(input="input") != fingerprint()
    assert fingerprint(order=2) != fingerprint()
    assert fingerprint(kind=FindingKind.WRONG_SIGN) != fingerprint()


@pytest.mark.parametrize(
    ("file", "uri"),
    [("a b/ü.py", "a%20b/%C3%BC.py"), ("a\\b.py", "a/b.py"), ("/x y/z.py", "file:///x%20y/z.py")],
)
def test_a_path_becomes_a_valid_uri(file: str, uri: str) -> None:
    finding = replace(FINDING, location=Location(file=file, line=1))
    text = sarif_report(report(replace(FAILED, findings=(finding,))))
    place = json.loads(text)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == uri


def commands_obeyed(text: str) -> list[tuple[str, dict[str, str], str]]:
    """The commands of `text` as GitHub's runner reads them: level, properties, message.

    The rules are those of the runner: leading white space is dropped, then `::name k=v,k=v::message`; in a line that is
    none, `##[` anywhere; and from `::stop-commands::TOKEN` to `::TOKEN::` nothing counts.
    """
    found, stopped = [], None
    for line in text.splitlines():
        if stopped is not None:
            stopped = None if line.strip() == f"::{stopped}::" else stopped
            continue
        match = re.match(r"\s*::([\w-]+)(?: ([^:]*))?::(.*)", line)
        if match is None:
            assert "##[" not in line
            continue
        if match[1] == "stop-commands":
            stopped = match[3]
            continue
        pairs = (pair.partition("=") for pair in (match[2] or "").split(",") if pair)
        found.append((match[1], {key: _back(value) for key, _, value in pairs}, _back(match[3])))
    assert stopped is None
    return found


def _back(text: str) -> str:
    for code, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_github_commands_read_back_say_what_was_found() -> None:
    obeyed = commands_obeyed(github_report(report(*ALL)))
    assert [level for level, _, _ in obeyed] == ["error", "error", "warning"]
    _, properties, message = obeyed[0]
    assert properties == {"file": "mymodule.py", "line": "21", "title": "wrong-factor: mymodule:LinearFunction"}
    assert message == FINDING.message


@pytest.mark.parametrize("text", NASTY)
def test_no_text_of_a_user_is_obeyed_by_github(text: str) -> None:
    cases = [case for case in hostile_cases() if case.name == text]
    obeyed = commands_obeyed(github_report(report(*cases)))
    assert [level for level, _, _ in obeyed] == ["error", "error", "warning"]
    assert obeyed[0][2] == printable(f"{text}: 2 times")
    assert obeyed[0][1]["title"] == printable(f"wrong-factor: a.py:F[{text}]")


def test_the_most_severe_come_first_and_what_github_leaves_out_is_counted() -> None:
    second = replace(FAILED, findings=(replace(FINDING, order=2),))
    whole = report(INCONCLUSIVE, ERROR, second, *[FAILED] * 12)
    levels = [command.split("title=")[1].split("%3A")[0] for command in annotations(whole)]
    assert levels == ["wrong-factor"] * 13 + ["error", "inconclusive"]
    assert "::notice title=gradcli::4 more errors are in the log" in github_report(whole)


def test_the_token_of_stop_commands_is_not_in_the_text_it_guards() -> None:
    text = github_report(report(FAILED))
    token = text.splitlines()[0].removeprefix("::stop-commands::")
    body = text.split("\n", 1)[1].split(f"\n::{token}::")[0]
    assert hashlib.sha256(body.encode()).hexdigest() == token
    assert token not in body


def test_markdown_has_one_row_a_case_whatever_the_names() -> None:
    whole = many_kinds()
    text = markdown_report(whole)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "| case |" not in line]
    assert len(rows) == len(whole.cases)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows)


def test_markdown_puts_what_needs_attention_first_and_unfolds_it() -> None:
    text = markdown_report(report(PASSED, SKIPPED, FAILED, ERROR))
    order = [line.split()[2] for line in text.splitlines() if line.startswith(("| ✅", "| ❌", "| ⚠", "| ⏭"))]
    assert order == ["FAIL", "ERROR", "PASS", "SKIP"]
    assert text.count("<details>") == 2
    assert "`wrong-factor`" in text
    assert "`mymodule.py:21`" in text


def test_nothing_of_a_user_becomes_markup() -> None:
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", markdown_report(many_kinds()))
    assert not re.search(r"(?m)^\s*(?:::|##\[)", outside)  # a command of a CI system
    outside = re.sub(r"(?m)^<details>.*$", "", outside)  # HTML, in which Markdown is not read
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<script" not in outside
    assert "](http" not in outside
    for text in (markdown_report(many_kinds()), junit_report(many_kinds())):
        assert "<summary>FAIL <code>a.py:F[<script>" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<script" not in junit_report(many_kinds())


@pytest.mark.parametrize("text", NASTY)
def test_code_in_markdown_is_fenced_by_more_than_it_holds(text: str) -> None:
    span, block = code_span(text), code_block(text)
    fence = re.match("`+", span)
    assert fence is not None
    assert fence[0] not in re.split(r"[^`]+", span.strip("`"))
    assert block.splitlines()[0] not in printable(text)


@pytest.mark.parametrize("name", list(WHOLE))
def test_every_format_is_utf_8_without_control_characters(name: str) -> None:
    text = renderer(name)(many_kinds())
    text.encode("utf-8")
    assert text.endswith("\n")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)


def test_every_suffix_leads_to_a_format() -> None:
    assert SUFFIXES == {
        ".json": "json", ".ndjson": "ndjson", ".xml": "junit", ".sarif": "sarif", ".md": "markdown", ".html": "html",
    }  # fmt: skip
    for name in SUFFIXES.values():
        assert renderer(name)(report(PASSED)) == renderer(name)(report(PASSED))


def test_a_failed_case_without_a_finding_is_not_lost() -> None:
    bare = replace(FAILED, findings=(), notes=("resolution 1e-3, and 1e-6 is required",))
    assert annotations(report(bare))[0].startswith("::error title=failed%3A")
    (failure,) = ElementTree.fromstring(junit_report(report(bare))).iter("failure")
    assert "1e-6 is required" in str(failure.get("message"))
    assert "FAIL" in markdown_report(report(bare))


def test_a_run_of_many_cases_is_written_in_one_pass() -> None:
    whole = Report(cases=(PASSED, FAILED) * 2500)
    assert junit_report(whole).count("<testcase") == 5000
    assert len(json.loads(sarif_report(whole))["runs"][0]["results"]) == 2500
    assert Verdict.FAILED is whole.verdict
