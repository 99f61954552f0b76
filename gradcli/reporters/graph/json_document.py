"""A trace as one JSON document, schema gradcli.trace/1."""

import json

from gradcli.traces import TraceGraph


def trace_document(graph: TraceGraph) -> str:
    """The document; numbers that JSON has no words for are the strings "nan", "inf" and "-inf"."""
    return json.dumps(graph.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
