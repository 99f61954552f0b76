"""The points evaluated along one line, symmetric pairs of steps and clusters around x, and the estimates from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradcli.numerics.differences.noise import Cluster, measure_cluster
from gradcli.numerics.differences.stencil import SymmetricPair, Windows, derivative_windows, kink_windows, pair
from gradcli.numerics.maps.floats import EPS, Mask, Vector
from gradcli.numerics.maps.sizes import COARSE
from gradcli.numerics.sampling.line import GRID, Line, on_grid

JITTER = 0.12
"""Each step is changed at random by up to this part of itself. Without that, an oscillation could have a period that
divides all steps, and all steps could have the same rounding error."""
GROWN = 8.0
"""The rounding error of a value that exceeds |f(x)| is taken to be larger by the same factor, up to this one. For
example, the rounding of a large argument a makes the relative error of exp(a) about a times ε."""
CLUSTER = 10
"""The level of the first cluster: its points are about 2^-10 of the largest step apart."""


@dataclass(slots=True)
class Choice:
    """The estimate chosen for every output.

    Attributes:
        value: the derivative.
        bound: its error bound.
        step: the smallest step of the chosen window.
        noise: the part of the bound that is due to noise and rounding.
        kink: half the change of slope at x.
        kink_bound: its error bound.
    """

    value: Vector
    bound: Vector
    step: Vector
    noise: Vector
    kink: Vector
    kink_bound: Vector

    def replace(self, where: Mask, other: Choice) -> None:
        """Replace the estimates of some outputs by those of another choice."""
        for name in ("value", "bound", "step", "noise", "kink", "kink_bound"):
            getattr(self, name)[where] = getattr(other, name)[where]


class Ladder:
    """The steps t_k = start · 2^-k with random jitter (`JITTER`), and clusters of nine points at some levels k."""

    def __init__(self, line: Line, rng: np.random.Generator, start: float, given: Vector | None) -> None:
        self.line, self.rng, self.start = line, rng, start
        self.given = None if given is None else np.broadcast_to(given / line.scale, (line.outputs,))
        self.levels: dict[int, SymmetricPair] = {}
        self.clusters: dict[int, Cluster] = {}
        self.cluster_pairs: dict[int, list[SymmetricPair]] = {}
        self.unusable = np.zeros(line.outputs, bool)

    def _pair(self, t: float) -> SymmetricPair:
        """Evaluate f at ± t and form the difference quotients."""
        return pair(t, self.line.at(t), self.line.at(-t), self.line.centre)

    def add_level(self, level: int) -> None:
        """Evaluate the pair at one level, unless it is known already or the step is close to the grid of t."""
        jitter = 1 + JITTER * (2 * self.rng.random() - 1) if level else 1.0
        step = on_grid(self.start * 2.0**-level * jitter)
        if level not in self.levels and step > 64 * GRID:
            self.levels[level] = self._pair(step)

    def add_cluster(self, level: int) -> Cluster:
        """Evaluate nine points around x at one level, and measure the noise there."""
        if level in self.clusters:
            return self.clusters[level]
        h = max(self.start * 2.0**-level * (1 + 0.4 * self.rng.random()), 256 * GRID)
        jitter = 0.3 * (2 * self.rng.random(4) - 1)
        steps = [on_grid(h * (j + e)) for j, e in zip((1, 2, 3, 4), jitter.tolist(), strict=True)]
        nodes = np.array([-t for t in reversed(steps)] + [0.0, *steps])
        line = self.line
        values = np.array([line.centre if t == 0 else line.at(t) for t in nodes.tolist()])
        cluster = measure_cluster(nodes, values, steps[0])
        broken = cluster.broken.copy()
        for coarser in (c for k, c in self.clusters.items() if k < level):
            broken &= coarser.broken  # a kink at x itself shows at every coarser scale as well
        self.clusters[level] = replace(cluster, broken=broken)
        self.cluster_pairs[level] = [self._pair(steps[j]) for j in (3, 1, 0)]
        return self.clusters[level]

    def sigma(self, step: float) -> Vector:
        """The standard deviation of values at a step: the given one, or that of the widest cluster within the step."""
        if self.given is not None:
            return self.given
        for level in sorted(self.clusters):
            if self.clusters[level].step <= 1.01 * step:
                return self.clusters[level].noise
        return self.clusters[max(self.clusters)].noise

    def _node_noise(self, p: SymmetricPair) -> Vector:
        """The standard deviation of the two values of a pair, larger where they exceed |f(x)|."""
        at_centre = np.maximum(np.abs(self.line.centre), COARSE)
        growth = np.where(p.size > at_centre, np.minimum(p.size / at_centre, 1e12), 1.0)
        noise: Vector = np.maximum(self.sigma(p.step) * growth, 0.7 * EPS * p.size * np.minimum(growth, GROWN))
        return noise

    def _families(self) -> list[list[SymmetricPair]]:
        """The runs of consecutive pairs from which windows are formed: at least three adjacent levels, or a cluster."""
        runs: list[list[SymmetricPair]] = []
        previous = None
        for level in sorted(self.levels):
            if previous is None or level != previous + 1:
                runs.append([])
            runs[-1].append(self.levels[level])
            previous = level
        return [run for run in [*runs, *self.cluster_pairs.values()] if len(run) >= 3]

    def choose(self, above: float = 0.0, quiet: Mask | None = None) -> Choice:
        """Choose the estimate with the smallest bound that no estimate by smaller steps contradicts (Lepski's rule).

        Args:
            above: only windows whose smallest step is at least this are considered.
            quiet: outputs for which no kink is sought.
        """
        with np.errstate(all="ignore"):
            families = [(run, [self._node_noise(p) for p in run]) for run in self._families()]
            windows = [derivative_windows(run, sigmas) for run, sigmas in families]
            chosen = _lepski(windows, self.line.outputs, above)
            chosen.bound[self.unusable] = np.inf
            _choose_kink(chosen, [kink_windows(run, sigmas) for run, sigmas in families], quiet)
        return chosen


def _flatten(windows: list[Windows]) -> list[tuple[float, Vector, Vector, Vector]]:
    """All windows as (smallest step, value, bound, noise), in order of their smallest step."""
    rows = [(float(w.finest[i]), w.value[i], w.bound[i], w.noise[i]) for w in windows for i in range(len(w.finest))]
    return sorted(rows, key=lambda row: row[0])


def _lepski(windows: list[Windows], outputs: int, above: float) -> Choice:
    """Accept windows in order of their steps, smallest first, and choose the accepted one with the smallest bound.

    A window is accepted if its value differs from that of every window accepted before by at most the sum of both
    bounds.
    """
    value, step, kink = np.zeros((3, outputs))
    bound, noise, kink_bound = np.full((3, outputs), np.inf)
    # |d - d'| <= b + b' for every window (d', b') accepted before, kept as the largest d' - b' and smallest d' + b'
    highest_low, lowest_high = np.full(outputs, -np.inf), np.full(outputs, np.inf)
    for finest, d, b, n in _flatten(windows):
        if finest < above:
            continue
        supported = np.isfinite(b) & (d + b >= highest_low) & (d - b <= lowest_high)
        highest_low = np.where(supported, np.maximum(highest_low, d - b), highest_low)
        lowest_high = np.where(supported, np.minimum(lowest_high, d + b), lowest_high)
        better = supported & (b < bound)
        value = np.where(better, d, value)
        bound = np.where(better, b, bound)
        noise = np.where(better, n, noise)
        step = np.where(better, finest, step)
    return Choice(value, bound, step, noise, kink, kink_bound)


def _choose_kink(chosen: Choice, windows: list[Windows], quiet: Mask | None) -> None:
    """Add the change of slope with the smallest bound, by steps that are not larger than the chosen ones."""
    limit = np.maximum(chosen.step, 1e-30) * 1.0001
    for finest, c, b, _ in _flatten(windows):
        better = (b < chosen.kink_bound) & (finest <= limit)
        chosen.kink = np.where(better, c, chosen.kink)
        chosen.kink_bound = np.where(better, b, chosen.kink_bound)
    if quiet is not None:
        chosen.kink_bound[quiet] = np.inf
