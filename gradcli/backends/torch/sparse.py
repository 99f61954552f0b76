"""PyTorch's sparse tensors: made around a vector of entries, to which the gradient belongs, and taken apart."""

import warnings
from typing import Any

import numpy as np

from gradcli.cases import Argument, Sparsity
from gradcli.errors import UsageError


def is_sparse(value: object) -> bool:
    """Whether `value` is a tensor of a layout other than the dense one."""
    import torch

    return isinstance(value, torch.Tensor) and value.layout is not torch.strided


def sparse_tensor(entries: Any, sparsity: Sparsity) -> Any:
    """The sparse tensor with these entries; its gradient flows back to them, whatever layout backward gives it."""
    import torch

    places = torch.tensor(np.array(sparsity.indices, dtype=np.int64).reshape(-1, len(sparsity.shape)).T.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that checks are off, and that CSR is young
        whole = torch.sparse_coo_tensor(places, entries, sparsity.shape, is_coalesced=True, check_invariants=False)
        return whole if sparsity.layout == "coo" else whole.to_sparse_csr()


def adopted_sparse(name: str, value: Any) -> Argument:
    """The argument that a caller's sparse tensor is.

    Raises:
        UsageError: its layout is neither COO nor CSR, or it has dense dimensions.
    """
    import torch

    layouts = {torch.sparse_coo: "coo", torch.sparse_csr: "csr"}
    if value.layout not in layouts or value.dense_dim():
        raise UsageError(
            f"{name}: expected a sparse tensor in COO or CSR layout without dense dimensions, got "
            f"{str(value.layout).removeprefix('torch.')} of shape {list(value.shape)} with {value.dense_dim()} dense "
            "dimensions; convert it with to_dense().to_sparse() or to_dense().to_sparse_csr()"
        )
    whole = value.detach()
    whole = (whole if value.layout is torch.sparse_coo else whole.to_sparse_coo()).coalesce()
    indices = tuple(tuple(int(i) for i in place) for place in whole.indices().t().tolist())
    return Argument(
        name=name,
        value=np.array(whole.values().numpy()),
        is_tensor=True,
        requires_grad=bool(value.requires_grad),
        sparsity=Sparsity(layout=layouts[value.layout], shape=tuple(value.shape), indices=indices),
    )
