"""The difference of two traces: nodes gone and added, gradients that part first, hooks that fired otherwise."""

import json

import pytest

from gradcli.cli.commands.trace_difference import compared, read_document
from gradcli.errors import UsageError
from gradcli.reporters.graph.difference import difference_text
from gradcli.reporters.graph.json_document import trace_document
from gradcli.tracing.difference import difference
from tests.tracing.tracing import traced

N = 40


def between(framework, first, second):
    documents = [json.loads(trace_document(traced(framework, run))) for run in (first, second)]
    return difference(*documents, ("first", "second"))


def program(framework, *, extra=False, factor=None, sign=1.0, scale=1.0, roll=0, seen=True):
    """sin and exp of a leaf, with what the keywords change about it."""

    def loss():
        x = framework.linspace(-1.0, 1.0, N, dtype=framework.float64).requires_grad_()
        y = framework.sin(x * scale)
        if factor is not None:
            y.register_hook(lambda g: g * factor)
        if extra:
            y = framework.tanh(y)
        weights = framework.roll(framework.linspace(1.0, 2.0, N, dtype=framework.float64), roll)
        value = (y * (weights * sign)).sum()
        if seen:
            value.backward()
        return value

    return loss


def test_the_same_program_has_no_difference(framework):
    found = between(framework, program(framework), program(framework))
    assert found.is_empty
    assert "no recorded differences" in difference_text(found)


@pytest.mark.sampled(1)
def test_a_node_that_came_in_is_added_and_the_other_way_round_gone(framework):
    plain, more = program(framework), program(framework, extra=True)
    found = between(framework, plain, more)
    assert [(node.name, node.first) for node in found.added] == [("TanhBackward0", None)]
    assert found.gone == ()
    back = between(framework, more, plain)
    assert [(node.name, node.second) for node in back.gone] == [("TanhBackward0", None)]
    assert back.added == ()
    assert "1 node added\n  + TanhBackward0" in difference_text(found)


@pytest.mark.parametrize("change", [{"scale": 1.01}, {"sign": -1.0}, {"roll": 1}], ids=str)
def test_gradients_part_at_the_node_whose_rule_gives_something_else(framework, change):
    """Also where norms are equal: a changed sign, and the same numbers in another order."""
    found = between(framework, program(framework), program(framework, **change))
    where = {gradient.node.name for gradient in found.parted}
    first = {"scale": "SinBackward0", "sign": "MulBackward0", "roll": "MulBackward0"}[next(iter(change))]
    assert next(gradient.node.name for gradient in found.parted) == first, where
    assert [leaf.what for leaf in found.leaves] == ["x.grad"]
    assert found.added == found.gone == ()


def test_differences_of_rounding_are_none(framework):
    found = between(framework, program(framework), program(framework, scale=1.0 + 1e-15))
    assert found.parted == ()
    assert found.leaves == ()


def test_a_hook_that_does_something_else_is_where_gradients_part(framework):
    found = between(framework, program(framework, factor=1.0), program(framework, factor=3.0))
    (hook,) = found.hooks
    assert (hook.first, hook.second) == ("unchanged", "returned a new value: 3x")
    (parted,) = found.parted
    assert (parted.node.name, parted.what) == ("SinBackward0", "the gradient that came in")
    assert parted.gap == pytest.approx(2 / 3)


def test_a_hook_that_fired_only_in_one_is_named(framework):
    found = between(framework, program(framework), program(framework, factor=3.0))
    (hook,) = found.hooks
    assert (hook.first, hook.second) == (None, "returned a new value: 3x")
    assert "did not fire → returned a new value: 3x" in difference_text(found)


def test_symptoms_that_came_and_went_are_told(framework):
    def sound():
        x = framework.ones(3, dtype=framework.float64).requires_grad_()
        return (x * x).sum()

    def cut():
        x = framework.ones(3, dtype=framework.float64).requires_grad_()
        y = framework.ones(3, dtype=framework.float64).requires_grad_()
        return (x.detach() * y).sum()

    found = between(framework, sound, cut)
    assert (found.symptoms_gone, found.symptoms_added) == ((), ("detached",))
    (leaf,) = [leaf for leaf in found.leaves if leaf.what == "x.grad"]
    assert (leaf.second, leaf.gap) == ("None", None)


@pytest.mark.sampled(1)
def test_long_graphs_are_aligned_without_comparing_all_with_all(framework):
    def chain(length, odd):
        def loss():
            value = framework.ones(1, dtype=framework.float64).requires_grad_()
            for step in range(length):
                value = framework.cos(value) if step == odd else framework.sin(value)
            return value.sum()

        return loss

    found = between(framework, chain(300, 100), chain(300, 200))
    assert sorted(node.name for node in found.gone + found.added) == ["CosBackward0", "CosBackward0"] + [
        "SinBackward0"
    ] * (len(found.gone + found.added) - 2)
    assert len(found.gone) == len(found.added) <= 2


# --- the command


def graph_of(framework):
    return lambda name, seed: traced(framework, program(framework, scale=float(name) + (seed or 0)))


@pytest.mark.sampled(1)
def test_a_side_is_a_target_a_file_or_another_seed(framework, tmp_path):
    run = graph_of(framework)
    written = tmp_path / "before.json"
    written.write_text(trace_document(run("1", None)), encoding="utf-8")
    for other, empty in (("1", True), ("2", False), (str(written), True), ("seed=0", True), ("seed=1", False)):
        text, code = compared("1", other, run, "json")
        document = json.loads(text)
        assert code == 0
        assert document["schema"] == "gradcli.trace-difference/1"
        assert (document["parted"] == []) == empty, other
    assert "no recorded differences" in compared(str(written), str(written), run, "tree")[0]


def test_what_is_no_trace_is_refused(tmp_path):
    other = tmp_path / "other.json"
    with pytest.raises(UsageError, match="cannot be read"):
        read_document(str(other))
    other.write_text("{")
    with pytest.raises(UsageError, match="expected the JSON document of a trace"):
        read_document(str(other))
    other.write_text('{"schema": "gradcli.report/1"}')
    with pytest.raises(UsageError, match=r"expected a trace \(schema gradcli.trace/1\)"):
        read_document(str(other))
    with pytest.raises(UsageError, match="cannot be run again with another seed"):
        compared(str(other), "seed=3", lambda name, seed: None, "json")
