"""What the puzzles share: short programs with one mistake each, and what the trace must say about it."""

import inspect
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from gradcli.reporters.graph.tree import meaning
from gradcli.traces import TraceGraph
from tests.tracing.tracing import untraced_and_traced

_WATCHED: list[Any] = []
"""The leaves of the program that runs: their gradients must be the same untraced and traced."""


def leaf(f: ModuleType, n: int = 3) -> Any:
    return watched(f.tensor([0.5 * (i + 1) for i in range(n)], requires_grad=True))


def watched(*_leaves: Any) -> Any:
    """Add leaves of a program to those compared; the underscore keeps the trace from naming them after this."""
    _WATCHED.extend(_leaves)
    return _leaves[0]


def told(graph: TraceGraph) -> list[str]:
    return [*dict.fromkeys(graph.effects), *(line.text for line in meaning(graph))]


def check_answer(framework: ModuleType, program: Callable[[Any], object], answer: str) -> None:
    """Trace a program; `{here}` in the answer is the place of its line that ends in `# here`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of divisions by zero and the like, which are the mistakes
        lines = told(untraced_and_traced(framework, program, _WATCHED))
    pattern = answer.format(here=_here(program)) if "{here}" in answer else answer
    assert any(re.search(pattern, line) for line in lines), "\n".join(lines)


def _here(program: Callable[[Any], object]) -> str:
    source, first = inspect.getsourcelines(program)
    number = next(n for n, line in enumerate(source, start=first) if line.rstrip().endswith("# here"))
    name = (inspect.getsourcefile(program) or "").rpartition("/")[2]
    return rf"\S*{re.escape(name)}:{number}\b"
