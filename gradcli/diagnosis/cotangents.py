"""Names for a backward that uses grad_output wrongly: a part of it, its average, or its entries in another order."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.contrast import is_right_in, right_for_row
from gradcli.diagnosis.facts import Facts
from gradcli.diagnosis.suspect import Named, Suspect, error_size
from gradcli.diagnosis.table import Gradient, Mask, Table
from gradcli.diagnosis.terms import lacking_term
from gradcli.diagnosis.whole import LEAST_ROLLED
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass

_ROUNDING, _SAME = 1e-13, 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """Another order of the outputs' flat coordinates: `taken[i]` is the place that coordinate i is read from."""

    kind: FindingKind
    text: str
    taken: NDArray[np.intp]


def ignored_output(suspect: Suspect) -> Named | None:
    """Of several outputs, backward does not use the grad_output of those in which the gradient is wrong."""
    codomain = suspect.facts.subject.codomain
    wrong = sorted({e.mismatch.output for e in suspect.evidence if e.mismatch is not None})
    if len(codomain.blocks) < 2 or not wrong or len(wrong) == len(codomain.blocks):
        return None
    if not all(_is_ignored(suspect, output) for output in wrong):
        return None
    numbers = [suspect.facts.subject.output_numbers[output] for output in wrong]
    which = f"output {numbers[0]}" if len(numbers) == 1 else f"outputs {', '.join(map(str, numbers))}"
    return (
        FindingKind.IGNORES_GRAD_OUTPUT,
        f"{suspect.name}: backward does not use the grad_output of {which}, so the gradient through "
        f"{'this output' if len(numbers) == 1 else 'these outputs'} is lost",
        {},
    )


def _is_ignored(suspect: Suspect, output: int) -> bool:
    """Whether a cotangent for this output alone gives no gradient at all."""
    facts = suspect.facts
    alone = np.zeros_like(facts.cotangents[1])
    where = facts.subject.codomain.slices[output]
    alone[where] = facts.cotangents[1][where]
    position = facts.subject.active[suspect.block]
    returned = facts.returned_for(alone)
    gradient = returned[position] if position < len(returned) else None
    return gradient is None or not np.any(gradient)


def ignored_part(suspect: Suspect) -> Named | None:
    """The gradient is nonzero everywhere, but depends on only one element or one slice of grad_output.

    Where the part that is used is used rightly, and forward does the same for the others, only the sum is missing.
    """
    table, block = suspect.table, suspect.facts.subject.codomain.blocks[0]
    if table is None or len(suspect.facts.subject.codomain.blocks) > 1:
        return None
    index = _index_used(table, block.shape)
    part = np.zeros(block.shape, dtype=np.bool_)
    part[tuple(slice(None) if i is None else i for i in index)] = True
    uses = partial(_uses_only, part=part.reshape(-1))
    if part.all() or not suspect.shows(uses):
        return None
    if not (_holds_for_other_indices(suspect, uses) and _holds_rearranged(suspect, uses)):
        return None
    text = ", ".join(":" if i is None else str(i) for i in index)
    over = [axis for axis, i in enumerate(index) if i is not None]
    if suspect.shows(partial(_is_right_for, part=part.reshape(-1))) and all(_is_summed(suspect, a) for a in over):
        axes = [str(axis) for axis in over]
        where = f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(axes)}"
        return (
            FindingKind.MISSING_REDUCTION,
            f"{suspect.name}: backward uses only grad_output[{text}], but the gradient is a sum over {where} of "
            "grad_output",
            {},
        )
    return (
        FindingKind.IGNORES_GRAD_OUTPUT,
        f"{suspect.name}: backward uses only grad_output[{text}]: the gradient stays the same when other "
        f"elements of grad_output change, although the outputs at these elements depend on {suspect.name}",
        {},
    )


