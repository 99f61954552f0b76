"""A trace as one HTML page: the graph folded by module, the hooks linked to their nodes, values on demand."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from gradcli.reporters.escaping import lines_of, markup, one_line
from gradcli.reporters.graph.memory import memory_lines
from gradcli.reporters.graph.tree import change, meaning, tree
from gradcli.reporters.graph.wording import LEAF_NODES, headline, hook_site, output_kind, place, values
from gradcli.reporters.html.frame import asset, page
from gradcli.traces import TraceGraph, TraceNode

_WITHOUT_SCRIPT = 200
_KEYS = (
    ("/", "search"),
    ("↑ ↓ ← →", "along the graph; fold and unfold in the list"),
    ("Enter", "fold or unfold a module; in the search, go to the first match"),
    ("+ - 0", "zoom in, zoom out, fit the whole graph"),
    ("h", "the next hook call"),
    ("Esc", "end the search"),
)


def trace_page(graph: TraceGraph) -> str:
    """The page. Text of the user's is escaped or set as text, and the policy allows the page's own script alone."""
    return page(
        f"gradcli trace: {one_line(graph.target)}",
        style=asset("page.css") + asset("trace.css"),
        script=asset("trace_layout.js") + asset("trace_list.js") + asset("trace.js"),
        body=_body(graph),
        about=f" · {len(graph.nodes)} nodes · {markup(graph.backend)}",
    )


def _body(graph: TraceGraph) -> Iterator[str]:
    first, facts = headline(graph)
    yield "<header>"
    yield f"<h1>{markup(one_line(graph.target))}</h1>"
    yield f'<p><code>{markup(one_line(first))}</code> <span class="soft">{markup(facts)}</span></p>'
    yield from _meaning(graph)
    yield "</header>"
    yield '<main class="trace" hidden>'
    yield from _panes(graph)
    yield "</main>"
    text = "\n".join(lines_of(tree(graph, max_nodes=_WITHOUT_SCRIPT)))
    yield f'<pre id="plain">{markup(text)}</pre>'
    yield f'<script type="application/json" id="trace-data">{_embedded(trace_data(graph))}</script>'


def _meaning(graph: TraceGraph) -> Iterator[str]:
    """What went wrong and why, and the ledger, above the graph."""
    lines = [*dict.fromkeys(graph.effects), *(line.text for line in meaning(graph))]
    if lines:
        yield '<ul class="meaning">'
        yield from (f"<li>{markup(one_line(text.strip()))}</li>" for text in lines)
        yield "</ul>"
    if graph.memory is not None:
        text = "\n".join(list(memory_lines(graph))[1:])
        yield f"<details><summary>Memory of this backward pass</summary><pre>{markup(text)}</pre></details>"


def _panes(graph: TraceGraph) -> Iterator[str]:
    yield '<div class="tools" role="search" aria-label="Nodes">'
    yield '<input type="search" id="search" aria-label="Search nodes" placeholder="Search nodes (press /)">'
    yield '<button type="button" id="fold">Fold modules</button><button type="button" id="unfold">Unfold all</button>'
    yield '<button type="button" id="whole">Show all</button>'
    yield '<span id="count" class="soft" role="status" aria-live="polite"></span></div>'
    yield '<section class="pane" id="outline" role="tree" tabindex="0" aria-label="Nodes by module"></section>'
    yield '<section class="pane picture"><canvas id="picture" tabindex="0" role="img" '
    yield 'aria-label="The graph; the list of nodes next to it holds the same"></canvas></section>'
    yield '<section class="pane" id="details" aria-label="The chosen node" aria-live="polite"></section>'
    if graph.hooks:
        yield f'<h2>Hooks, in the order they fired <span class="soft">({len(graph.hooks)})</span></h2>'
        yield '<section class="pane" id="hooks" role="listbox" tabindex="0" aria-label="Hook calls"></section>'
    elif graph.backend == "jax":
        yield "<h2>Hooks</h2><p>JAX has no hooks: a function is transformed as a whole.</p>"
    keys = " · ".join(f"<kbd>{markup(key)}</kbd> {markup(what)}" for key, what in _KEYS)
    yield f'<p class="soft keys">{keys}</p>'


# --- what the script reads
def trace_data(graph: TraceGraph) -> dict[str, Any]:
    """The nodes as columns, texts that occur often by number, and the hook calls, all of it plain text."""
    names, places, kinds = _Texts(), _Texts(), _Texts()
    modules, module_of = _modules(graph)
    gradients = {fate.node: values(fate.grad) for fate in graph.tensors if fate.is_leaf and fate.node is not None}
    saved: dict[int, list[str]] = {}
    for tensor in () if graph.memory is None else graph.memory.saved:
        shape = "×".join(map(str, tensor.shape))
        saved.setdefault(tensor.node, []).append(one_line(f"{tensor.name} {tensor.dtype}[{shape}]"))
    wrong = {found.node for found in graph.wrong_nodes}
    nodes = graph.nodes
    return {
        "names": [names.number(node.name) for node in nodes],
        "places": [places.number(place(node)) for node in nodes],
        "kinds": [kinds.number(output_kind(node)) for node in nodes],
        "texts": {"names": names.texts, "places": places.texts, "kinds": kinds.texts},
        "modules": [[one_line(path.rpartition(".")[2]), parent] for path, parent in modules],
        "module": module_of,
        "edges": [[edge.target for edge in node.edges if edge.target is not None] for node in nodes],
        "leaf": [int(node.name in LEAF_NODES) for node in nodes],
        "ran": [int(node.executed) for node in nodes],
        "bad": [int(node.id in wrong or _is_bad(node)) for node in nodes],
        "taken": [[values(gradient) for gradient in node.gradients_in] for node in nodes],
        "given": [[values(gradient) for gradient in node.gradients_out] for node in nodes],
        "grad": {str(node): one_line(text) for node, text in gradients.items()},
        "rules": {str(node.id): one_line(str(node.rule)) for node in nodes if node.rule is not None},
        "bytes": [node.saved_bytes for node in nodes],
        "saved": {str(node): texts for node, texts in saved.items()},
        "hooks": [
            [
                call.kind,
                one_line(f"{call.function} on {call.owner}"),
                one_line(hook_site(call)),
                one_line(change(call)),
                one_line(call.effect),
                None if call.warning is None else one_line(call.warning),
                call.node,
            ]
            for call in graph.hooks
        ],
    }


class _Texts:
    """Texts, each once, by number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of a text."""
        if text not in self._numbers:
            self._numbers[text] = len(self.texts)
            self.texts.append(one_line(text))
        return self._numbers[text]


def _modules(graph: TraceGraph) -> tuple[list[tuple[str, int]], list[int]]:
    """The modules, each after the one it is part of, and the number of each node's; -1 is outside of all.

    A leaf belongs where the first node lies that feeds it.
    """
    own: dict[int, str] = {}
    for node in graph.nodes:
        if node.module is not None:
            own[node.id] = node.module
        for edge in node.edges:
            if edge.target is not None and node.id in own and graph.nodes[edge.target].name in LEAF_NODES:
                own.setdefault(edge.target, own[node.id])
    numbers: dict[str, int] = {}
    modules: list[tuple[str, int]] = []
    for path in dict.fromkeys(own.values()):
        parts = path.split(".")
        for end in range(1, len(parts) + 1):
            above, name = ".".join(parts[: end - 1]), ".".join(parts[:end])
            if name not in numbers:
                numbers[name] = len(modules)
                modules.append((name, numbers.get(above, -1)))
    return modules, [numbers[own[node.id]] if node.id in own else -1 for node in graph.nodes]


def _is_bad(node: TraceNode) -> bool:
    """Whether a node made NaN or Inf of gradients without."""
    return _not_finite(node.gradients_out) and not _not_finite(node.gradients_in)


def _not_finite(summaries: Iterable[Any]) -> bool:
    return any(summary is not None and summary.non_finite for summary in summaries)


def _embedded(data: object) -> str:
    """JSON that ends no element of HTML, whatever text is in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
