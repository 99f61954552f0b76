"""`vmap`: a function called for each index of its arguments' axes, and what it returns stacked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType
from typing import Any

import numpy as np

from gradcli.engine.func.arguments import called
from gradcli.engine.generator import get_rng_state, set_rng_state
from gradcli.engine.grad_mode import STATE, enable_grad, no_grad
from gradcli.engine.ops.joining import stack
from gradcli.engine.tensor import Tensor
from gradcli.engine.utils.trees import leaves, rebuilt, spread, structure

_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)

_WRITTEN = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic."
)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that runs `func` for each index of its arguments' axes, and stacks what it returns.

    Args:
        func: a function of tensors, or of nested tuples, lists and dicts of them.
        in_dims: the axis of every argument's tensors, or a tuple of one for each argument, nested as that is; None for
            what is shared.
        out_dims: the axis along which results are stacked, or a tuple of one for each output.
        randomness: "error" refuses random numbers; the calls draw equal ones with "same", and others with "different".
        chunk_size: has no effect: the calls follow each other.

    Raises:
        RuntimeError: `randomness` is another word.
        ValueError: there is no such axis, lengths differ, or the function returns something else than tensors.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        name = _name(func)
        _require_places(out_dims, name)
        values, dims, size = _taken_apart(args, in_dims, name)
        state = get_rng_state() if randomness == "same" else None
        shared = _Shared(func, values, dims, leaves(kwargs))
        results = []
        with _random_numbers(refused=randomness == "error"):
            # An empty axis needs one call all the same, for the shapes of what is returned.
            for index in range(max(size, 1)):
                if state is not None:
                    set_rng_state(state)
                given = [
                    value if dim is None else _at(value, dim, index) for value, dim in zip(values, dims, strict=True)
                ]
                shared.put_back()
                results.append(called(func, rebuilt(args, given), kwargs))
                shared.compare()
        return _put_together(results, out_dims, name, size)

    return run


class _Shared:
    """The tensors that all calls see: each call finds their first values, and all must leave the same.

    One call on batched tensors, as PyTorch makes it, writes once, and cannot write what differs between the entries.

    Args:
        func: the function that is mapped; what its body names outside of it is shared too.
        values: its arguments, and
        dims: the axis of each that is mapped over; what shares memory with these is not shared by the calls.
        further: other arguments.
    """

    def __init__(self, func: Callable[..., Any], values: list[Any], dims: list[int | None], further: list[Any]) -> None:
        whole = [value for value, dim in zip(values, dims, strict=True) if dim is None]
        mapped = [value._data for value, dim in zip(values, dims, strict=True) if dim is not None]
        found = {id(v): v for v in [*whole, *further, *_named_outside(func)] if isinstance(v, Tensor)}
        self._tensors = [
            value for value in found.values() if not any(np.may_share_memory(value._data, other) for other in mapped)
        ]
        self._first = [(value._data.copy(), value._version, value._edge()) for value in self._tensors]
        self._left: dict[int, Any] = {}

    def put_back(self) -> None:
        """Give what has been written to its first values again."""
        for place in self._left:
            array, version, edge = self._first[place]
            tensor = self._tensors[place]
            tensor._data[...] = array
            if tensor._base is None and not tensor._requires_grad:
                tensor._grad_fn, tensor._output_nr = edge
            tensor._shared_counter().value = version

    def compare(self) -> None:
        """Note what a call has written.

        Raises:
            RuntimeError: the call before wrote something else, or what was written depends on a tracked tensor.
        """
        for place, (tensor, (_, version, _)) in enumerate(zip(self._tensors, self._first, strict=True)):
            if tensor._version == version and place not in self._left:
                continue
            before = self._left.setdefault(place, tensor._data.copy())
            if tensor.grad_fn is not None or not np.array_equal(
                before, tensor._data, equal_nan=before.dtype.kind in "fc"
            ):
                self.put_back()
                raise RuntimeError(_WRITTEN)


def _named_outside(func: Callable[..., Any]) -> list[Any]:
    """Return the values, in containers or not, of the variables outside of a function that its body names."""
    while isinstance(func, functools.partial):
        func = func.func
    func = getattr(func, "__func__", func)
    if not inspect.isfunction(func):  # it is not written in Python
        return []
    held = [cell.cell_contents for cell in func.__closure__ or () if cell != CellType()]
    named = [func.__globals__[name] for name in func.__code__.co_names if name in func.__globals__]
    return [leaf for value in (*held, *named) for leaf in leaves(value)]


def _at(tensor: Tensor, dim: int, index: int) -> Tensor:
    if tensor._data.shape[dim]:
        return tensor.select(dim, index)
    shape = list(tensor._data.shape)
    del shape[dim]
    return tensor.new_zeros(shape)


@contextmanager
def _random_numbers(*, refused: bool) -> Iterator[None]:
    """Refuse random numbers, or let them be drawn."""
    before, STATE.why_no_random = STATE.why_no_random, _RANDOM if refused else None
    try:
        yield
    finally:
        STATE.why_no_random = before


def _name(func: Callable[..., Any]) -> str:
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))


def _require_places(out_dims: Any, name: str) -> None:
    for place in leaves(out_dims):
        if place is not None and not isinstance(place, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints representing where in the outputs the vmapped dimension should appear."
            )


def _taken_apart(args: tuple[Any, ...], in_dims: Any, name: str) -> tuple[list[Any], list[int | None], int]:
    """Return the leaves of the arguments, the axis of each, and how long all of these are."""
    who = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{who}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    values, dims = leaves(args), spread(in_dims, args)
    if dims is None:
        raise ValueError(
            f"{who}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{structure(in_dims)} but inputs has structure {structure(args)}."
        )
    for value, dim in zip(values, dims, strict=True):
        _require_axis(value, dim, who)
    sizes = [value.size(dim) for value, dim in zip(values, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) != 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return values, dims, sizes[0]


def _require_axis(value: Any, dim: Any, who: str) -> None:
    """Raise ValueError for an axis that this input does not have."""
    if dim is None:
        return
    if not isinstance(dim, int):
        raise ValueError(
            f"{who}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{who}: Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    count = value._data.ndim
    if not -count <= dim < count:
        raise ValueError(
            f"{who}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {count} so expected "
            f"in_dim to satisfy -{count} <= in_dim < {count}."
        )


def _put_together(results: list[Any], out_dims: Any, name: str, size: int) -> Any:
    """Return the results of all calls in the containers of the first."""
    first = results[0]
    single = isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(first, Tensor)
    places = list(out_dims) if single else spread(out_dims, first)
    if places is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {structure(out_dims)} but outputs has structure {structure(first)}."
        )
    columns = zip(*[leaves(result) for result in results], strict=True)
    return rebuilt(
        first, [_joined(list(column), place, name, size) for column, place in zip(columns, places, strict=True)]
    )


def _joined(column: list[Any], place: int | None, name: str, size: int) -> Any:
    """Return one output of all calls, stacked along an axis; the first, which is every one, for None."""
    first = column[0]
    if place is None:
        if isinstance(first, Tensor) and any(_differs(first, entry) for entry in column[1:]):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return first
    if not isinstance(first, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    with enable_grad() if any(entry.requires_grad for entry in column) else no_grad():
        joined = stack(column, place)
        return joined if size else joined.narrow(place, 0, 0)


def _differs(first: Tensor, other: Tensor) -> bool:
    return first is not other and not np.array_equal(first._data, other._data)
