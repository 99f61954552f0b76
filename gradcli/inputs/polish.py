"""Inputs that forward accepts made better: the widest range of indices, and small sizes that stay distinct."""

from dataclasses import replace

from gradcli.inputs.trials import Guess, Trials

LARGE_SIZE = 5


def polished(trials: Trials, guess: Guess) -> Guess:
    """The same inputs with the largest index bound, and the smallest distinct sizes, that forward accepts."""
    return _widest_indices(trials, _smaller_sizes(trials, guess))


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


def _smaller_sizes(trials: Trials, guess: Guess) -> Guess:
    for size in sorted({size for shape in guess.shapes.values() for size in shape}, reverse=True):
        used = {each for shape in guess.shapes.values() for each in shape}
        settled = {
            each
            for slot, shape in guess.shapes.items()
            if not guess.skeleton[slot].is_free
            for each in shape
        }  # fmt: skip
        if size <= LARGE_SIZE or size in settled:
            continue
        for smaller in range(2, size):
            if smaller in used or trials.exhausted:
                continue
            shapes = {
                slot: tuple(smaller if each == size else each for each in shape)
                for slot, shape in guess.shapes.items()
            }  # fmt: skip
            candidate = replace(guess, shapes=shapes)
            if trials.judge(candidate) is None:
                guess = candidate
                break
    return guess