def _holds_for_other_indices(suspect: Suspect, form: Callable[[Suspect, Table], bool]) -> bool:
    """Whether the Jacobian has a form with whole numbers in untracked inputs sorted, as far as there are any.

    An assignment to repeated indices keeps the last of each, which may all lie in one slice of the output.
    """
    subject = suspect.facts.subject
    given = [
        replace(a, value=np.sort(a.value, axis=None).reshape(a.value.shape))
        if a.is_tensor and p not in subject.active and a.value.dtype.kind in "iu"
        else a
        for p, a in enumerate(subject.arguments)
    ]
    if all(a is b for a, b in zip(given, subject.arguments, strict=True)):
        return True
    there = suspect.at(suspect.facts.at([subject.arguments[p].value for p in subject.active], given))
    table = None if there is None else there.table
    return there is None or table is None or form(there, table)


def _holds_rearranged(suspect: Suspect, form: Callable[[Suspect, Table], bool]) -> bool:
    """Whether the Jacobian has a form with the entries of the inputs permuted too, as far as that can be decided.

    A mask of values may leave a single output, whose place then changes with the values.
    """
    tables = ((there, there.table) for there in suspect.rearranged())
    return all(table is None or form(there, table) for there, table in tables)


def _index_used(table: Table, shape: tuple[int, ...]) -> list[int | None]:
    """For each axis of the output the one index at which grad_output is used; None if there are several, or one."""
    used = np.any(table.claimed, axis=1).reshape(shape)
    places = np.argwhere(used)
    if not places.size:
        return [None] * len(shape)
    first = places[0]
    same = (places == first).all(axis=0)
    return [int(i) if one and size > 1 else None for i, one, size in zip(first, same, shape, strict=True)]


def _uses_only(_: Suspect, table: Table, *, part: Mask) -> bool:
    used: Mask = np.any(table.claimed, axis=1)
    if (table.moves.any(axis=1) & ~used)[part].any():
        return False  # not the whole part is used: where indices repeat, only the last of each may be
    lost = table.moves.any(axis=1) & ~part
    reached: Mask = np.any(table.claimed, axis=0)
    felt = table.moves.any(axis=0)
    return bool(used[part].any() and not used[~part].any() and lost.any() and reached[felt].all())


def _is_right_for(_: Suspect, table: Table, *, part: Mask) -> bool:
    """Whether the gradient is right for a grad_output that is zero outside a part."""
    return bool((np.abs(table.residual) <= table.floor)[part].all() and table.known[part].all())


def _is_summed(suspect: Suspect, axis: int) -> bool:
    """Whether forward does the same with the input along an axis of the output, as where it is broadcast.

    The derivatives along the axis are then equal, but for signs and zeros, or other inputs lie along it.
    """
    if suspect.shows(partial(_is_even_along, shape=suspect.facts.subject.codomain.blocks[0].shape, axis=axis)):
        return True
    points = [facts for facts in (suspect.facts, suspect.facts.elsewhere) if facts is not None]
    return all(_moves_with_others(facts, suspect.block, axis) for facts in points)


def _is_even_along(_: Suspect, table: Table, *, shape: tuple[int, ...], axis: int) -> bool:
    """Whether the derivatives along an axis of the output have one size, as far as they are not zero."""
    sizes = np.abs(table.numeric).reshape(*shape, -1)
    apart = sizes.max(axis=axis, keepdims=True) - sizes
    return bool(((apart <= 2 * table.floor.reshape(sizes.shape)) | ~table.moves.reshape(sizes.shape)).all())


def _moves_with_others(facts: Facts, place: int, axis: int) -> bool:
    """Whether rolling some other inputs along an axis each rolls the output along `axis`."""
    subject = facts.subject
    shape = subject.codomain.blocks[0].shape
    rolled = np.roll(facts.value.reshape(shape), 1, axis).reshape(-1)
    others = [
        [None, *(n for n, size in enumerate(a.value.shape) if size == shape[axis] and p != subject.active[place])]
        if a.is_tensor and a.sparsity is None
        else [None]
        for p, a in enumerate(subject.arguments)
    ]
    for axes in itertools.product(*others):
        given = [
            a if n is None else replace(a, value=np.roll(a.value, 1, n))
            for a, n in zip(subject.arguments, axes, strict=True)
        ]
        there = facts.at([given[p].value for p in subject.active], given)
        if there is not None and np.allclose(there.value, rolled, rtol=_SAME, atol=_SAME * np.abs(rolled).max()):
            return True
    return False


