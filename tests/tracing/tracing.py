"""What the tests of the trace share: running a program on a framework, and reading what was recorded."""

import gc
import inspect
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from gradcli.diagnosis.symptoms.rules import explain_trace
from gradcli.traces import HookCall, SourceSite, TensorFate, TraceGraph
from gradcli.tracing.passes import trace_call


def traced(framework: ModuleType, run: Callable[[], object], **options: Any) -> TraceGraph:
    return explain_trace(trace_call(framework, run, target="test", backend=framework.__name__, **options))


def untraced_and_traced(framework: ModuleType, program: Callable[[Any], object], made: list[Any]) -> TraceGraph:
    """The trace of a program that puts its leaves into `made`.

    Tracing must change no bit of a gradient, and keep no leaf alive.
    """

    def gradients(run: Callable[[], object]) -> tuple[list[str | None], list[weakref.ref[Any]]]:
        made.clear()
        framework.manual_seed(1)
        run()
        found = [None if leaf.grad is None else str(leaf.grad.tolist()) for leaf in made]
        references = [weakref.ref(leaf) for leaf in made]
        made.clear()
        return found, references

    graphs: list[TraceGraph] = []
    plain, _ = gradients(lambda: program(framework))
    while_traced, references = gradients(lambda: graphs.append(traced(framework, lambda: program(framework))))
    assert while_traced == plain
    gc.collect()
    assert [reference() for reference in references] == [None] * len(references)
    return graphs[0]


def fate(graph: TraceGraph, name: str) -> TensorFate:
    return next(found for found in graph.tensors if name in (found.name, *found.aliases))


def grads(graph: TraceGraph) -> dict[str, Any]:
    return {f.name: None if f.grad is None else list(f.grad.values or ()) for f in graph.tensors if f.is_leaf}


def before(call: HookCall) -> list[list[float] | None]:
    return [None if g is None else list(g.values or ()) for g in call.before]


def after(call: HookCall) -> list[list[float] | None]:
    return [None if g is None else list(g.values or ()) for g in call.after]


def shapes(call: HookCall) -> list[list[int] | None]:
    return [None if g is None else list(g.shape) for g in call.before]


def line_of(module: ModuleType, text: str) -> int:
    """The only line of a module's source that ends with `text`."""
    lines = inspect.getsource(module).splitlines()
    found = [number for number, line in enumerate(lines, start=1) if line.endswith(text)]
    assert len(found) == 1, f"{text!r} is on the lines {found}"
    return found[0]


def at(site: SourceSite | None, module: ModuleType, text: str) -> bool:
    """Whether a site is the line of a module that ends with `text`."""
    assert site is not None
    return module.__file__ is not None and module.__file__.endswith(site.file) and site.line == line_of(module, text)
