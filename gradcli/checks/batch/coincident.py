"""Batch axes whose size also occurs elsewhere in the inputs' shapes, by coincidence or because they belong together.

A pose of three numbers moves three points: the 3 of the points is a batch, that of the pose is not. Such an axis is
varied alone, or with other leading axes of its size, where forward takes that and the entries along it stand alone.
"""

import itertools
from collections.abc import Iterator, Sequence

from gradcli.backends.torch.interpreter import contained_kernels
from gradcli.cases import Argument
from gradcli.checks.base import Situation
from gradcli.checks.batch.fixed import hints_of
from gradcli.checks.batch.resizing import Batch, batches, is_held, tells_size
from gradcli.frozen import dataclass
from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.prose.formulas import names_in

_MOST_OWNERS = 3
"""Of up to so many leading axes of one size every selection is tried; of more, each alone and those of one rank."""
_REST = ("...", "*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coincident:
    """A batch axis of some arguments; `is_sure` says that no other axis of its size can be meant to be as long."""

    batch: Batch
    is_sure: bool


def coincident_batches(situation: Situation) -> Iterator[Coincident]:
    """The batch axes that `batches` leaves out because other axes are as long; the fewest arguments of each size.

    Left out are those that documentation gives a number, or the name of another axis.
    """
    subject = situation.subject
    tensors = [a for a in subject.arguments if a.is_tensor and a.shape and not is_held(subject, a)]
    if any(a.sparsity is not None for a in subject.arguments):
        return
    clear = {batch.size for batch in batches(situation)}
    for size in dict.fromkeys(a.shape[0] for a in tensors if a.shape[0] > 1):
        owners = [a for a in tensors if a.shape[0] == size]
        alone = len(owners) == sum(a.shape.count(size) for a in tensors) == 1
        if alone or any(tells_size(a, size) for a in subject.arguments):
            continue
        for chosen in _selections(owners):
            is_all = len(chosen) == len(owners) and size in clear
            if is_all or not any(a.requires_grad for a in chosen):
                continue
            found = _found(situation, tensors, chosen, together=size in clear)
            if found is not None:
                yield found
                break


def _selections(owners: Sequence[Argument]) -> Iterator[tuple[Argument, ...]]:
    if len(owners) <= _MOST_OWNERS:
        for count in range(1, len(owners) + 1):
            yield from itertools.combinations(owners, count)
        return
    yield from ((each,) for each in owners)
    for rank in sorted({len(each.shape) for each in owners}, reverse=True):
        yield tuple(each for each in owners if len(each.shape) == rank)


def _found(
    situation: Situation, tensors: Sequence[Argument], chosen: Sequence[Argument], *, together: bool
) -> Coincident | None:
    subject, names = situation.subject, frozenset(a.name for a in chosen)
    documented = _documented_apart(situation, tensors, names)
    batch = Batch(size=chosen[0].shape[0], name=" and ".join(a.name for a in chosen), only=names)
    if documented is False:
        return None
    with contained_kernels():
        if not batch.is_one(situation):
            return None
    outputs = [subject.first_call.outputs[number] for number in subject.output_numbers]
    square = any(batch.size in a.shape[1:] for a in chosen)
    return Coincident(
        batch=batch, is_sure=documented is True or (batch.is_axis_of_any(outputs) and not square and not together)
    )


def _documented_apart(situation: Situation, tensors: Sequence[Argument], names: frozenset[str]) -> bool | None:
    """Whether documentation has one name for the leading axes of some arguments that no other axis has.

    None if it says nothing of one of them.
    """
    axes = hints_of(situation).documented
    known = {a.name: axes[a.name] for a in tensors if a.name in axes and _is_aligned(axes[a.name], a.shape)}
    leading = {known[name][0] for name in names if name in known}
    if any(isinstance(axis, int) for axis in leading) or len(leading) > 1:
        return False
    others = [
        axis
        for name, own in known.items()
        for place, axis in enumerate(own)
        if isinstance(axis, str) and (place > 0 or name not in names)
    ]
    if any(set(names_in(axis)) & set(names_in(str(each))) for axis in others for each in leading):
        return False
    return True if len(known) == len(tensors) and names <= known.keys() else None


def _is_aligned(axes: Sequence[Axis], shape: Sequence[int]) -> bool:
    return len(axes) == len(shape) and not any(isinstance(axis, str) and axis.startswith(_REST) for axis in axes)
