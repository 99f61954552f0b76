"""What a report shows besides the verdict, on request: figures, tables of entries, and hook calls."""

from collections.abc import Sequence

from gradcli.backends.base import Subject
from gradcli.backends.tensor.function_backend import FunctionBackend
from gradcli.checks.figures import figures_of
from gradcli.checks.gradient_tables import gradient_tables
from gradcli.errors import GradcliError
from gradcli.figures import Figures
from gradcli.results import Evidence
from gradcli.runner.arguments.prepare import Prepared
from gradcli.runner.traceable import trace_arguments
from gradcli.traces import TraceGraph


def drawn(
    ready: Prepared, subject: Subject, evidence: Sequence[Evidence], *, seed: int, before: Figures | None
) -> Figures:
    """The figures asked for; tables and hooks are those of `before` if no gradient was compared since."""
    settings, known = ready.case.settings, before or Figures()
    found = figures_of(subject, evidence, seed=seed) if settings.figures else Figures()
    tables = gradient_tables(subject, evidence, seed=seed) if settings.tables else ()
    trace = _hooks(ready, subject, seed) if settings.tables and known.trace is None else known.trace
    return Figures(blocks=found.blocks, curve=found.curve, tables=tables or known.tables, trace=trace)


def _hooks(ready: Prepared, subject: Subject, seed: int) -> TraceGraph | None:
    """One forward and backward at the subject's arguments, as `gradcli trace` shows it, where hooks fired in it."""
    if not subject.has_graph or not isinstance(ready.backend, FunctionBackend):
        return None
    own = {name for name, _ in ready.info.held}
    given = [argument for argument in subject.arguments if argument.name not in own]
    try:
        graph = trace_arguments(ready.target, ready.backend, given, ready.case.spec.target, seed)
    except GradcliError:  # the checks have said what the target does not take
        return None
    return graph if graph.hooks else None
