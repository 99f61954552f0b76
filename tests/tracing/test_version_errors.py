"""Where backward finds a saved tensor changed, the trace names the operation that saved it and the one that wrote."""

import re
import sys

import pytest

from tests.tracing.tracing import line_of, traced

HERE = sys.modules[__name__]
NAME = __file__.rsplit("/", 1)[-1]


def leaf(f, *values):
    return f.tensor(list(values), requires_grad=True)


def placed(sentence):
    """The sentence with each {mark} replaced by the line that ends with it."""
    return re.sub(r"\{(# .*?)\}", lambda found: f"{NAME}:{line_of(HERE, found[1])}", sentence)


def stripped(text):
    return re.sub(r"[^\s(]*/(?=test_version_errors)", "", text)


def changed_output(f):
    y = f.exp(leaf(f, 1.0, 2.0))  # saves its output
    y += 1  # changes it
    y.sum().backward()


def changed_operand(f):
    x, w = leaf(f, 1.0, 2.0), leaf(f, 3.0, 4.0)
    y = x * w  # saves its operand
    with f.no_grad():
        w.mul_(2)  # changes the operand
    y.sum().backward()


def changed_entry(f):
    y = f.sigmoid(leaf(f, 1.0, 2.0))  # saves all
    z = y * 2
    y[0] = 0.0  # changes one entry
    z.sum().backward()


def changed_by_an_optimizer(f):
    w = leaf(f, 1.0, 2.0)
    optimizer = f.optim.SGD([w], lr=0.1)
    first, second = (w * w).sum(), (w**3).sum()  # saves the weight
    first.backward()
    optimizer.step()  # steps
    second.backward()


def changed_twice(f):
    y = f.tanh(leaf(f, 1.0, 2.0))  # saves tanh
    y.mul_(2)  # first change
    y.add_(1)
    y.sum().backward()


def changed_beside_another(f):
    c, other = f.tensor([1.0, 2.0]), f.tensor([3.0, 4.0])
    y = leaf(f, 1.0, 2.0) * c  # saves c
    other.add_(1)
    other.mul_(2)
    c.mul_(3)  # changes c
    y.sum().backward()


def changed_through_a_view(f):
    c, other = f.tensor([[1.0, 2.0]]), f.tensor([[3.0, 4.0]])
    y = leaf(f, 1.0, 2.0) * c  # multiplies by c
    other.add_(1)
    c[0].add_(3)  # changes a row
    c.mul_(2)
    y.sum().backward()


def changed_by_an_argument(f):
    h = f.sigmoid(leaf(f, 1.0, 2.0))  # saves h
    f.nn.functional.relu(h, inplace=True).sum().backward()  # overwrites h


def changed_by_an_argument_without_its_name(f):
    h = f.sigmoid(leaf(f, 1.0, 2.0))  # saves its result
    f.nn.functional.relu(h, True).sum().backward()  # overwrites the result


def changed_by_adam(f):
    w = leaf(f, 1.0, 2.0)
    optimizer = f.optim.Adam([w], lr=0.1)
    first, second = (w * w).sum(), (w**3).sum()  # saves w
    first.backward()
    optimizer.step()  # Adam steps
    second.backward()


CHANGES = [
    (changed_beside_another, "MulBackward0 at {# saves c} saved the tensor for backward, and mul_ at {# changes c}"),
    (changed_through_a_view, "MulBackward0 at {# multiplies by c} saved the tensor for backward, and add_ at "
     "{# changes a row}"),
    (changed_by_an_argument, "SigmoidBackward0 at {# saves h} saved the tensor for backward, and relu at "
     "{# overwrites h}"),
    (changed_by_an_argument_without_its_name, "SigmoidBackward0 at {# saves its result} saved the tensor for "
     "backward, and relu at {# overwrites the result}"),
    (changed_by_adam, "PowBackward0 at {# saves w} saved the tensor for backward, and add"),
    (changed_output, "ExpBackward0 at {# saves its output} saved the tensor for backward, and add_ at {# changes it}"),
    (changed_operand, "MulBackward0 at {# saves its operand} saved the tensor for backward, and mul_ at {# changes the "
     "operand}"),
    (changed_entry, "SigmoidBackward0 at {# saves all} saved the tensor for backward, and setitem at "
     "{# changes one entry}"),
    (changed_by_an_optimizer, "PowBackward0 at {# saves the weight} saved the tensor for backward, and add_ at "
     "{# steps}"),
    (changed_twice, "TanhBackward0 at {# saves tanh} saved the tensor for backward, and mul_ at {# first change}"),
]  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("program", "sentence"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_version_error_names_the_two_lines(framework, program, sentence):
    graph = traced(framework, lambda: program(framework))
    assert graph.error_phase == "backward"
    assert stripped(graph.error_hint).startswith(placed(sentence)), graph.error_hint


def test_an_operation_that_returns_its_input_unchanged_is_no_write(framework):
    def program():
        h = framework.tanh(leaf(framework, 1.0, 2.0))  # saves tanh twice
        framework.nn.functional.dropout(h, 0.5, True, False)
        h.to(h.dtype, True)
        h.mul_(2)  # doubles it
        h.sum().backward()

    expected = placed("TanhBackward0 at {# saves tanh twice} saved the tensor for backward, and mul_ at {# doubles it}")
    assert stripped(traced(framework, program).error_hint).startswith(expected)
