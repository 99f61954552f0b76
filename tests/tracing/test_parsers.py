"""The real parsers accept the pictures of a trace, and read in them what was meant: Mermaid's and Graphviz's."""

import html
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from gradcli.reporters.graph.drawings import dot, mermaid
from gradcli.traces import Edge, SourceSite, TraceGraph, TraceNode
from tests.programs.hook_network import program
from tests.tracing.tracing import traced

HERE = Path(__file__).parent / "parsers"
HOSTILE = (
    'a "quoted" <b> & #1; `x` \\ [y]', "end", "</script><img src=x>", "%% no comment", "]); n0 --> n1", "}", "-->|x|",
    "Klasse<T>::näm\u202e e", "tab\tnew\nline", "#quot;", "&amp;", "ends with \\", "subgraph", "{{ }}",
    "click n0 call f()",
)  # fmt: skip


def chain(count):
    """`count` nodes one after the other, and as many edges less one."""
    site = SourceSite(file="net.py", line=7)
    nodes = tuple(
        TraceNode(id=n, name="SinBackward0", edges=(Edge(target=n + 1, slot=0),) if n < count - 1 else (), site=site)
        for n in range(count)
    )
    return TraceGraph(target="deep", backend="engine", nodes=nodes, passes=1)


def hostile():
    """A node for each text that a parser could take for its own language; each feeds the next, the first one twice."""
    nodes = tuple(
        TraceNode(
            id=place, name="AccumulateGrad" if place == len(HOSTILE) - 1 else name, variable=name, executed=True,
            edges=tuple(Edge(target=place + 1, slot=0) for _ in range(2 if place == 0 else place < len(HOSTILE) - 1)),
        )
        for place, name in enumerate(HOSTILE)
    )  # fmt: skip
    return TraceGraph(target=HOSTILE[0], backend="engine", nodes=nodes, passes=1, root_name=HOSTILE[-3])


def edges_of(graph):
    return [[f"n{n.id}", f"n{edge.target}"] for n in graph.nodes for edge in n.edges if edge.target is not None]


# --- Mermaid


@cache
def modules() -> Path:
    """The folder in which npm installed Mermaid."""
    found = Path(os.environ.get("GRADCLI_TEST_MERMAID") or HERE)
    if shutil.which("node") is None or not (found / "node_modules" / "mermaid").is_dir():
        pytest.skip("needs node and Mermaid: npm install --prefix tests/tracing/parsers")
    return found


def mermaid_reads(**texts):
    done = subprocess.run(
        ["node", str(HERE / "mermaid.mjs")],
        cwd=modules(), input=json.dumps(texts), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def plain(label):
    """A label as it is shown: Mermaid keeps entities in a notation of its own until it draws."""
    entities = label.replace("ﬂ°°", "&#").replace("ﬂ°", "&").replace("¶ß", ";")
    return html.unescape(entities.replace("<br>", "\n").replace("<br/>", "\n"))


def test_mermaid_reads_every_node_edge_and_name():
    from gradcli import engine

    real = traced(engine, program(engine, "linear_then_quarter", "register_full_backward_hook", convert=True))
    odd = hostile()
    read = mermaid_reads(real=mermaid(real), odd=mermaid(odd), some=mermaid(odd, max_nodes=3))
    assert [answer.get("error") for answer in read.values()] == [None] * 3
    assert {answer["type"] for answer in read.values()} == {"flowchart-v2"}
    for name, graph in (("real", real), ("odd", odd)):
        assert list(read[name]["labels"]) == [f"n{node.id}" for node in graph.nodes]
        assert read[name]["edges"] == edges_of(graph)
    shown = {key: plain(label).split("\n")[0] for key, label in read["odd"]["labels"].items()}
    expected = {f"n{n}": re.sub(r"\s+", " ", name.replace("\u202e", "")) for n, name in enumerate(HOSTILE[:-1])}
    assert {key: re.sub(r"\s+", " ", shown[key].replace("\u202e", "")) for key in expected} == expected
    assert [len(read["some"][part]) for part in ("labels", "edges")] == [3, 3]


def test_mermaid_refuses_the_same_texts_without_their_escapes():
    text = mermaid(hostile())
    broken = {
        "quote": text.replace("#quot;", '"', 1),
        "bracket": text.replace('["', "[", 1),
        "arrow": text.replace("-->", "--", 1) + "  n0 -->\n",
    }
    read = mermaid_reads(whole=text, **broken)
    assert [name for name, answer in read.items() if "error" not in answer] == ["whole"]


def test_a_picture_that_mermaid_refuses_for_its_size_says_so():
    most, more = mermaid(chain(501)), mermaid(chain(502))
    assert ("%%" in most, "%% Mermaid draws at most 500 edges" in more) == (False, True)
    read = mermaid_reads(most=most, more=more)
    assert len(read["most"]["edges"]) == 500
    assert "Edge limit" in read["more"]["error"]


# --- Graphviz


def graphviz(program_name, text, *options):
    if shutil.which(program_name) is None:
        pytest.skip("needs Graphviz, for example Debian's package graphviz")
    done = subprocess.run([program_name, *options], input=text, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_graphviz_reads_every_node_edge_and_name():
    code, out, err = graphviz("dot", dot(hostile()), "-Tjson")
    assert (code, err) == (0, "")
    read = json.loads(out)
    assert [(edge["tail"], edge["head"]) for edge in read["edges"]] == [
        (int(tail[1:]), int(head[1:])) for tail, head in edges_of(hostile())
    ]
    labels = [node["label"].replace("\\n", "\n").replace("\\\\", "\\") for node in read["objects"]]
    shown = [re.sub(r"\s+", " ", label) for label in labels]
    assert all(re.sub(r"\s+", " ", name) in label for name, label in zip(HOSTILE[:-1], shown, strict=False)), shown


def test_graphviz_counts_twenty_thousand_nodes():
    code, out, err = graphviz("gc", dot(chain(20_000)), "-n", "-e")
    assert (code, err) == (0, "")
    assert re.findall(r"\d+", out)[:2] == ["20000", "19999"]


def test_graphviz_refuses_the_same_text_without_an_escape():
    code, _, err = graphviz("dot", dot(hostile()).replace('\\"', '"', 1), "-Tjson")
    assert code != 0 or err != ""
    assert "syntax error" in err
