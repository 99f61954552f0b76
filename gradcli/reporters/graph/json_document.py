"""A trace as one JSON document, schema gradcli.trace/1."""

import json
from typing import Any

from gradcli.traces import TraceGraph


def trace_document(graph: TraceGraph) -> str:
    """The document; numbers that JSON has no words for are the strings "nan", "inf" and "-inf".

    Each node, hook call and tensor has a line of its own. An indent throughout would need the encoder that is not
    compiled, and three times as long.
    """
    parts = (f" {_text(key)}: {_in_lines(value)}" for key, value in graph.to_dict().items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _in_lines(value: Any) -> str:
    if not (isinstance(value, list) and value):
        return _text(value)
    return "[\n  " + ",\n  ".join(map(_text, value)) + "\n ]"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
