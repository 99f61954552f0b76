"""The report as JSON lines: one case a line as it becomes known, then one line for the run."""

import json

from gradcli.results import CheckResult, Report


def ndjson_case(result: CheckResult) -> str:
    """The line of one case."""
    return json.dumps(result.to_dict(), allow_nan=False) + "\n"


def ndjson_summary(report: Report) -> str:
    """The last line: the document of the run without its cases."""
    document = report.to_dict()
    del document["cases"]
    return json.dumps(document, allow_nan=False) + "\n"


def ndjson_report(report: Report) -> str:
    """All lines."""
    return "".join([*(ndjson_case(case) for case in report.cases), ndjson_summary(report)])
