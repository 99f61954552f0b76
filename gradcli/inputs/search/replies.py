"""What backward does at inputs that forward accepts: it fits, returns what the framework sums or refuses, or raises."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import final

import numpy as np

from gradcli.cases import Argument
from gradcli.inputs.search.backward_inputs import exchanges
from gradcli.inputs.search.candidates import Skeleton
from gradcli.inputs.search.error_messages import is_refusal, refused_gradient, refused_position
from gradcli.inputs.search.trials import Guess, Trials
from gradcli.targets import Trial

Attempt = Callable[[Sequence[Argument]], Trial]
RAISING_BACKWARD = 2.5
"""Added to inputs that backward does not fit; where it fits none of them, this changes nothing."""


class Reply(Enum):
    """What backward does; the value is the wording for a note."""

    FITS = "fits"
    NONE = "returns None for it"
    SUMMED = "returns gradients that the framework sums to the inputs' shapes"
    REFUSED = "returns gradients of the wrong shape or number"
    RAISES = "fails"


@final
class Attempted:
    """Forward and backward on a guess, run once for each guess; an empty trial where backward cannot be tried.

    The same few guesses are looked at for their errors, their gradients and what the framework sums.
    """

    def __init__(self, trials: Trials, attempt: Attempt | None) -> None:
        self._trials, self._attempt = trials, attempt
        self._known: dict[object, Trial] = {}

    @property
    def runs_backward(self) -> bool:
        """Whether backward can be tried."""
        return self._attempt is not None

    def __call__(self, guess: Guess) -> Trial:
        """The trial of the guess's first sample."""
        if self._attempt is None:
            return Trial(outputs=(np.zeros(1),))
        if guess.key not in self._known:
            self._known[guess.key] = self._attempt(self._trials.arguments(guess, 0))
        return self._known[guess.key]

    def fits(self, guess: Guess) -> bool:
        """Whether backward runs on a guess and returns gradients of the inputs' own shapes."""
        return reply_in(self(guess)) is Reply.FITS


def reply_in(trial: Trial) -> Reply:
    """What backward did in a trial of it, which is run again to see what the framework sums."""
    reply = ended(trial)
    if reply is not Reply.FITS:
        return reply
    return Reply.REFUSED if trial.lacks_a_sum else Reply.SUMMED if trial.is_summed() else Reply.FITS


def reply_at(trial: Trial, penalty: float) -> Reply:
    """The reply by which inputs are ranked: at a small penalty, a backward that raises counts as one that fits."""
    reply = reply_in(trial)
    return Reply.FITS if penalty < RAISING_BACKWARD and reply is not Reply.SUMMED else reply


def is_transposed(trial: Trial) -> bool:
    """Whether the framework refused a gradient that has its input's axes in another order."""
    refusal = refused_gradient(str(trial.backward_error))
    return refusal is not None and refusal[0] != refusal[1] and sorted(refusal[0]) == sorted(refusal[1])


def ended(trial: Trial) -> Reply:
    """How a trial of backward ended: without an error, with the framework's refusal, or with an error of its own."""
    if trial.ok and trial.backward_error is None:
        return Reply.FITS
    return Reply.REFUSED if trial.ok and is_refusal(str(trial.backward_error)) else Reply.RAISES


def penalty_of(guess: Guess, trial: Trial) -> float:
    """The penalty for a failing backward. It only breaks ties: a wrong backward must not lead to other inputs."""
    if not trial.ok or trial.backward_error is not None:
        return 0.0 if exchanges(guess, trial.backward_error) else RAISING_BACKWARD
    return 0.7 * sum(gradient is None for gradient in trial.gradients or ())


def lacks_ignored_end(trials: Trials, guess: Guess, trial: Trial) -> bool:
    """Whether the framework refused a gradient that is shorter than its input by entries that forward ignores."""
    message = str(trial.backward_error)
    refusal, position = refused_gradient(message), refused_position(message)
    if refusal is None or position is None or guess.shapes.get(position) != refusal[1]:
        return False
    if len(refusal[0]) != len(refusal[1]):
        return False
    pairs = enumerate(zip(*refusal, strict=True))
    shorter = [(axis, kept) for axis, (kept, size) in pairs if kept != size]
    return (
        len(shorter) == 1 and shorter[0][1] < refusal[1][shorter[0][0]] and trials.ignores(guess, position, *shorter[0])
    )


def has_more_axes(skeleton: Skeleton, guess: Guess) -> bool:
    """Whether a skeleton has the arguments of a guess, and one tensor of them has more axes."""
    pairs = [(one, other) for one, other in zip(skeleton, guess.skeleton, strict=True) if one != other]
    return all(one.kind == other.kind and one.rank > other.rank for one, other in pairs)
