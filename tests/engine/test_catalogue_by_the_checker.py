"""gradcli's checker passes all rows at orders 1 and 2, a third of the rules at 3, and fails each rule off by 0.1 %."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gradcli import engine
from gradcli.backends.base import Subject
from gradcli.backends.registry import backend_named
from gradcli.cases import Argument
from gradcli.engine.catalogue import Operation, Sample, operations
from gradcli.engine.graph import AccumulateGrad, Node
from gradcli.engine.in_place import CopySlices
from gradcli.numerics.outcome import Outcome
from gradcli.numerics.verify import verify

ORDERS = (1, 2, 3)
# A rule that gives nothing but zeros is the same when it is off by a factor.
NOT_RECORDED = {
    "AliasBackward0": "hands its cotangent on, for forward mode alone",
    "BernoulliBackward0": "gives nothing but zeros",
    "CopySlices": "has its own rule beside the one inside it, and is planted through that",
    "ExtremeBackward": "is the base of others",
    "FillBackward": "is the base of another",
    "FlatBackward": "gives nothing but zeros, for comparisons in place",
    "FullFactorBackward0": "refuses",
    "NextafterBackward0": "has steps as small as the numbers lie apart, which no difference quotient sees",
    "NotImplemented": "refuses",
    "PickBackward": "is the base of others",
    "Unique2Backward0": "refuses",
    "UniqueConsecutiveBackward0": "refuses",
    "UniqueDimBackward0": "refuses",
}
ZERO_RULES = {
    "SignBackward0",
    "RoundBackward0",
    "FloorBackward0",
    "CeilBackward0",
    "TruncBackward0",
    "ZeroBackward0",
    "DivBackward2",
}


def smallest(row: Operation) -> tuple[Sample, ...]:
    """Return the samples of a row with the fewest elements that are not none or all one."""
    sizes = {samples: [int(np.prod(sample.shape)) for sample in samples] for samples in row.samples}
    filled = [samples for samples in row.samples if min(sizes[samples]) > 0]
    wide = [samples for samples in filled if max(sizes[samples]) > 1]
    return min(wide or filled, key=lambda samples: sum(sizes[samples]))


def bound(row: Operation) -> Subject:
    """Return a row, at random inputs, as the checker sees a user's function."""
    source = np.random.default_rng(0)
    arguments = [
        Argument(name=f"x{number}", value=sample.draw(source), is_tensor=True, requires_grad=True)
        for number, sample in enumerate(smallest(row))
    ]
    return backend_named("engine").bind(lambda *tensors: row.call(engine, *tensors), arguments)


def outcomes(subject: Subject, order: int) -> list[Outcome]:
    """Return what the checker finds for every block of one order."""
    found = verify(subject.derivative_map(order), subject.base_point(order, 0), seed=0)
    return [block.outcome for block in found.blocks]


def below(tensors: list[Any]) -> dict[type[Node], None]:
    """Return the classes of the nodes that some tensors were computed by."""
    stack = [tensor.grad_fn for tensor in tensors if tensor is not None and tensor.grad_fn is not None]
    seen: dict[Node, None] = {}
    while stack:
        node = stack.pop()
        if node not in seen and not isinstance(node, AccumulateGrad):
            seen[node] = None
            stack.extend(following for following, _ in node.next_functions if following is not None)
            stack.extend([node.inner] if isinstance(node, CopySlices) else [])
    return dict.fromkeys(type(node) for node in seen)


def rules(row: Operation) -> dict[type[Node], int]:
    """Return the classes of the nodes that a row records, each with the order of derivative that first runs it."""
    source = np.random.default_rng(0)
    tensors = [engine.tensor(sample.draw(source), requires_grad=True) for sample in smallest(row)]
    result = row.call(engine, *tensors)
    outputs = [y for y in (result if isinstance(result, (tuple, list)) else [result]) if y.requires_grad]
    found = dict.fromkeys(below(outputs), 1)
    seeds = [engine.tensor(source.normal(size=tuple(y.shape)), dtype=y.dtype, requires_grad=True) for y in outputs]
    first = engine.autograd.grad(outputs, tensors, seeds, create_graph=True, allow_unused=True)
    return dict.fromkeys(below(list(first)), 2) | found


def off(honest: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose results are a thousandth too large."""

    def wrong(node: Node, *cotangents: Any) -> Any:
        results = honest(node, *cotangents)
        if isinstance(results, tuple):
            return tuple(None if entry is None else entry * 1.001 for entry in results)
        return None if results is None else results * 1.001

    return wrong


@functools.cache
def plan() -> dict[str, list[tuple[type[Node], int]]]:
    """Return, for each row, the rules to plant wrong in it: every rule once, at the lowest order that runs it."""
    found = [(order, row.name, kind) for row in operations() for kind, order in rules(row).items()]
    chosen: dict[type[Node], tuple[int, str]] = {}
    for order, name, kind in found:
        if kind.__name__ not in ZERO_RULES and order < chosen.get(kind, (9, ""))[0]:
            chosen[kind] = order, name
    result: dict[str, list[tuple[type[Node], int]]] = {}
    for kind, (order, name) in chosen.items():
        result.setdefault(name, []).append((kind, order))
    return result


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", operations(), ids=lambda row: row.name)
def test_right_rules_pass_and_wrong_ones_fail(row: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        subject = bound(row)
        third = row.name in plan() and sum(row.name.encode()) % 3 == 0
        for order in ORDERS if third else ORDERS[:2]:
            found = outcomes(subject, order)
            assert found, f"order {order}: nothing to check"
            assert set(found) == {Outcome.AGREES}, f"order {order}"
        for kind, order in plan().get(row.name, []):
            with monkeypatch.context() as patch:
                patch.setattr(kind, "_vjp", off(kind._vjp))
                assert Outcome.DIFFERS in outcomes(bound(row), order), f"{kind.__name__} off by 0.1 % was accepted"


def test_every_rule_of_the_engine_is_recorded_by_some_row() -> None:
    recorded = {kind for row in operations() for kind in rules(row)}
    written = {kind for kind in every_rule(Node) if "_vjp" in vars(kind) and not kind.__name__.startswith("_")}
    names = {kind.__name__ for base in written for kind in (base, *every_rule(base))} - {
        kind.__name__ for kind in recorded
    }
    assert not (missing := names - NOT_RECORDED.keys()), sorted(missing)


def every_rule(kind: type[Node]) -> Iterator[type[Node]]:
    """Yield all subclasses of a node class."""
    for below in kind.__subclasses__():
        if not inspect.isabstract(below) and below.__module__.startswith("gradcli.engine"):
            yield below
        yield from every_rule(below)
