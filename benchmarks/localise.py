"""What it takes to find wrong entries in a gradient of a million: forward evaluations of a whole verification.

Run: python benchmarks/localise.py [SIDE]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gradcli.numerics.space import Block, Space, Vector
from gradcli.numerics.vector_map import CountedMap, VectorMap
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


def measured(claim: CountedMap, x: Vector, witness: VectorMap | None, wrong: Indices) -> str:
    """One verification as a cell of the table."""
    started = time.perf_counter()
    (block,) = verify(claim, x, seed=3, witness=witness).blocks
    found = np.zeros(0, np.intp) if block.wrong_columns is None else block.wrong_columns
    exact = "yes" if np.array_equal(found, wrong) else "NO"
    took = time.perf_counter() - started
    return f" {block.outcome.value:>8s} {claim.values:5d} ({claim.vjps:3d}) {exact:>3s} {took:4.1f}s"


def main() -> None:
    """Print one line a pattern and error."""
    side = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(12)
    n = side * side
    weights, x = rng.standard_normal(n) + 3, rng.standard_normal(n)
    print(f"n = {n}; outcome, forwards (claims) of a whole verification, whether the entries are exact, seconds")
    print(f"{'wrong':12s} {'by':>8s} {'without witness':>29s} {'with witness':>29s}")
    for name, wrong in patterns(side, rng).items():
        for factor in (1.5, 1.01) if wrong.size else (1.0,):
            line = f"{name:12s} {factor - 1:8.0e}"
            for witness in (None, WeightedSum(weights, side, wrong[:0], 1.0)):
                line += measured(CountedMap(WeightedSum(weights, side, wrong, factor)), x, witness, wrong)
            print(line, flush=True)


if __name__ == "__main__":
    main()
