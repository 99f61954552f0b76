"""What the trace calls things: copies, the phase of an error, paths, targets that cannot be run, causes of zeros."""

import os
import re
import sys

import pytest

from gradcli.errors import TargetError
from gradcli.reporters.graph.tree import tree
from gradcli.runner.trace import trace_target
from tests.tracing.tracing import fate, traced


def test_a_copy_in_place_is_named_as_one(framework):
    def program():
        x = framework.ones(2, requires_grad=True)
        buffer = framework.zeros(2)
        buffer.copy_(x)
        (buffer * 2).sum().backward()

    why = fate(traced(framework, program), "buffer").why
    assert ".copy_() from x" in why or "with copy from x" in why
    assert ".to()" not in why


def test_a_conversion_is_named_as_it_is_written(framework):
    def program():
        x = framework.ones(2, requires_grad=True)
        moved = x.to(framework.float64) if x.dtype is framework.float32 else x.to(framework.float32)
        (moved * 2).sum().backward()

    assert ".to(framework.float" in fate(traced(framework, program), "moved").why


def leave(framework, *, after: bool):
    x = framework.ones(2, requires_grad=True)
    unused = framework.ones(2, requires_grad=True)
    y = (x * 2).sum()
    if after:
        y.backward()
    sys.exit(7 + 0 * len(unused))


def test_what_raises_after_backward_is_not_forward(framework):
    graph = traced(framework, lambda: leave(framework, after=True))
    assert "after backward, the program raised SystemExit: 7" in tree(graph)
    assert fate(graph, "unused").symptom == "not-reached"


def test_what_raises_before_backward_is_forward(framework):
    graph = traced(framework, lambda: leave(framework, after=False))
    assert "forward raised SystemExit: 7" in tree(graph)


def test_paths_are_relative_to_where_the_trace_began(framework, monkeypatch):
    monkeypatch.chdir(os.path.dirname(__file__))

    def program():
        os.chdir("/")
        x = framework.ones(2, requires_grad=True)
        (x * 2).sum().backward()

    graph = trace_target(program)
    assert {node.site.file for node in graph.nodes if node.site is not None} == {"test_labels.py"}


async def started():
    raise AssertionError


def generator():
    yield 1


class Called:
    async def __call__(self):
        raise AssertionError


@pytest.mark.parametrize(("target", "kind"), [(started, "async"), (generator, "generator"), (Called(), "async")])
def test_a_target_whose_call_runs_nothing_is_refused(target, kind):
    with pytest.raises(TargetError, match=re.escape(kind)):
        trace_target(target)


def test_the_question_says_zero_once(framework):
    def program():
        x = framework.ones(2, requires_grad=True)
        (x - x).sum().backward()

    text = tree(traced(framework, program))
    assert re.search(r"why is x\.grad zero\?   the gradients from .* cancel", text)
