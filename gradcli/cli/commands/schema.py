"""`gradcli schema`: the JSON Schema of specs, for editors and other tools."""

import json

from gradcli.cli.output.streams import report_stream


def schema_command() -> int:
    """Print the JSON Schema of specs."""
    stream = report_stream()
    stream.write(schema_text())
    stream.flush()
    return 0


def schema_text() -> str:
    """The schema as JSON, one key a line."""
    from gradcli.spec.json_schema import spec_schema

    return json.dumps(spec_schema(), indent=1) + "\n"
