"""Improvements of inputs that forward accepts: the widest range of indices, and small but distinct sizes."""

import itertools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from gradcli.inputs.hints.argument_names import is_state
from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.prose.formulas import names_in
from gradcli.inputs.search.candidates import DIFFERENT
from gradcli.inputs.search.domains import POSITIVE
from gradcli.inputs.search.named_axes import SIZES
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.targets import Trial

LARGE_SIZE = 5
_MORE_LABELS = 1


def refined(trials: Trials, guess: Guess, axes: Mapping[str, tuple[Axis, ...]], fits: Callable[[Guess], bool]) -> Guess:
    """The same inputs with small sizes, and axes of different sizes or longer ones where a mistake could hide.

    Args:
        trials: runs forward.
        guess: inputs that forward accepts.
        axes: the documented names of the axes of arguments.
        fits: whether backward still fits.
    """
    smaller = polished(trials, guess, axes)
    smaller = with_several_windows(trials, smaller if fits(smaller) else guess, fits)
    apart = with_axes_apart(trials, with_names_apart(trials, smaller, axes, fits), axes, fits)
    return with_entries_left_out(trials, apart, fits)


def polished(trials: Trials, guess: Guess, axes: Mapping[str, tuple[Axis, ...]]) -> Guess:
    """The same inputs with the largest index bound, and the smallest distinct sizes, that forward accepts.

    Sizes that are numbers in documentation, or that it computes from others, as in `(T, U + 1)`, stay; `axes` are the
    documented ones.
    """
    return _widest_indices(trials, _smaller_sizes(trials, guess, _documented_sizes(trials, guess, axes)))


def with_labels_for_each_row(trials: Trials, guess: Guess) -> Guess:
    """The same inputs with as many labels as rows, if forward accepts fewer labels but not more.

    `p[range(len(y)), y]` and `p.gather(1, y[:, None])` read the first rows only where there are fewer labels, which no
    loss means. A look-up such as `weight[index]` takes any number, and keeps its own.
    """
    free = {size for slot, shape in guess.shapes.items() if guess.skeleton[slot].kind != "index" for size in shape}
    for slot, choice in enumerate(guess.skeleton):
        if choice.kind != "index" or len(guess.shapes[slot]) != 1 or guess.shapes[slot][0] in free:
            continue
        for size in sorted(free, reverse=True):
            fitting, larger = (
                replace(guess, shapes={**guess.shapes, slot: (count,)}) for count in (size, size + _MORE_LABELS)
            )
            if trials.exhausted or trials.judge(fitting) is not None:
                continue
            if trials.judge(larger) is None:
                break
            return fitting
    return guess


def without_ignored_ends(trials: Trials, guess: Guess, documented: Collection[str]) -> Guess:
    """The same inputs without entries that forward ignores because they lie beyond the size of another tensor.

    Tensors whose shapes are documented keep them.

    A scan over the steps of x takes coefficients for more steps, and its backward may leave their gradients undefined.
    The longer axis is cut, or if that makes a tensor square, the other one becomes as long where forward allows that.
    """
    floats = [slot for slot in guess.shapes if guess.skeleton[slot].kind == "float"]
    own = {slot: trials.slots[slot].name for slot in floats}
    free = [slot for slot in floats if not is_state(own[slot]) and own[slot] not in documented]
    for slot in free:
        for axis, size in enumerate(guess.shapes[slot]):
            others = {n for other in floats if other != slot for n in guess.shapes[other] if 1 < n < size}
            for n in sorted(others, reverse=True):
                if not trials.ignores(guess, slot, axis, n):
                    continue
                places = [(other, at) for other in free for at, each in enumerate(guess.shapes[other]) if each == n]
                shorter = _resized(guess, slot, axis, n)
                longer = [_resized(guess, *place, size) for place in places]
                fewer = [each for each in longer if _repeated(each) < _repeated(shorter)]
                for each in (*fewer, shorter):
                    if trials.judge(each) is None:
                        return without_ignored_ends(trials, each, documented)
    return guess


