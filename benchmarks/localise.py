"""What it takes to find wrong entries in a gradient of a million, in forward evaluations.

Run: python benchmarks/localise.py [SEEDS] [SIDE]
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gradcli.numerics.claims.site import Site
from gradcli.numerics.localise.entries import locate
from gradcli.numerics.maps.floats import Vector
from gradcli.numerics.maps.space import Block, Space
from gradcli.numerics.maps.vector_map import CountedMap, VectorMap
from gradcli.numerics.outcome import Outcome
from gradcli.numerics.verify import verify

Indices = npt.NDArray[np.intp]


class WeightedSum(VectorMap):
    """sum a sin(x) over a square array, with a claim that is wrong by `factor` in some entries."""

    def __init__(self, weights: Vector, side: int, wrong: Indices, factor: float) -> None:
        self.weights, self.wrong, self.factor = weights, wrong, factor
        self.domain = Space((Block("x", (side, side), "float64"),))
        self.codomain = Space((Block("y", (), "float64"),))

    def value(self, x: Vector) -> Vector:
        """The sum."""
        return np.array([self.weights @ np.sin(x)])

    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        """The claim."""
        gradient = self.weights * np.cos(x) * cotangent[0]
        gradient[self.wrong] *= self.factor
        return np.asarray(gradient)


def patterns(side: int, rng: np.random.Generator) -> dict[str, Indices]:
    """Sets of wrong entries by name."""
    index = np.arange(side * side)
    row, column = int(rng.integers(side)), int(rng.integers(side))
    found = {"none": index[:0]}
    for count in (1, 3, 10):
        found[f"{count} entries"] = np.sort(rng.choice(index.size, count, replace=False))
    found["a row"] = index[index // side == row]
    found["a column"] = index[index % side == column]
    return found


def searched(claim: CountedMap, x: Vector, wrong: Indices, seed: int) -> tuple[int, bool]:
    """Forwards of the search alone, and whether it finds the entries exactly."""
    site = Site.at(claim, x, np.random.default_rng(seed))
    site.evaluate()
    before = claim.values
    found = locate(site, 0, 0)
    return claim.values - before, found is not None and np.array_equal(found.entries, wrong)


def verified(claim: CountedMap, x: Vector, witness: VectorMap | None, wrong: Indices, seed: int) -> tuple[int, bool]:
    """Forwards of a whole verification, and whether its outcome and the entries that it names are right."""
    (block,) = verify(claim, x, seed=seed, witness=witness).blocks
    found = np.zeros(0, np.intp) if block.wrong_columns is None else block.wrong_columns
    right = block.outcome is (Outcome.DIFFERS if wrong.size else Outcome.AGREES)
    return claim.values, right and np.array_equal(found, wrong)


def cell(results: list[tuple[int, bool]]) -> str:
    """The median and the largest number of forwards, and how many seeds were exact."""
    if not results:
        return f"{'':26s}"
    counts = [count for count, _ in results]
    exact = sum(right for _, right in results)
    return f"{statistics.median(counts):9.0f} {max(counts):7d} {exact:4d}/{len(results):<3d}"


def main() -> None:
    """Print one line a pattern and error."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    side = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    n = side * side
    print(f"n = {n}, {seeds} seeds; forwards (median, largest) and how many are exact")
    print(f"{'wrong':12s} {'by':>6s} {'search alone':>25s} {'verification':>26s} {'with witness':>26s}")
    for number, name in enumerate(patterns(side, np.random.default_rng())):
        for factor in (1.5, 1.01) if number else (1.0,):
            columns: list[list[tuple[int, bool]]] = [[], [], []]
            for seed in range(seeds):
                rng = np.random.default_rng([seed, number])
                weights, x = rng.standard_normal(n) + 3, rng.standard_normal(n)
                wrong = patterns(side, rng)[name]
                claim = WeightedSum(weights, side, wrong, factor)
                if wrong.size:
                    columns[0].append(searched(CountedMap(claim), x, wrong, seed))
                for column, witness in ((1, None), (2, WeightedSum(weights, side, wrong[:0], 1.0))):
                    columns[column].append(verified(CountedMap(claim), x, witness, wrong, seed))
            print(f"{name:12s} {factor - 1:6.0e}" + " ".join(map(cell, columns)), flush=True)


if __name__ == "__main__":
    main()
