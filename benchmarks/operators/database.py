"""PyTorch's operator database as functions of tensors: each operator at its first sample inputs."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An operator at one of its sample inputs.

    `function` maps the tensors that require a gradient to the tensors that the operator returns; everything else of
    the sample is kept inside. `twice` says whether the operator offers a second derivative, `nondet_tol` what its
    entry in the database allows two backward passes to differ by.
    """

    operator: str
    number: int
    function: Callable[..., Tensors]
    tensors: Tensors
    twice: bool
    nondet_tol: float


def operators(dtype: torch.dtype, *, in_place: bool = False) -> list[Any]:
    """The entries of the database that offer a gradient in `dtype`; only those with an in-place variant if asked."""
    with warnings.catch_warnings():
        # The database warns of parts of NumPy and PyTorch that its own imports use.
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    offered = [o for o in op_db if o.supports_autograd and dtype in o.dtypes and dtype in o.backward_dtypes]
    return [o for o in offered if o.get_inplace() is not None] if in_place else offered


def title(entry: Any) -> str:
    """The operator's name with its variant's."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)


def samples(entry: Any, dtype: torch.dtype, count: int, *, in_place: bool = False, largest: int = 400) -> list[Sample]:
    """The first `count` samples of an operator with a tensor to differentiate by and at most `largest` entries."""
    seed_all(0)
    drawn = entry.sample_inputs("cpu", dtype, requires_grad=True)
    return list(islice(_usable(entry, drawn, in_place=in_place, largest=largest), count))


def _usable(entry: Any, drawn: Any, *, in_place: bool, largest: int) -> Iterator[Sample]:
    for number, sample in enumerate(islice(drawn, 40)):
        if in_place and sample.broadcasts_input:
            continue
        leaves, structure = tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        if in_place:
            places = [place for place in places if leaves[place] is sample.input]
        tensors = tuple(leaves[place].detach() for place in places)
        if not places or any(t.layout is not torch.strided for t in tensors):
            continue
        size = sum(t.numel() for t in tensors)
        if not 0 < size <= largest:
            continue
        operation = entry.get_inplace() if in_place else entry.get_op()
        function = _function(entry, operation, sample, leaves, structure, places, in_place=in_place)
        if not _usable_outputs(function, tensors):
            continue
        yield Sample(
            operator=title(entry),
            number=number,
            function=function,
            tensors=tensors,
            twice=bool(entry.supports_gradgrad),
            nondet_tol=float(entry.gradcheck_nondet_tol),
        )


def _usable_outputs(function: Callable[..., Tensors], tensors: Tensors) -> bool:
    """Whether there is anything to compare: an output with entries that carries a gradient.

    A sample that needs its input to be a view into a larger storage cannot be run on copies.
    """
    try:
        return any(output.requires_grad and output.numel() for output in function(*fresh(tensors)))
    except RuntimeError as error:
        if "out of bounds for storage" in str(error):
            return False
        raise


def _function(
    entry: Any, operation: Any, sample: Any, leaves: list[Any], structure: Any, places: list[int], *, in_place: bool
) -> Callable[..., Tensors]:
    constants = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def function(*tensors: torch.Tensor) -> Tensors:
        # Some operators write into what they are given: running statistics, outputs.
        filled = [kept.clone() if isinstance(kept, torch.Tensor) else kept for kept in constants]
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor.clone() if in_place else tensor
        first, arguments, keywords = tree_unflatten(filled, structure)
        found = entry.gradcheck_wrapper(operation, first, *arguments, **keywords)
        return tensors_of(sample.output_process_fn_grad(found))

    return function


def tensors_of(result: Any) -> Tensors:
    """The tensors in a nested result, in order."""
    return tuple(leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor))


def fresh(tensors: Tensors) -> Tensors:
    """Copies that require a gradient."""
    return tuple(tensor.clone().requires_grad_() for tensor in tensors)


def seed_all(seed: int) -> None:
    """Reset every generator that sample inputs are drawn from."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
