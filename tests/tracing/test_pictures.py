"""The pictures of a trace: the tree, the table, Graphviz, Mermaid and JSON."""

import json
import re
import shutil
import subprocess

import pytest

from gradcli.reporters.graph.drawings import dot, mermaid
from gradcli.reporters.graph.json_document import trace_document
from gradcli.reporters.graph.table import table
from gradcli.reporters.graph.tree import Tone, tree, tree_lines
from gradcli.traces import ArraySummary, Edge, SourceSite, TensorFate, TraceGraph, TraceNode
from tests.programs.hook_network import program
from tests.tracing.tracing import traced

ODD = 'a "quoted" <b> & #1; `x` \\ [y]\n%'


def number(*values, shape=None):
    return ArraySummary(shape=shape or (len(values),), dtype="float64", norm=1.0, values=values)


@pytest.fixture
def small():
    """exp feeds a product twice; its leaf has a name that no language likes."""
    site = SourceSite(file="train.py", line=7)
    nodes = (
        TraceNode(
            id=0, name="MulBackward0", edges=(Edge(target=1, slot=0), Edge(target=1, slot=0)), site=site, executed=True,
            gradients_in=(number(1.0),), gradients_out=(number(2.0), number(2.0)),
        ),
        TraceNode(
            id=1, name="ExpBackward0", edges=(Edge(target=2, slot=0),), site=site, executed=True, saved_bytes=8,
            gradients_in=(number(4.0),), gradients_out=(number(8.0),),
        ),
        TraceNode(
            id=2, name="AccumulateGrad", edges=(), variable=ODD, executed=True, gradients_in=(number(8.0),),
            output=number(0.5),
        ),
    )  # fmt: skip
    fate = TensorFate(name=ODD, is_leaf=True, requires_grad=True, grad=number(8.0), node=2)
    return TraceGraph(
        target="t", backend="engine", nodes=nodes, tensors=(fate,), result=number(4.0), root_name="loss", passes=1
    )


def test_tree_writes_a_shared_node_once_and_refers_to_it(small):
    lines = tree(small).splitlines()
    assert lines[0] == "loss = [4]   forward 2 nodes · backward 3 nodes · saved 8 B"
    assert re.match(r"└─ MulBackward0 +train.py:7 ", lines[1])
    assert re.match(r"   ├─ ExpBackward0 #1 +train.py:7 ", lines[2])
    assert tree(small).count("train.py:7") == 2
    assert re.search(r"└─ ExpBackward0 +#1 \(above\)", tree(small))
    assert "grad [1] → ([2], [2])" in tree(small)
    assert ".grad = [8]" in tree(small)


def test_tree_elides_what_is_too_much_and_says_how_much(small):
    assert "2 more nodes (--max-nodes)" in tree(small, max_nodes=1)
    assert "ExpBackward0" not in tree(small, max_nodes=1)
    assert "2 more nodes (--max-nodes)" in table(small, max_nodes=1)


def test_tree_is_cut_or_folded_to_a_width_only_when_asked(framework):
    graph = traced(framework, program(framework, "linear_then_quarter", "register_full_backward_hook", convert=True))
    assert max(len(line.text) for line in tree_lines(graph, width=60)) <= 60
    assert "…" not in tree(graph)
    assert {line.tone for line in tree_lines(graph)} >= {Tone.RESULT, Tone.NODE, Tone.LEAF, Tone.HOOK, Tone.WHY}


def test_tree_tells_the_story_of_the_moved_input(framework):
    text = tree(
        traced(framework, program(framework, "linear_then_quarter", "register_full_backward_hook", convert=True))
    )
    assert text.startswith("result = [20.5]   forward ")
    assert "hooks, in the order they fired\n  1  module-full  Net.hook on Net" in text
    assert re.search(r"why is x\.grad None\?   x is not a leaf: \S+hook_network.py:\d+ computes it with "
                     r"\.to\(framework\.float64\) from x0; x0\.grad is filled\n", text)  # fmt: skip
    assert (
        "why is input.grad None?   input is not a leaf: it is a copy of x0, made by a module with a full back" in text
    )
    assert text.endswith("), which copies all its inputs; x0.grad is filled\n")


def test_table_has_one_line_a_node(small):
    rows = table(small).splitlines()
    assert rows[1].split() == ["id", "node", "feeds", "from", "module", "type", "saved", "gradients"]
    assert rows[2].split()[:4] == ["0", "MulBackward0", "1,1", "train.py:7"]
    assert len(rows) >= 5


def test_dot_is_a_digraph_with_every_edge_and_safe_labels(small):
    text = dot(small)
    assert text.startswith("digraph trace {\n")
    assert text.endswith("}\n")
    assert text.count("n0 -> n1;") == 2
    assert text.count("n1 -> n2;") == 1
    label = re.search(r'n2 \[label="((?:[^"\\]|\\.)*)", style', text)
    assert label is not None
    assert 'a \\"quoted\\" <b> & #1; `x` \\\\ [y]\\n%' in label[1]


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed, and nothing needs it")
def test_graphviz_accepts_dot(small):
    done = subprocess.run(["dot", "-Tsvg"], input=dot(small), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_mermaid_escapes_what_it_would_read_as_markup(small):
    text = mermaid(small)
    assert text.startswith("flowchart TD\n")
    lines = text.splitlines()[1:]
    assert all(re.fullmatch(r'  n\d+(\["[^"]*"\]|\(\["[^"]*"\]\))|  n\d+ --> n\d+', line) for line in lines)
    leaf = next(line for line in lines if line.startswith("  n2(["))
    assert "a #quot;quoted#quot; #lt;b#gt; #amp; #35;1; #96;x#96;" in leaf
    assert mermaid(small, max_nodes=1).count("-->") == 0
    assert "%% 2 more nodes" in mermaid(small, max_nodes=1)


def test_json_is_one_document_with_every_key(framework):
    graph = traced(framework, program(framework, "quarter_then_linear", "register_full_backward_hook", convert=True))
    document = json.loads(trace_document(graph))
    assert document["schema"] == "gradcli.trace/1"
    assert {"nodes", "hooks", "tensors", "effects", "lints", "symptoms", "cuts", "error", "result"} <= set(document)
    assert document["symptoms"] == ["moved-leaf"]
    assert document["hooks"][0]["kind"] == "module-full"
    assert document["hooks"][0]["before"][0]["values"] == [2.0] * 4
    assert document["nodes"][0]["site"]["line"] > 0


def test_json_is_the_document_with_a_line_for_each_node(framework):
    graph = traced(framework, program(framework, "quarter_then_linear", "register_full_backward_hook", convert=True))
    text = trace_document(graph)
    assert json.loads(text) == json.loads(json.dumps(graph.to_dict()))
    assert [json.loads(line.strip().rstrip(","))["id"] for line in text.splitlines() if '"edges"' in line] == [
        node.id for node in graph.nodes
    ]


def test_json_has_words_for_what_is_not_finite(framework):
    def loss():
        x = framework.tensor([1.0], requires_grad=True)
        y = x * 1
        y.register_hook(lambda g: g * float("inf"))
        return y.sum()

    document = json.loads(trace_document(traced(framework, loss)))
    assert document["hooks"][0]["after"][0]["values"] == ["inf"]
    assert document["tensors"][0]["grad"]["norm"] == "inf"