def averaged(suspect: Suspect) -> Named | None:
    """The gradient depends on a sum or mean of grad_output, where each entry should depend on its own elements."""
    codomain = suspect.facts.subject.codomain
    if suspect.table is None or len(codomain.blocks) > 1:
        return None
    shape = codomain.blocks[0].shape
    wide = [axis for axis, size in enumerate(shape) if size > 1]
    for count in range(len(wide), 0, -1):
        for axes in itertools.combinations(wide, count):
            if not suspect.shows(partial(_is_even, shape=shape, axes=axes)):
                continue
            if lacking_term(suspect) is not None:
                return None
            where = "" if count == len(wide) else f" along ax{'es' if count > 1 else 'is'} {', '.join(map(str, axes))}"
            return (
                FindingKind.IGNORES_GRAD_OUTPUT,
                f"{suspect.name}: backward uses the sum or the mean of grad_output{where} instead of its elements",
                {},
            )
    return None


def _is_even(_: Suspect, table: Table, *, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether elements of grad_output along some axes have equal weight, where they should reach different entries."""
    claimed = table.claimed.reshape(*shape, -1)
    spread = np.ptp(claimed, axis=axes).max(initial=0.0)
    size = np.abs(claimed).max(initial=0.0)
    return bool(size > 0 and spread <= _ROUNDING * size and table.strays.any())


def mixed_up(suspect: Suspect) -> Named | None:
    """Right only if all entries of grad_output are equal, so other entries are exchanged or lost."""
    facts, place, gradients = suspect.facts, suspect.block, suspect.gradients
    if facts.subject.codomain.size < 2 or not facts.explains(place, gradients, rows=(0,)):
        return None
    if any(facts.explains(place, gradients, rows=(row,)) for row in range(1, len(gradients))):
        return None
    for order in _orders(suspect):
        if suspect.proves(partial(_taken, order=order), orders=True):
            return order.kind, f"{suspect.name}: the returned gradient would be right if {order.text}", {}
    return averaged(suspect)


def right_for_ones(suspect: Suspect) -> Named | None:
    """Right if all entries of grad_output are 1, and wrong otherwise; how they are used is said where it is shown.

    Where most entries of the gradient are right, backward does not mix up those of grad_output.
    """
    if suspect.facts.subject.codomain.size < 2 or is_right_in(suspect, 0.5) or not right_for_row(suspect, 0):
        return None
    return (
        FindingKind.WRONG_GRADIENT,
        f"{suspect.name}: the returned gradient is right when grad_output is all ones, and wrong{error_size(suspect)} "
        f"when its entries differ{_misused(suspect)}",
        {},
    )


def _misused(suspect: Suspect) -> str:
    """Which entries of grad_output backward uses for an entry of the input instead of others, as a clause.

    Entries of the Jacobian prove it: the claim's where the derivative has none, and the reverse. Where both have the
    same ones, as where all outputs depend on all inputs, other weights of the right entries may be all that is wrong.
    """
    table = suspect.table
    if table is None:
        return ""
    if suspect.shows(_exchanges):
        column = int(np.argmax(_exchanged(table)))
        taken, left = (_entry_of(suspect, each[:, column]) for each in (table.strays, table.lost))
        how = f"mixes up the entries of grad_output, such as {taken} in the place of {left}"
    elif suspect.shows(lambda _, there: bool(there.strays.any())):
        column = int(np.argmax(table.strays.any(axis=0)))
        taken = _entry_of(suspect, table.strays[:, column])
        how = f"uses grad_output of outputs that do not depend on the entry, such as {taken}"
    elif suspect.shows(lambda _, there: bool(there.lost.any())):
        column = int(np.argmax(table.lost.any(axis=0)))
        left = _entry_of(suspect, table.lost[:, column])
        how = f"leaves out grad_output of outputs that depend on the entry, such as {left}"
    else:
        return ""
    return f": backward {how} for {_index(suspect.name, column, suspect.shape)}"


def _exchanges(_: Suspect, table: Table) -> bool:
    return bool(_exchanged(table).any())


def _exchanged(table: Table) -> Mask:
    """The entries of the input that take some entries of grad_output instead of others."""
    return np.logical_and(table.strays.any(axis=0), table.lost.any(axis=0))


def _entry_of(suspect: Suspect, rows: Mask) -> str:
    """The first entry of grad_output among rows of the Jacobian, in words."""
    codomain, row = suspect.facts.subject.codomain, int(np.argmax(rows))
    number = next(n for n, part in enumerate(codomain.slices) if row < part.stop)
    which = "" if len(codomain.blocks) == 1 else f" of output {suspect.facts.subject.output_numbers[number]}"
    return f"{_index('grad_output', row - codomain.slices[number].start, codomain.blocks[number].shape)}{which}"


def _index(name: str, place: int, shape: tuple[int, ...]) -> str:
    index = ", ".join(str(int(n)) for n in np.unravel_index(place, shape))
    return f"{name}[{index}]" if shape else name


def _taken(suspect: Suspect, *, order: _Order) -> Sequence[Gradient]:
    """What backward returns if grad_output is put into another order."""
    position = suspect.facts.subject.active[suspect.block]
    rows = [suspect.facts.returned_for(_read(row, order)) for row in suspect.facts.cotangents]
    return [row[position] if position < len(row) else None for row in rows]


def _read(cotangent: FloatArray, order: _Order) -> FloatArray:
    found: FloatArray = cotangent[order.taken]
    return found


def _orders(suspect: Suspect) -> Iterator[_Order]:
    """Other orders of the elements of grad_output, each with the mistake that it would show."""
    codomain = suspect.facts.subject.codomain
    flat = np.arange(codomain.size)
    if any(block.complex for block in codomain.blocks):
        return
    for (a, one), (b, other) in itertools.combinations(enumerate(codomain.blocks), 2):
        if one.shape == other.shape:
            taken = flat.copy()
            taken[codomain.slices[a]], taken[codomain.slices[b]] = flat[codomain.slices[b]], flat[codomain.slices[a]]
            first, second = (suspect.facts.subject.output_numbers[n] for n in (a, b))
            text = f"the grad_outputs of outputs {first} and {second} were exchanged: backward confuses the two"
            yield _Order(kind=FindingKind.WRONG_GRADIENT, text=text, taken=taken)
    for number, block in enumerate(codomain.blocks):
        own = flat[codomain.slices[number]].reshape(block.shape)
        for kind, text, moved in _moves(own):
            taken = flat.copy()
            taken[codomain.slices[number]] = moved.reshape(-1)
            yield _Order(kind=kind, text=text, taken=taken)


def _moves(own: NDArray[np.intp]) -> Iterator[tuple[FindingKind, str, NDArray[np.intp]]]:
    for axis, size in enumerate(own.shape):
        for shift in (1, -1, 2, -2):
            if size > max(abs(shift), LEAST_ROLLED - 1):
                text = f"grad_output were rolled by {-shift} along axis {axis}: an index is off by {abs(shift)}"
                yield FindingKind.WRONG_SHIFT, text, np.roll(own, -shift, axis)
    for axis, size in enumerate(own.shape):
        if size > 1:
            text = f"grad_output were reversed along axis {axis}: backward reads it from the wrong end"
            yield FindingKind.WRONG_GRADIENT, text, np.flip(own, axis)
    for axes in itertools.permutations(range(own.ndim)) if own.ndim <= 4 else ():
        if axes != tuple(range(own.ndim)) and np.transpose(own, axes).shape == own.shape:
            how = "transposed" if own.ndim == 2 else f"transposed to the axes {list(axes)}"
            yield FindingKind.WRONG_GRADIENT, f"grad_output were {how}", np.transpose(own, axes)