def with_entries_left_out(trials: Trials, guess: Guess, fits: Callable[[Guess], bool]) -> Guess:
    """The same inputs with more entries than are assigned to by an index, where forward and backward allow that.

    Of what is overwritten as a whole every gradient is zero, and a mistake in it does not show.
    """
    for slot in (n for n, each in enumerate(trials.slots) if each.said == DIFFERENT and guess.shapes.get(n)):
        count = guess.shapes[slot][-1]
        if guess.high > count or guess.skeleton[slot].kind != "index":
            continue
        used = trials.held_sizes.union(*guess.shapes.values())
        longer = next(size for size in itertools.count(count + 1) if size not in used)
        candidates = [
            _resized(guess, other, axis, longer)
            for other, shape in guess.shapes.items()
            for axis, size in enumerate(shape)
            if guess.skeleton[other].kind != "index" and trials.slots[other].fixed is None and size == count
        ]
        for place, choice in enumerate(guess.skeleton):
            if choice.kind == "value" and type(choice.value) is int and choice.value == count:
                larger = (*guess.skeleton[:place], replace(choice, value=longer), *guess.skeleton[place + 1 :])
                candidates.append(replace(guess, skeleton=larger))
        for each in (replace(candidate, high=longer) for candidate in candidates):
            if not trials.exhausted and trials.judge(each) is None and fits(each):
                return each
    return guess


def _resized(guess: Guess, slot: int, axis: int, size: int) -> Guess:
    shape = (*guess.shapes[slot][:axis], size, *guess.shapes[slot][axis + 1 :])
    return replace(guess, shapes={**guess.shapes, slot: shape})


def _repeated(guess: Guess) -> int:
    """In how many tensors a size occurs twice."""
    return sum(len(set(shape)) < len(shape) for shape in guess.shapes.values())


def with_statistics_of_features(trials: Trials, guess: Guess) -> Guess:
    """The same with running statistics as long as the layer's vectors, and variances positive, where forward allows.

    In training mode any size works, because they are not used; in evaluation mode they are.
    """
    states = [slot for slot in guess.shapes if is_state(trials.slots[slot].name)]
    vectors = [shape for slot, shape in guess.shapes.items() if slot not in states and len(shape) == 1]
    first = next((shape for shape in guess.shapes.values() if len(shape) > 1), ())
    length = vectors[0] if vectors else first[1:2]
    spreads = [slot for slot in states if re.search("var|std", trials.slots[slot].name)]
    fitting = replace(
        guess,
        shapes={**guess.shapes, **dict.fromkeys(states, length)},
        domains={**guess.domains, **dict.fromkeys(spreads, POSITIVE)},
    )
    return fitting if states and length and trials.judge(fitting) is None else guess


def with_several_windows(trials: Trials, guess: Guess, fits: Callable[[Guess], bool]) -> Guess:
    """The same inputs with one axis longer, if a window that forward moves along it has a single position.

    A kernel as long as the signal has one position, and an output axis of one entry. Windows never overlap there: `=`
    in the place of `+=` in backward would not show.

    Args:
        trials: runs forward.
        guess: inputs that forward accepts.
        fits: whether backward still fits.
    """
    base = trials.run(guess, 0)
    if not any(1 in output.shape for output in base.outputs):
        return guess
    real = [slot for slot, choice in enumerate(guess.skeleton) if choice.kind in ("float", "complex")]
    for slot in (slot for slot in real if slot not in guess.domains):
        for axis, size in enumerate(guess.shapes[slot]):
            for longer in (n for n in (size + 2, size + 3, size + 4, 2 * size) if n not in guess.shapes[slot]):
                shape = (*guess.shapes[slot][:axis], longer, *guess.shapes[slot][axis + 1 :])
                candidate = replace(guess, shapes={**guess.shapes, slot: shape})
                if trials.exhausted or not (trial := trials.run(candidate, 0)).ok:
                    break
                if _has_more_positions(base, trial) and trials.judge(candidate) is None and fits(candidate):
                    return candidate
    return guess


def with_names_apart(
    trials: Trials, guess: Guess, axes: Mapping[str, tuple[Axis, ...]], fits: Callable[[Guess], bool]
) -> Guess:
    """The same inputs with axes of different names of different sizes, where forward accepts that.

    Grouped heads, `q: (B, Hq, T, D)` and `k: (B, Hkv, S, D)`, may be as many; but a sum over a group shows only where
    one number is a multiple of the other.

    Args:
        trials: runs forward.
        guess: inputs that forward accepts.
        axes: the names of the axes of arguments.
        fits: whether backward still fits.
    """
    places: dict[Axis, list[tuple[int, int]]] = {}
    for slot, shape in guess.shapes.items():
        named = axes.get(trials.slots[slot].name, ())
        if len(named) == len(shape) and guess.skeleton[slot].is_free:
            for axis, name in enumerate(named):
                places.setdefault(name, []).append((slot, axis))
    size_of = {name: guess.shapes[slot][axis] for name, ((slot, axis), *_) in places.items() if isinstance(name, str)}
    for one, other in itertools.permutations(size_of, 2):
        if size_of[one] == size_of[other] > 1 and not trials.exhausted:
            shapes = {slot: list(shape) for slot, shape in guess.shapes.items()}
            for slot, axis in places[one]:
                shapes[slot][axis] = 2 * size_of[one]
            candidate = replace(guess, shapes={slot: tuple(shape) for slot, shape in shapes.items()})
            if trials.judge(candidate) is None and fits(candidate):
                return with_names_apart(trials, candidate, axes, fits)
    return guess


