"""Sparse inputs, made functions of dense tensors: of their values alone, or of every entry."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from gradcli.tolerance.problem import Function, is_tensor, names_of

Rebuild = Callable[[Any], Any]


def dense_form(torch: ModuleType, function: Function, inputs: tuple[Any, ...], masked: bool) -> tuple[Function, Any]:
    """The same function of dense leaves in the place of its tracked sparse inputs.

    Args:
        torch: the framework.
        function: takes the inputs as they are.
        inputs: sparse tensors among them.
        masked: differentiate by the entries that are stored only; else by all, those that are not stored being zero.

    Raises:
        ValueError: a layout other than COO, CSR and CSC.
    """
    rebuilds: dict[int, Rebuild] = {}
    leaves = list(inputs)
    for place, value in enumerate(inputs):
        if is_tensor(value) and value.requires_grad and _is_sparse(torch, value):
            leaves[place], rebuilds[place] = _taken_apart(torch, value.detach(), masked)
    if not rebuilds:
        return function, inputs

    def of_leaves(*values: Any) -> Any:
        return function(*(rebuilds[i](v) if i in rebuilds else v for i, v in enumerate(values)))

    return of_leaves, tuple(leaves)


def _is_sparse(torch: ModuleType, tensor: Any) -> bool:
    return (
        "layout" in names_of(tensor)
        and str(tensor.layout).startswith("torch.sparse")
        and tensor.layout != torch.strided
    )


def _taken_apart(torch: ModuleType, tensor: Any, masked: bool) -> tuple[Any, Rebuild]:
    """The leaf that stands for a sparse tensor, and how to make the tensor of it."""
    size = tensor.size()
    if tensor.layout is torch.sparse_coo:
        if masked:
            places, values = tensor._indices(), tensor._values()
            coalesced = bool(tensor.is_coalesced())
        else:
            dense = tensor.to_dense()
            places = torch.ones(size[: tensor.sparse_dim()], device=tensor.device).nonzero().t()
            values, coalesced = dense.reshape(-1, *size[tensor.sparse_dim() :]), True

        def coo(leaf: Any) -> Any:
            return torch.sparse_coo_tensor(places, leaf, size, is_coalesced=coalesced, check_invariants=False)

        return _leaf(values), coo
    return _compressed(torch, tensor, masked)


def _compressed(torch: ModuleType, tensor: Any, masked: bool) -> tuple[Any, Rebuild]:
    """CSR and CSC; where every entry counts, with zeros stored explicitly."""
    layout = tensor.layout
    if layout not in (torch.sparse_csr, torch.sparse_csc) or tensor.dim() != 2:
        raise ValueError(
            f"gradcheck takes sparse inputs in the layouts COO, CSR and CSC with two axes, got {layout} with shape "
            f"{list(tensor.shape)}: pass a dense tensor and convert it inside the function"
        )
    by_rows = layout is torch.sparse_csr
    outer, inner = tensor.shape if by_rows else tensor.shape[::-1]
    if masked:
        starts = tensor.crow_indices() if by_rows else tensor.ccol_indices()
        places = tensor.col_indices() if by_rows else tensor.row_indices()
        values = tensor.values()
    else:
        dense = tensor.to_dense() if by_rows else tensor.to_dense().t()
        starts = torch.arange(0, outer * inner + 1, max(inner, 1), device=tensor.device)
        places = torch.arange(inner, device=tensor.device).repeat(outer)
        values = dense.reshape(-1)

    def compressed(leaf: Any) -> Any:
        return torch.sparse_compressed_tensor(starts, places, leaf, tensor.shape, layout=layout, check_invariants=False)

    return _leaf(values), compressed


def _leaf(values: Any) -> Any:
    return values.detach().clone().requires_grad_()
