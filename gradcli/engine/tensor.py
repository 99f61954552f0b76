"""The Tensor: an array, the edge it hangs on in the graph, and nothing about operations.

Operations are bound to the class by `interface/methods.py`; type checkers see them through `interface/typed/`.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.backward.grad_attribute import NOT_A_LEAF, check_fits_as_grad, check_nothing_returned, not_a_tensor
from gradcli.engine.dtypes import BY_NUMPY, CPU, Array, Size, device, dtype, get_default_dtype
from gradcli.engine.grad_mode import STATE
from gradcli.engine.graph import NO_INPUT, AccumulateGrad, Edge, Hooks, Node, Saved, changed_message, operation_name
from gradcli.engine.module_name import PRINTED_MODULE
from gradcli.engine.refusals import (
    CANNOT_REQUIRE,
    DATA_OF_INTEGERS,
    FLAG_OF_RESULT,
    UNTRACKED_BASE_WRITTEN,
    VIEW_DETACHED,
)
from gradcli.engine.utils.hooks import RemovableHandle, add_hook

if TYPE_CHECKING:
    from gradcli.engine.interface.typed.methods import TensorSignatures
else:
    TensorSignatures = object


class Counter:
    """How often the memory that several tensors share has been written to."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Tensor(Saved, TensorSignatures):
    """An n-dimensional array that records what is computed from it.

    `Tensor(2, 3)` is uninitialised memory in the default dtype; `Tensor(data)` copies data into the default dtype.
    """

    _data: Array
    _grad: Tensor | None = None
    _grad_fn: Node | None = None
    _output_nr: int = 0
    _requires_grad: bool = False
    _counter: Counter | None = None
    _accumulator: weakref.ref[AccumulateGrad] | None = None
    _base: Tensor | None = None
    _replay: Callable[[Tensor], Tensor] | None = None
    _replay_version: int = 0
    _relaid: tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]] | None = None
    _created_without_grad: bool = False
    _why_not_written: str | None = None
    _backward_hooks: Hooks | None = None
    _post_accumulate_grad_hooks: Hooks | None = None
    _retains_grad: bool = False
    __array_priority__ = 1000

    def __init__(self, *sizes: Any) -> None:
        kind = get_default_dtype().numpy
        if len(sizes) == 1 and not isinstance(sizes[0], (int, Size)):
            source = sizes[0]._data if isinstance(sizes[0], Tensor) else sizes[0]
            self._data = np.array(source, dtype=kind)
        else:
            self._data = np.empty(sizes[0] if len(sizes) == 1 else sizes or (0,), dtype=kind)

    # --- what it is
    @property
    def shape(self) -> Size:
        """The length of each axis."""
        return Size(self._data.shape)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return BY_NUMPY[self._data.dtype]

    @property
    def device(self) -> device:
        """Where the elements live: always the CPU."""
        return CPU

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._data.ndim

    @property
    def is_cuda(self) -> bool:
        """False: the engine computes on the CPU."""
        return False

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._data.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._data.nbytes

    # --- its place in the graph
    @property
    def grad_fn(self) -> Node | None:
        """The node that this tensor is a result of; None for a leaf."""
        if self._base is not None and self._counter is not None and self._replay_version != self._counter.value:
            self._regenerate()
        return self._grad_fn

    def _regenerate(self) -> None:
        """Rebuild the view's node after its base was changed in place by a recorded operation."""
        base, counter = self._base, self._counter
        assert counter is not None  # noqa: S101  (a view always shares a counter)
        if base is not None and self._created_without_grad and base.requires_grad:
            raise RuntimeError(UNTRACKED_BASE_WRITTEN)
        if base is not None and (base._grad_fn is not None or self._why_not_written is not None):
            enabled, STATE.enabled = STATE.enabled, True
            try:
                again = self._as_part()(base)
            finally:
                STATE.enabled = enabled
            self._grad_fn, self._output_nr = again._grad_fn, again._output_nr
        self._replay_version = counter.value

    def _as_part(self) -> Callable[[Tensor], Tensor]:
        """Return this view as a function of its base, whose shape may have been changed in place since (`_relaid`)."""
        base, replay = self._base, self._replay
        assert base is not None and replay is not None  # noqa: S101, PT018  (only views are asked)
        relaid = base._relaid
        return replay if relaid is None else lambda root: replay(relaid[0](root))

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._requires_grad or self._grad_fn is not None or (self._base is not None and self._base.requires_grad)

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        """Set the flag of a leaf."""
        self.requires_grad_(flag)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set the flag of a leaf, and return the leaf.

        Raises:
            RuntimeError: the tensor is a result, or its elements are integers.
        """
        if self.grad_fn is not None:
            if not requires_grad:
                raise RuntimeError(FLAG_OF_RESULT)
            return self
        if requires_grad and self._data.dtype.kind not in "fc":
            raise RuntimeError(CANNOT_REQUIRE)
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """True for tensors made by hand, and for results that are not recorded."""
        return self.grad_fn is None

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this is."""
        return self._output_nr

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was asked for on a result."""
        return self._retains_grad

    @property
    def _version(self) -> int:
        return 0 if self._counter is None else self._counter.value

    def _shared_counter(self) -> Counter:
        if self._counter is None:
            self._counter = Counter()
        return self._counter

    # --- kept by a node while nobody has written to it
    def _unpacked(self, node: Node) -> Tensor:
        del node  # it hangs where it did
        counter = self._counter
        if counter is not None and counter.value:
            self._require_version(0)
        return self

    def _unpacked_array(self, node: Node) -> Array:
        return self._unpacked(node)._data

    def _require_version(self, version: int) -> None:
        """Raise RuntimeError when the memory has been written to since it had this version."""
        if self._version != version:
            owner = self._grad_fn
            origin = "" if owner is None else f", which is output {self._output_nr} of {operation_name(owner)}"
            raise RuntimeError(changed_message(self._data.shape, self._data.dtype, origin, self._version, version))

    def _edge(self) -> Edge:
        """Where a cotangent of this tensor goes: (None, 0) when nowhere."""
        node = self._grad_fn if self._base is None else self.grad_fn
        if node is not None:
            return node, self._output_nr
        if not self.requires_grad:
            return NO_INPUT
        reference = self._accumulator
        accumulator = None if reference is None else reference()
        if accumulator is None:
            accumulator = AccumulateGrad(self)
            self._accumulator = weakref.ref(accumulator)
        return accumulator, 0

    # --- gradient
    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward left here, or None."""
        if self._grad is None and not (self._retains_grad or self._created_without_grad) and self.grad_fn is not None:
            warnings.warn(NOT_A_LEAF, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        """Put a gradient of the same shape here, or take it away."""
        if value is not None:
            if not isinstance(value, Tensor):
                raise not_a_tensor(value)
            check_fits_as_grad(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        """Take the gradient away."""
        self._grad = None

    def _accumulate(self, cotangent: Any, owned: bool = False) -> None:
        """Add a cotangent to `grad`: in place unless a graph of the gradient is being recorded.

        Args:
            cotangent: what to add, a tensor, or outside of recording an array.
            owned: it is an array that nobody else refers to, so that it may become the gradient's memory.
        """
        if not self.requires_grad:  # it was switched off after the graph had been made
            pass
        elif STATE.enabled:
            self._grad = cotangent._copied_to_grad() if self._grad is None else self._grad + cotangent
        else:
            array = cotangent._data if isinstance(cotangent, Tensor) else cotangent
            if self._grad is None:
                self._grad = from_array(array if owned and array.flags.c_contiguous else np.array(array, order="C"))
            else:
                np.add(self._grad._data, array, out=self._grad._data)
                self._grad._shared_counter().value += 1
        if self._post_accumulate_grad_hooks:
            for hook in list(self._post_accumulate_grad_hooks.values()):
                check_nothing_returned(hook(self), self)

    def retain_grad(self) -> None:
        """Ask for the gradient of a result to be kept in `.grad`.

        Raises:
            RuntimeError: nothing is recorded for this tensor.
        """
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        node = self.grad_fn
        if node is None or self._retains_grad:
            return
        self._retains_grad = True
        node._retain(self._output_nr, self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` when this tensor's gradient is known; a tensor it returns replaces the gradient.

        Raises:
            RuntimeError: nothing is recorded for this tensor.
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._backward_hooks is None:
            self._backward_hooks = OrderedDict()
            node = self.grad_fn
            if node is not None:
                node._hooks_of_output(self._output_nr, self._backward_hooks)
        return add_hook(self._backward_hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(leaf)` after its gradient has been added to `.grad`.

        Raises:
            RuntimeError: the tensor is not a leaf that requires a gradient.
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if self._post_accumulate_grad_hooks is None:
            self._post_accumulate_grad_hooks = OrderedDict()
        return add_hook(self._post_accumulate_grad_hooks, hook)

    # --- sharing memory
    def detach(self) -> Tensor:
        """Return a tensor on the same memory, outside the graph; writing to either counts for both."""
        result = from_array(self._data)
        result._counter = self._shared_counter()
        return result

    def detach_(self) -> Tensor:
        """Cut this tensor from its graph: it becomes a leaf.

        Raises:
            RuntimeError: it is a view.
        """
        if self._base is not None:
            raise RuntimeError(VIEW_DETACHED)
        self._grad_fn, self._output_nr, self._requires_grad, self._retains_grad = None, 0, False, False
        return self

    @property
    def data(self) -> Tensor:
        """A tensor on the same memory, outside the graph, whose writes the graph does not notice."""
        return from_array(self._data)

    @data.setter
    def data(self, value: Tensor) -> None:
        """Take the memory of another tensor, unnoticed by the graph."""
        if not isinstance(value, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self.requires_grad and value._data.dtype.kind not in "fc":
            raise RuntimeError(DATA_OF_INTEGERS)
        self._data = value._data
        self._accumulator = None

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._data.__array_interface__["data"][0])

    # --- as a Python object
    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        if self._data.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self._data.shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if self._data.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._data.copy(), self.requires_grad, self._user_attributes())

    def __copy__(self) -> Tensor:
        return _rebuild(type(self), self._data, self.requires_grad, self._user_attributes())

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.grad_fn is not None:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.  If you were attempting to deepcopy a module, this may be because of a "
                f"{PRINTED_MODULE}.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
            )
        result = _rebuild(type(self), self._data.copy(), self._requires_grad, self._user_attributes())
        if self._grad is not None:
            result._grad = from_array(self._grad._data.copy())
        memo[id(self)] = result
        return result

    def _user_attributes(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def _rebuild(kind: type[Tensor], array: Array, requires_grad: bool, attributes: dict[str, Any]) -> Tensor:
    result = kind.__new__(kind)
    result._data = array
    result._requires_grad = requires_grad
    vars(result).update(attributes)
    return result


_new = object.__new__


def from_array(array: Any) -> Tensor:
    """Wrap an array (or a NumPy scalar) without copying it."""
    result = _new(Tensor)
    result._data = array if type(array) is np.ndarray else np.asarray(array)
    return result
