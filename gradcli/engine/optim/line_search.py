"""Line search for a step length that satisfies the strong Wolfe conditions.

Algorithms 3.5 and 3.6 of Nocedal and Wright, Numerical Optimization, with cubic interpolation. Constants and safeguards
are those of Mark Schmidt's minFunc, which PyTorch's torch/optim/lbfgs.py follows as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gradcli.engine.tensor import Tensor

DECREASE = 1e-4  # a step must decrease the loss by this part of length * slope at the start
CURVATURE = 0.9  # the slope at the end may be at most this part of that at the start


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A step length, with the loss there, its gradient, and its derivative along the direction (the slope)."""

    length: float
    loss: float
    gradient: Tensor
    slope: float


def minimum_of_cubic(first: Trial, second: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimiser of the cubic through two trials, clamped to bounds; the middle if it has none."""
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
        at: evaluates a step length.
        start: the trial of length 0.
        size: the largest absolute value of an element of the direction.
        tolerance_change: stop when the ends of the bracket differ by less in all elements.
        most: the most trials beyond the first.
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
        """Return the accepted trial and the number of trials, the first of which has this length."""
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
        """Narrow a bracket that contains an acceptable length."""
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
    """Return a length within a bracket, and whether it is within 10 % of its width from an end.

    After a length near an end (`stuck`), the next is moved to 10 % from the end.
    """
    least, most = sorted((low.length, high.length))
    length = minimum_of_cubic(low, high)
    margin = 0.1 * (most - least)
    if min(most - length, length - least) >= margin:
        return length, False
    if not stuck and least < length < most:
        return length, True
    return (most - margin if abs(length - most) < abs(length - least) else least + margin), False
