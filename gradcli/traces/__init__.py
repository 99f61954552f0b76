"""What one forward and backward pass did: the graph, the hook calls and the symptoms, as frozen values."""

from gradcli.traces.fates import GraphCut, TensorFate
from gradcli.traces.faults import MOST_CHECKED, NodeCheck, NonFinite, UnseenWrite, VersionConflict, WrongNode
from gradcli.traces.graph import SCHEMA, TraceGraph
from gradcli.traces.hooks import HookCall, HookRegistration
from gradcli.traces.memory import Held, MemoryLedger, MemoryPeak, SavedTensor, Storage
from gradcli.traces.nodes import Edge, TraceNode
from gradcli.traces.summaries import ArraySummary, SourceSite

__all__ = [
    "MOST_CHECKED",
    "SCHEMA",
    "ArraySummary",
    "Edge",
    "GraphCut",
    "Held",
    "HookCall",
    "HookRegistration",
    "MemoryLedger",
    "MemoryPeak",
    "NodeCheck",
    "NonFinite",
    "SavedTensor",
    "SourceSite",
    "Storage",
    "TensorFate",
    "TraceGraph",
    "TraceNode",
    "UnseenWrite",
    "VersionConflict",
    "WrongNode",
]
