"""Every row of the catalogue gives PyTorch's values, types, shapes, gradients and second gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gradcli import engine
from gradcli.engine.catalogue import Operation, operations

torch = pytest.importorskip("torch", reason="the reference for these values is PyTorch")


def _outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _run(namespace: Any, row: Operation, arrays: list[Any], weights: np.random.Generator) -> dict[str, Any]:
    """Return values, first gradients, and gradients of a random product of the first gradients."""
    tensors = [namespace.tensor(array, requires_grad=True) for array in arrays]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = _outputs(row.call(namespace, *tensors))
    record: dict[str, Any] = {
        "values": [output.detach().numpy(force=True) for output in outputs],
        "dtypes": [str(output.dtype) for output in outputs],
        "tracked": [output.requires_grad for output in outputs],
    }
    tracked = [output for output in outputs if output.requires_grad]
    if not tracked:
        return record
    seeds = [namespace.tensor(weights.normal(size=tuple(output.shape)), requires_grad=True) for output in tracked]
    first = namespace.autograd.grad(tracked, tensors, seeds, create_graph=True, allow_unused=True)
    record["first"] = [None if entry is None else entry.detach().numpy(force=True) for entry in first]
    second = [entry for entry in first if entry is not None and entry.requires_grad]
    if not second:
        return record
    again = [namespace.tensor(weights.normal(size=tuple(entry.shape))) for entry in second]
    try:
        found = namespace.autograd.grad(second, tensors + seeds, again, allow_unused=True)
    except RuntimeError as error:
        if namespace is not engine and "is not implemented" in str(error):  # by PyTorch, for cdist or hardsigmoid
            return record | {"stops": True}
        raise
    record["second"] = [None if entry is None else entry.detach().numpy(force=True) for entry in found]
    return record


# PyTorch's derivative of hardsigmoid holds 1/6 in single precision.
PRECISION = {"hardsigmoid": 1e-7}


def _zeros_for_none(entries: list[Any], like: list[Any]) -> list[Any]:
    return [np.zeros(np.shape(other)) if entry is None else entry for entry, other in zip(entries, like, strict=True)]


@pytest.mark.parametrize("row", operations(), ids=lambda row: row.name)
def test_row_agrees_with_torch(row: Operation) -> None:
    for number, samples in enumerate(row.samples):
        source = np.random.default_rng(number)
        arrays = [sample.draw(source) for sample in samples]
        ours = _run(engine, row, arrays, np.random.default_rng(7))
        theirs = _run(torch, row, arrays, np.random.default_rng(7))
        assert ours["dtypes"] == theirs["dtypes"]
        assert ours["tracked"] == theirs["tracked"]
        for mine, reference in zip(ours["values"], theirs["values"], strict=True):
            assert mine.shape == reference.shape
            np.testing.assert_allclose(mine, reference, rtol=1e-9, atol=1e-11)
        shapes = arrays + [value for value, flag in zip(ours["values"], ours["tracked"], strict=True) if flag]
        for order in ("first", "second"):
            if (order not in ours and order not in theirs) or (order == "second" and "stops" in theirs):
                continue
            like = shapes if order == "second" else arrays
            mine_all = _zeros_for_none(ours.get(order, [None] * len(like)), like)
            reference_all = _zeros_for_none(theirs.get(order, [None] * len(like)), like)
            for mine, reference in zip(mine_all, reference_all, strict=True):
                assert mine.shape == reference.shape, order
                np.testing.assert_allclose(
                    mine, reference, rtol=PRECISION.get(row.name, 1e-8), atol=1e-10, err_msg=f"{order}, sample {number}"
                )
