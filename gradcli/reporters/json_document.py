"""The report as one JSON document, schema gradcli.report/1."""

import json

from gradcli.results import Report


def json_report(report: Report) -> str:
    """The document with a final newline; ASCII only, so that no encoding can break it."""
    return json.dumps(report.to_dict(), indent=1, allow_nan=False) + "\n"
