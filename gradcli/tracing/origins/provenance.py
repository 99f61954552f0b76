"""Where values came from: the operations from a leaf to a result, and the one at which its gradient was lost."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, final

from gradcli.frozen import dataclass
from gradcli.tracing.operations import DATA_SET, ESCAPES, GRADIENTS, NEW_LEAVES, Operation, OperationLog
from gradcli.tracing.sites import source_line

_ATTRIBUTES = ("data", "T", "mT", "H", "mH", "real", "imag")
_WRITTEN = {"gt": "`>`", "ge": "`>=`", "lt": "`<`", "le": "`<=`", "eq": "`==`", "ne": "`!=`", DATA_SET: DATA_SET,
            "__array__": "numpy()", "Parameter": "nn.Parameter()"}  # fmt: skip
_MIRRORED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge"}
_COMPARED = re.compile(r"<<|>>|->|<=|>=|<|>")
_DETACHING = frozenset({"detach", "detach_", DATA_SET, GRADIENTS, *ESCAPES})
_FLAT = ("sign", "sgn", "round", "floor", "ceil", "trunc", "fix", "heaviside")
_ENDS = _DETACHING | {"data", *NEW_LEAVES, *_FLAT, *(f"{name}_" for name in _FLAT)}
_FLOATING = ("float", "bfloat", "complex")
_LINEAR = frozenset({"add", "radd", "sub", "rsub", "neg", "sum", "mean", "cat", "stack", "getitem", "view", "reshape",
                     "flatten", "squeeze", "unsqueeze", "t", "T", "mT", "transpose", "permute", "expand", "clone",
                     "contiguous", "to", "double", "float"})  # fmt: skip
_BILINEAR = frozenset({"mul", "rmul", "matmul", "rmatmul", "mm", "bmm", "mv", "dot", "linear", "addmm", "einsum"})


@final
@dataclass(frozen=True, slots=True)
class Loss:
    """The operation at which a leaf's gradient was lost; `certain` if the result is computed from its output.

    It is uncertain if Python or NumPy computed with numbers in between. `before_flag` says that the operation used the
    leaf when its requires_grad was still False, `captured` that it is a Function whose forward used the leaf without
    being given it.
    """

    operation: Operation
    certain: bool
    before_flag: bool = False
    captured: bool = False


@final
class Provenance:
    """The operations of a trace as a graph of values."""

    def __init__(self, log: OperationLog, roots: Iterable[Any]) -> None:
        self.log = log
        self.operations = log.operations
        self.roots = [log.value(root) for root in roots]
        self._proven, self._last = self._behind(self.roots, len(self.operations))
        escaped = [
            value
            for number, operation in enumerate(self.operations)
            if number < self._last and operation.name in ESCAPES
            for value in operation.inputs
        ]
        self._possible = self._behind([*self.roots, *escaped], self._last)[0]
        self._followed = self._behind(self.roots, self._last, _could_follow)[0]

    def _behind(
        self, roots: Iterable[int], end: int, through: Callable[[Operation], bool] = lambda _: True
    ) -> tuple[set[int], int]:
        """The values that the roots were computed from by operations before `end`, and the end of those operations."""
        values, last = set(roots), 0
        for number in range(min(end, len(self.operations)) - 1, -1, -1):
            operation = self.operations[number]
            if any(value in values for value in operation.outputs) and through(operation):
                values.update(value for value, _ in _sources(operation))
                values.update(operation.captured)
                last = max(last, number + 1)
        return values, last

    def losses(self, leaves: Sequence[Any]) -> list[Loss | None]:
        """For each leaf the first operation leading to the roots that gradients do not pass; None if there is none.

        Indices and masks never have a gradient: what is computed from them counts where nothing else was lost.
        """
        found: list[Loss | None] = [None] * len(leaves)
        for wanted, certain, by_choice in (
            (self._proven, True, False),
            (self._proven, True, True),
            (self._possible, False, True),
        ):
            missing = [place for place, loss in enumerate(found) if loss is None]
            losses = self._first_losses([leaves[n] for n in missing], wanted, certain=certain, by_choice=by_choice)
            for place, loss in zip(missing, losses, strict=True):
                found[place] = loss
        return found

    def needs_second_derivative(self, leaf: Any, asked: Operation) -> bool:
        """Whether the roots depend on a leaf through nothing but the gradient that autograd.grad gave for it.

        A program that also uses the leaf's values, such as a step from `x.detach()`, takes the gradient as a number.
        The gradient of a function that is affine in the leaf does not depend on the leaf at all.
        """
        reached = set(self.log.values(leaf))
        affine = True
        for operation in self.operations:
            dependent = sum(value in reached for value in operation.inputs)
            if not dependent:
                continue
            if operation is asked and affine:
                return False
            if operation.name != GRADIENTS:
                reached.update(operation.outputs)
                affine = affine and _is_affine(operation, dependent)
        return reached.isdisjoint(self.roots)

    def _first_losses(
        self, leaves: Sequence[Any], wanted: set[int], *, certain: bool, by_choice: bool
    ) -> list[Loss | None]:
        """One pass over all operations; each leaf is a bit in the set of leaves that a value depends on.

        An operation that writes to a leaf, such as its initialisation, does not cut that leaf's own gradient, nor does
        one whose results are written to it and used for nothing else, such as the conversion in `.double()`. A call of
        autograd.grad cuts only if its result, had it a graph, would lead gradients to it: a program that uses the
        gradients as numbers, to print them or in an update under no_grad, loses nothing there. Without `by_choice`,
        what was computed from a leaf only by way of indices or a mask counts as independent of it.
        """
        own = {value: 1 << place for place, leaf in enumerate(leaves) for value in self.log.values(leaf)}
        bits = dict(own)
        rewriting = only_written_to(self.operations, own) | dict.fromkeys(self.roots, 0)
        found: dict[int, Loss] = {}
        lost = 0
        for operation in self.operations:
            flags = followed = early = 0
            for value, tracked in _sources(operation):
                flags |= bits.get(value, 0)
                followed |= bits.get(value, 0) if tracked else 0
                early |= own.get(value, 0) if not tracked and operation.mode is None else 0
            captured = 0
            for value in operation.captured:
                captured |= bits.get(value, 0)
            flags |= captured
            if not flags or (not by_choice and _chooses(operation)):
                continue
            written = 0
            for value in operation.outputs:
                bits[value] = flags | own.get(value, 0)
                written |= own.get(value, 0) | rewriting.get(value, 0)
            aims = self._followed if operation.name == GRADIENTS else wanted
            leading = [place for place, value in enumerate(operation.outputs) if value in aims]
            ends = not (follows_any(operation, leading) if leading else any(operation.tracked_out))
            leads = bool(leading) or (operation.name in ESCAPES and any(v in wanted for v in operation.inputs))
            new = ((followed if ends else 0) | early | captured) & ~lost & ~written if leads else 0
            while new:
                place = (new & -new).bit_length() - 1
                found[place] = Loss(operation, certain, bool(early >> place & 1), bool(captured >> place & 1))
                lost |= 1 << place
                new &= new - 1
        return [found.get(place) for place in range(len(leaves))]


def _chooses(operation: Operation) -> bool:
    """Whether an operation gives indices or a mask."""
    return bool(operation.dtype) and not operation.dtype.startswith(_FLOATING) and operation.function is None


def _is_affine(operation: Operation, dependent: int) -> bool:
    """Whether an operation is affine in that many of its operands together."""
    name = operation.name.rstrip("_")
    return name in _LINEAR or (name in _BILINEAR and dependent == 1)


def only_written_to(operations: Sequence[Operation], own: Mapping[int, int]) -> dict[int, int]:
    """For each value that is used the leaves that it is written to, if all that is computed from it is.

    Args:
        operations: all operations, in their order.
        own: the values that leaves have had, each with the leaves as bits.

    Returns:
        Leaves as bits, by value.
    """
    found: dict[int, int] = {}
    for operation in reversed(operations):
        reached = 0
        for value in operation.outputs:
            reached |= own.get(value, found.get(value, 0))
        for value in operation.inputs:
            found[value] = found.get(value, -1) & reached
    return found


def _sources(operation: Operation) -> Iterator[tuple[int, bool]]:
    """What an operation computes from, each with whether gradients follow it.

    The numbers that autograd.grad begins with are left out: `ones_like(loss)` has the shape of loss, no value of it.
    """
    for value, tracked in zip(operation.inputs, operation.tracked, strict=True):
        if tracked or operation.name != GRADIENTS:
            yield value, tracked


def _could_follow(operation: Operation) -> bool:
    """Whether gradients would flow back through an operation if they followed its inputs, and not all as zeros."""
    ends = operation.mode is not None or operation.name in _ENDS or not operation.dtype.startswith(_FLOATING)
    return not ends or operation.name == GRADIENTS


def follows_any(operation: Operation, outputs: Sequence[int]) -> bool:
    """Whether gradients follow any of these outputs: for sort they follow the values, not the indices."""
    return any(operation.tracked_out[place : place + 1] == (True,) for place in outputs)


def how_lost(operation: Operation) -> str:
    """The call, as reports name it."""
    name = operation.name
    if by_mode(operation) and operation.mode is not None:
        return operation.mode.name
    if operation.function is not None:
        return f"{name}.apply()"
    if name in _ATTRIBUTES:
        return f".{name}"
    if name in _MIRRORED:
        return _comparison(name, source_line(operation.site) or "")
    if name in _WRITTEN:
        return _WRITTEN[name]
    name = name.strip("_") if name in ESCAPES else name
    return f"{name}({operation.dtype})" if name in ("to", "type") else f"{name}()"


def _comparison(name: str, line: str) -> str:
    """A comparison as the line has it: of `x > p` Python calls `p < x` where p is a Parameter and x a plain tensor."""
    written = {f"`{found}`" for found in _COMPARED.findall(line)}
    turned = _WRITTEN[_MIRRORED[name]]
    return turned if turned in written and _WRITTEN[name] not in written else _WRITTEN[name]


def by_mode(operation: Operation) -> bool:
    """Whether gradients were lost because recording was off, not because of the operation."""
    carries = operation.dtype.startswith(_FLOATING)
    return operation.mode is not None and carries and operation.name not in _DETACHING