def with_axes_apart(trials: Trials, guess: Guess, documented: Collection[str], fits: Callable[[Guess], bool]) -> Guess:
    """The same with axes of different sizes, where there is one tensor and forward accepts that.

    The rows of a batch were made as many as the features that a layer takes: the error of forward named both sizes.
    Beside another tensor a square one may be meant, although broadcasting takes others.

    Args:
        trials: runs forward.
        guess: inputs that forward accepts.
        documented: the names of arguments whose shapes are documented, which stay.
        fits: whether backward still fits.
    """
    if len(guess.shapes) != 1 or guess.domains:
        return guess
    ((slot, shape),) = guess.shapes.items()
    if trials.slots[slot].name in documented or guess.skeleton[slot].kind not in ("float", "complex"):
        return guess
    unused = next(size for size in SIZES if size not in trials.held_sizes.union(shape))
    for axis in [axis for axis, size in enumerate(shape) if size > 1 and shape.count(size) > 1]:
        apart = replace(guess, shapes={slot: (*shape[:axis], unused, *shape[axis + 1 :])})
        if not trials.exhausted and trials.judge(apart) is None and fits(apart):
            return with_axes_apart(trials, apart, documented, fits)
    return guess


def _has_more_positions(before: Trial, after: Trial) -> bool:
    """Whether an axis of an output has more than one entry now, and had one before."""
    pairs = [(one.shape, two.shape) for one, two in zip(before.outputs, after.outputs, strict=False)]
    return any(len(one) == len(two) and any(n == 1 < m for n, m in zip(one, two, strict=True)) for one, two in pairs)


def _widest_indices(trials: Trials, guess: Guess) -> Guess:
    if not any(choice.kind == "index" for choice in guess.skeleton):
        return guess
    sizes = {size for shape in guess.shapes.values() for size in shape}
    counts = {choice.value for choice in guess.skeleton if choice.kind == "value" and isinstance(choice.value, int)}
    for high in sorted(sizes | counts, reverse=True):
        if 2 < high <= max(sizes, default=2) + 1 and not trials.exhausted:
            wider = replace(guess, high=high)
            if trials.judge(wider) is None:
                return wider
    return guess


def _documented_sizes(trials: Trials, guess: Guess, axes: Mapping[str, tuple[Axis, ...]]) -> set[int]:
    named = {slot: axes.get(trials.slots[slot].name, ()) for slot in guess.shapes}
    composed = {
        axis for names in named.values() for axis in names if isinstance(axis, str) and names_in(axis) != [axis]
    }
    parts = composed | {name for axis in composed for name in names_in(axis)}
    pairs = [(names, guess.shapes[slot]) for slot, names in named.items() if len(names) == len(guess.shapes[slot])]
    sizes = [(name, size) for names, shape in pairs for name, size in zip(names, shape, strict=True)]
    return {size for name, size in sizes if name in parts or name == size}


def _smaller_sizes(trials: Trials, guess: Guess, kept: Collection[int]) -> Guess:
    settled = {size for slot, shape in guess.shapes.items() if not guess.skeleton[slot].is_free for size in shape}
    settled.update(kept)
    for size in sorted({size for shape in guess.shapes.values() for size in shape}, reverse=True):
        if size > LARGE_SIZE and size not in settled:
            guess = _with_less_than(trials, guess, size)
    return guess


def _with_less_than(trials: Trials, guess: Guess, size: int) -> Guess:
    """`guess` with a smaller size in the place of `size`: one not used at all, else one not used beside it."""
    used = {each for shape in guess.shapes.values() for each in shape}
    beside = {each for shape in guess.shapes.values() if size in shape for each in shape}
    smaller = [each for each in range(2, size) if each not in used | trials.held_sizes]
    smaller += [each for each in range(2, size) if each in used - beside]
    for each in smaller:
        shapes = {slot: tuple(each if old == size else old for old in shape) for slot, shape in guess.shapes.items()}
        candidate = replace(guess, shapes=shapes)
        if not trials.exhausted and trials.judge(candidate) is None:
            return candidate
    return guess
