"""A step length that satisfies the strong Wolfe conditions.

The search is that of Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6, with cubic interpolation; the
constants and safeguards are those of the search that Mark Schmidt's minFunc made common, and PyTorch's LBFGS follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gradcli.engine.tensor import Tensor

DECREASE = 1e-4  # of the decrease that the slope promises, the part a step must bring
CURVATURE = 0.9  # of the slope at the start, the part that may be left


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A step length, and what was found there: the loss, its gradient, and its slope along the direction."""

    length: float
    loss: float
    gradient: Tensor
    slope: float


def minimum_of_cubic(first: Trial, second: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Return the least point, within bounds, of the cubic through two trials; the middle where it has none."""
    left, right = (first, second) if first.length <= second.length else (second, first)
    low, high = bounds or (left.length, right.length)
    if left.length == right.length:
        return low
    mean = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.length - right.length)
    square = mean * mean - left.slope * right.slope
    if square < 0:
        return (low + high) / 2
    root = math.sqrt(square)
    bend = right.slope - left.slope + 2 * root
    if bend == 0:
        return (low + high) / 2
    least = right.length - (right.length - left.length) * (right.slope + root - mean) / bend
    return min(max(least, low), high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One line search.

    Args:
        at: tries a step length.
        start: what is known at length 0.
        size: the largest element of the direction.
        tolerance_change: the bracket is narrow enough when no element differs by more.
        most: trials beyond the first.
    """

    at: Callable[[float], Trial]
    start: Trial
    size: float
    tolerance_change: float
    most: int

    def _too_high(self, trial: Trial) -> bool:
        return trial.loss > self.start.loss + DECREASE * trial.length * self.start.slope

    def _flat_enough(self, trial: Trial) -> bool:
        return abs(trial.slope) <= -CURVATURE * self.start.slope

    def run(self, length: float) -> tuple[Trial, int]:
        """Return the trial to accept, and how many were made, the first at `length`."""
        before, trial, made = self.start, self.at(length), 1
        while made <= self.most:
            if self._too_high(trial) or (made > 2 and trial.loss >= before.loss):
                return self._zoom(before, trial, made)
            if self._flat_enough(trial):
                return trial, made
            if trial.slope >= 0:
                return self._zoom(before, trial, made)
            least = trial.length + 0.01 * (trial.length - before.length)
            further = minimum_of_cubic(before, trial, (least, trial.length * 10))
            before, trial, made = trial, self.at(further), made + 1
        return (self.start if self.start.loss <= trial.loss else trial), made

    def _zoom(self, first: Trial, second: Trial, made: int) -> tuple[Trial, int]:
        """Narrow a bracket that has an acceptable length in it."""
        low, high = (first, second) if first.loss <= second.loss else (second, first)
        stuck = False
        while made <= self.most and abs(high.length - low.length) * self.size >= self.tolerance_change:
            length, stuck = _inside(low, high, stuck)
            trial, made = self.at(length), made + 1
            if self._too_high(trial) or trial.loss >= low.loss:
                low, high = (low, trial) if low.loss <= trial.loss else (trial, low)
                continue
            if self._flat_enough(trial):
                return trial, made
            if trial.slope * (high.length - low.length) >= 0:
                high = low
            low = trial
        return low, made


def _inside(low: Trial, high: Trial, stuck: bool) -> tuple[float, bool]:
    """Return a length within a bracket, kept off its ends when the last one lay near them, and whether it does."""
    least, most = sorted((low.length, high.length))
    length = minimum_of_cubic(low, high)
    margin = 0.1 * (most - least)
    if min(most - length, length - least) >= margin:
        return length, False
    if not stuck and least < length < most:
        return length, True
    return (most - margin if abs(length - most) < abs(length - least) else least + margin), False
