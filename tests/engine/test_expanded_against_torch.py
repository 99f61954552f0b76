"""Writing to an expanded tensor is accepted and refused as PyTorch does it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from gradcli import engine

torch = pytest.importorskip("torch")

WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "zero_": lambda _, z: z.zero_(),
    "fill_": lambda _, z: z.fill_(2.0),
    "fill_ with a tensor": lambda t, z: z.fill_(t.tensor(3.0)),
    "add_": lambda _, z: z.add_(1),
    "copy_": lambda t, z: z.copy_(t.ones(2, 3)),
    "clamp_": lambda _, z: z.clamp_(0, 1),
    "relu_": lambda _, z: z.relu_(),
    "masked_fill_": lambda t, z: z.masked_fill_(t.tensor([[True, False, False], [False, True, False]]), 1.5),
    "index_fill_": lambda t, z: z.index_fill_(1, t.tensor([0]), 4.0),
    "a row": lambda _, z: z.__setitem__(0, 5.0),
    "a row of a tensor": lambda t, z: z.__setitem__(0, t.ones(3)),
    "all": lambda _, z: z.__setitem__(slice(None), 5.0),
    "a column": lambda _, z: z.__setitem__((slice(None), 1), 5.0),
    "a mask": lambda t, z: z.__setitem__(t.tensor([[True, False, False], [False, True, False]]), 1.5),
    "positions": lambda t, z: z.__setitem__((t.tensor([0]), t.tensor([1])), 1.5),
}


def outcome(namespace: Any, write: Callable[[Any, Any], Any], tracked: bool) -> Any:
    """Return what was written and its gradient, or the refusal, which for a tracked tensor may come in backward."""
    base = namespace.tensor([1.0, 2.0, 3.0], requires_grad=tracked)
    whole = base * 1 if tracked else base
    expanded = whole.expand(2, 3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            write(namespace, expanded)
    except RuntimeError as error:
        return str(error)[:60] if tracked else (str(error)[:60], whole.tolist(), whole._version)
    try:
        if tracked:
            ((expanded * expanded).sum() + whole.sum()).backward()
    except RuntimeError as error:
        return str(error)[:60]
    return expanded.tolist(), whole.tolist(), whole._version, base.grad.tolist() if tracked else None


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_writes_agree(name: str, tracked: bool) -> None:
    assert outcome(engine, WRITES[name], tracked) == outcome(torch, WRITES[name], tracked)


def test_a_read_only_part_of_an_expanded_tensor_is_written_where_the_mask_holds() -> None:
    for namespace in (engine, torch):
        whole = namespace.zeros(3, 1)
        whole.expand(3, 2)[:, 0][namespace.tensor([True, False, True])] = 5.0
        assert whole.tolist() == [[5.0], [0.0], [5.0]]
