"""The smallest inputs that still fail: smaller axes first, then simpler values; and inputs as code to paste."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument
from gradcli.inputs.domains import interval_of, parse_domain
from gradcli.inputs.drawing import ORDERS, in_order, is_given_distinct

Arguments = tuple[Argument, ...]
_Axes = Sequence[tuple[int, int]]
SIMPLE_VALUES = (0.0, 1.0, -1.0, 2.0, 0.5)
MAX_TRIES = 2000
MAX_ELEMENTS = 64
MAX_PRINTED = 2000
"""A tensor of more entries is described: a million of them take a second and 20 MB as code."""
_SUMS = {"d": 1e-12, "D": 1e-12, "f": 1e-6, "F": 1e-6, "e": 1e-2}
"""By how much a sum of probabilities may be off, by the type of the numbers."""
_MATRIX_DOMAINS = ("spd", "triangular", "diagonally-dominant", "orthogonal")


def shrink(
    arguments: Sequence[Argument],
    still_fails: Callable[[Sequence[Argument]], bool],
    *,
    budget_seconds: float = 2.0,
    most_seconds: float = 10.0,
) -> Arguments:
    """Smaller and simpler arguments for which the failure stays.

    Axes of equal size shrink together, or with those of which it divides the size, as 4·H and N·D, and then one by one,
    except that rows and their labels stay equally many. Then values become 0, 1, -1, 2, 0.5 or short decimals, within
    each input's domain. Whether a tensor requires a gradient, dtypes and constants are kept. The result depends on the
    arguments alone, as long as the budget lasts.

    Args:
        arguments: for which `still_fails` is true.
        still_fails: whether the same failure shows for other arguments; what it raises is raised on.
        budget_seconds: processor time of this thread after which the smallest so far is returned; what else the machine
            does changes nothing.
        most_seconds: time by the clock after which it is returned in any case.

    Returns:
        The arguments found; those given where nothing smaller fails.
    """
    search = _Shrinking(tuple(arguments), still_fails, budget_seconds, most_seconds)
    search.reduce_sizes()
    search.simplify_values()
    search.reduce_sizes()
    return search.current


@final
class _Shrinking:
    """A greedy descent: every step that still fails is kept."""

    def __init__(
        self,
        arguments: Arguments,
        still_fails: Callable[[Sequence[Argument]], bool],
        budget_seconds: float,
        most_seconds: float,
    ) -> None:
        self.current = arguments
        self._axes = _axes_by_size(arguments)
        self._distinct = [
            n for n, a in enumerate(arguments) if a.is_tensor and not a.requires_grad and _are_distinct(a)
        ]
        self._still_fails = still_fails
        self._worked_until = time.thread_time() + budget_seconds
        self._deadline = time.perf_counter() + most_seconds
        self._tries = 0

    def _exhausted(self) -> bool:
        late = time.thread_time() > self._worked_until or time.perf_counter() > self._deadline
        return self._tries >= MAX_TRIES or late

    def _accept(self, candidate: Arguments) -> bool:
        """Keep `candidate` if it still fails; copies are handed out, since a forward may write into its arguments.

        Matrices of a domain of square ones stay square, and whole numbers that were given and differ stay different.
        """
        if (
            self._exhausted()
            or any(_is_square(a) > _is_square(b) for a, b in zip(self.current, candidate, strict=True))
            or any(candidate[n].value.size > 1 and not _are_distinct(candidate[n]) for n in self._distinct)
        ):
            return False
        self._tries += 1
        fails = self._still_fails(
            tuple(replace(each, value=each.value.copy()) if each.is_tensor else each for each in candidate)
        )
        if fails:
            self.current = candidate
        return fails

    def reduce_sizes(self) -> None:
        """Shrink axes until no step is left."""
        progressed = True
        while progressed and not self._exhausted():
            progressed = any(self._accept(candidate) for candidate in self._smaller())

    def _smaller(self) -> Iterator[Arguments]:
        tensors = [argument.value for argument in self.current if _may_be_cut(argument)]
        sizes = sorted({size for tensor in tensors for size in tensor.shape if size > 1}, reverse=True)
        for size in sizes:
            for target in _targets(size):
                yield tuple(_cut(argument, size, target, None) for argument in self.current)
        for size in sizes:  # last, since 4·H that is cut to 4 may be as long as another axis, and neither is cut alone
            for target in _targets(size) if any(other > size and other % size == 0 for other in sizes) else ():
                yield tuple(_cut_with_multiples(argument, size, target) for argument in self.current)
        for axes in self._axes.values():
            groups = [axes] if self._belong_together(axes) else [axes, *([each] for each in axes)]
            yield from (cut for group in groups for cut in self._with_axes_cut(group))

    def _belong_together(self, axes: _Axes) -> bool:
        """Whether axes are those of several tensors, one of labels, indices or a mask for the entries of the others."""
        owners = {index for index, _ in axes}
        return len(owners) > 1 and any(self.current[index].value.dtype.kind in "biu" for index in owners)

    def _with_axes_cut(self, axes: _Axes) -> Iterator[Arguments]:
        """The arguments with some axes cut, if these still have one size."""
        found = {self.current[index].value.shape[axis] for index, axis in axes}
        for target in _targets(found.pop()) if len(found) == 1 else ():
            own = [tuple(axis for at, axis in axes if at == index) for index in range(len(self.current))]
            yield tuple(
                _cut(a, a.value.shape[of[0]], target, of) if of else a for a, of in zip(self.current, own, strict=True)
            )

    def simplify_values(self) -> None:
        """Replace whole tensors by simple ones, then single entries, then round."""
        for index, argument in enumerate(self.current):
            if argument.is_tensor and _may_change(argument):
                self._simplify(index)

    def _simplify(self, index: int) -> None:
        argument = self.current[index]
        array: NDArray[Any] = argument.value
        for value in SIMPLE_VALUES:
            if self._replace(index, np.full_like(array, value)):
                return
        if array.size <= MAX_ELEMENTS:
            for place in np.ndindex(array.shape):
                self._simplify_entry(index, place)
        for decimals in (0, 1, 2, 3):
            current: NDArray[Any] = self.current[index].value
            if current.dtype.kind in "fc" and self._replace(index, np.round(current, decimals)):
                return

    def _simplify_entry(self, index: int, place: tuple[int, ...]) -> None:
        value = self.current[index].value[place]
        decimals = (
            [np.round(value, digits) for digits in (0, 1, 2)] if self.current[index].value.dtype.kind in "fc" else []
        )
        for simpler in (*SIMPLE_VALUES, *decimals):
            if value in SIMPLE_VALUES and value == simpler:
                return
            changed = self.current[index].value.copy()
            changed[place] = simpler
            if self._replace(index, changed):
                return

    def _replace(self, index: int, array: NDArray[Any]) -> bool:
        argument = self.current[index]
        if np.array_equal(array, argument.value) or not _belongs(array, argument.domain):
            return False
        return self._accept((*self.current[:index], replace(argument, value=array), *self.current[index + 1 :]))


def _targets(size: int) -> list[int]:
    return sorted({target for target in (1, 2, size // 2, size - 1) if 1 <= target < size})


def _axes_by_size(arguments: Arguments) -> dict[int, _Axes]:
    """The axes of tensors, each by the number of its argument and its own, for each size that they have."""
    found: dict[int, list[tuple[int, int]]] = {}
    for index, argument in enumerate(arguments):
        for axis, size in enumerate(argument.value.shape if _may_be_cut(argument) else ()):
            found.setdefault(size, []).append((index, axis))
    return dict(sorted(found.items(), reverse=True))


def _cut(argument: Argument, size: int, target: int, axes: Sequence[int] | None) -> Argument:
    """The argument with axes of `size` (or some of them) cut to `target`; indices and probabilities stay valid."""
    if not _may_be_cut(argument):
        return argument
    array: NDArray[Any] = argument.value
    chosen = [number for number, each in enumerate(array.shape) if each == size and (axes is None or number in axes)]
    slices = tuple(slice(target) if number in chosen else slice(None) for number in range(array.ndim))
    cut = array[slices]
    if axes is None and array.dtype.kind in "iu" and _domain_name(argument.domain) == "indices":
        cut = np.where(cut >= target, cut % target, cut) if array.size and array.max() < size else cut
    if cut.shape != array.shape:
        cut = in_order(cut, argument.domain)
    if _domain_name(argument.domain) == "simplex" and cut.size and cut.dtype.kind in "fc":
        cut = cut / cut.sum(-1, keepdims=True)
    if _domain_name(argument.domain) == "unit-vectors" and cut.size and cut.dtype.kind in "fc":
        cut = cut / np.sqrt((cut * cut).sum(-1, keepdims=True))
    return replace(argument, value=np.array(cut, dtype=array.dtype))


def _cut_with_multiples(argument: Argument, size: int, target: int) -> Argument:
    """The argument with axes of `size` cut to `target`, and axes of a multiple of it to the same multiple of that.

    Small multiples first: what a cut leaves may be as long as another axis that has been cut already, not one to come.
    """
    longest = max(argument.value.shape, default=0) if _may_be_cut(argument) else 0
    for multiple in range(1, longest // size + 1):
        argument = _cut(argument, multiple * size, multiple * target, None)
    return argument


def _may_be_cut(argument: Argument) -> bool:
    """Whether the axes of the argument can be cut: it is a tensor, and not sparse."""
    return argument.is_tensor and argument.sparsity is None


def _are_distinct(argument: Argument) -> bool:
    return argument.sparsity is None and is_given_distinct(argument.value, argument.domain)


def _is_square(argument: Argument) -> bool:
    """Whether an argument holds square matrices, as its domain says."""
    shape = argument.value.shape if argument.is_tensor and _domain_name(argument.domain) in _MATRIX_DOMAINS else ()
    return len(shape) > 1 and len(set(shape[-2:])) == 1


def _may_change(argument: Argument) -> bool:
    return argument.value.dtype.kind in "iufc" and _domain_name(argument.domain) not in _MATRIX_DOMAINS


def _domain_name(domain: str | None) -> str | None:
    return parse_domain(domain)[0].name if domain is not None else None


def _belongs(array: NDArray[Any], domain: str | None) -> bool:
    """Whether simpler values still lie in the domain that the input was drawn from."""
    name = _domain_name(domain)
    if name is None or array.size == 0:
        return True
    low, high = (-0.5, np.inf) if name in ("indices", "permutation", "pointers") else interval_of(str(domain))
    return bool(
        (array.real > low).all()
        and (array.real < high).all()
        and (name != "distinct" or np.unique(array).size == array.size)
        and (name not in ORDERS or _is_ordered(array, str(name)))
        and (name != "permutation" or bool((np.diff(np.sort(array)) > 0).all()))
        and (name != "pointers" or bool((np.diff(array) >= 0).all()))
        and (name != "simplex" or _are_probabilities(array))
        and (name != "unit-vectors" or _are_of_sum_one(array * array))
        and (name != "unit-ball" or bool(((np.abs(array) ** 2).sum(-1) < 1).all()))
        and (name != "binary" or np.isin(array, (0, 1)).all())
        and (name != "signs" or np.isin(array, (-1, 1)).all())
        and (name != "one-hot" or ((array.sum(-1) == 1).all() and np.isin(array, (0, 1)).all()))
    )


def _is_ordered(array: NDArray[Any], name: str) -> bool:
    steps = np.diff(array, axis=-1) if array.ndim else array
    return array.ndim == 0 or bool((steps > 0 if name == "ascending" else steps < 0).all())


def _are_probabilities(array: NDArray[Any]) -> bool:
    return bool((array.real > 0).all()) and _are_of_sum_one(array)


def _are_of_sum_one(array: NDArray[Any]) -> bool:
    return bool(np.abs(array.sum(-1) - 1).max(initial=0.0) <= _SUMS.get(array.dtype.char, 1e-12))


def as_code(arguments: Sequence[Argument]) -> tuple[str, ...]:
    """One line for each argument, such as `weight = [[1.0, 2.0]]`, that can be pasted into Python.

    A tensor of more than `MAX_PRINTED` entries is described instead.
    """
    return tuple(f"{argument.name} = {_code(argument)}" for argument in arguments)


def _code(argument: Argument) -> str:
    if not argument.is_tensor:
        return repr(argument.value)
    array: NDArray[Any] = argument.value if argument.sparsity is None else argument.sparsity.dense(argument.value)
    if array.size == 0:
        return f"numpy.zeros({array.shape})"
    if array.size > MAX_PRINTED:
        return f"<{array.dtype.name} of shape {array.shape}, too long to print>"
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return repr(array.tolist())
    return _nested(array.tolist())


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_nested(each) for each in value)}]"
    if isinstance(value, complex):
        return repr(value) if np.isfinite(value) else f"complex({_nested(value.real)}, {_nested(value.imag)})"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    return repr(value)
