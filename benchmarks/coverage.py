"""How often the error bound holds, and how the verdict fares, on random expressions never seen before.

Run: python benchmarks/coverage.py [COUNT] [FIRST_SEED]
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


from gradcli.numerics.differences.directional import directional_derivative  # noqa: E402 - found through the path set above
from gradcli.numerics.differences.estimate import Status  # noqa: E402
from gradcli.numerics.maps.floats import Vector  # noqa: E402
from gradcli.numerics.maps.space import Block, Space  # noqa: E402
from gradcli.numerics.maps.vector_map import VectorMap  # noqa: E402
from gradcli.numerics.sampling.directions import entry_scales, random_direction, snap  # noqa: E402
from gradcli.numerics.verify import Outcome, verify  # noqa: E402
from tests.numerics.expressions import Expression, random_case  # noqa: E402


class ExpressionMap(VectorMap):
    """One expression with its gradient, scaled by `factor` to plant an error."""

    def __init__(self, expression: Expression, factor: float) -> None:
        self.expression, self.factor = expression, factor
        self.domain = Space((Block("x", (expression.inputs,), "float64"),))
        self.codomain = Space((Block("y", (), "float64"),))

    def value(self, x: Vector) -> Vector:
        """The expression in float64."""
        return np.array([self.expression(x)])

    def vjp(self, x: Vector, cotangent: Vector) -> Vector:
        """The gradient, exact but for the planted factor."""
        return self.expression.gradient(x) * self.factor * cotangent[0]


def coverage(seeds: range) -> None:
    """Print the coverage table of `directional_derivative`.

    Where float64 loses the formula itself (a constant cancels, an argument is absorbed) the values are those of another
    function; such expressions, found by their float64 slope being off by 1e-6, are counted apart.
    """
    started = time.perf_counter()
    statuses: Counter[str] = Counter()
    ratios, relative, evaluations, violations = [], [], [], []
    for seed in seeds:
        expression, x = random_case(seed)
        rng = np.random.default_rng([1, seed])
        space = Space((Block("x", (x.size,), "float64"),))
        scales = entry_scales(space, x)
        x = snap(x, scales)
        v = random_direction(rng, scales)
        truth = float(expression.evaluate(x, v).slope)
        if not np.isfinite(expression(x)) or not np.isfinite(truth):
            statuses["skipped"] += 1
            continue
        in_float64 = float(expression.evaluate(x, v, np.float64).slope)
        if not abs(in_float64 - truth) <= 1e-6 * abs(truth):
            statuses["formula lost in rounding"] += 1
            continue
        in_float64 = float(expression.evaluate(x, v, np.float64).slope)
        if not abs(in_float64 - truth) <= 1e-6 * abs(truth):
            statuses["formula lost in rounding"] += 1
            continue
        estimate = directional_derivative(lambda p, e=expression: np.array([e(p)]), x, v, rng=rng)
        statuses[Status(int(estimate.status[0])).name] += 1
        evaluations.append(estimate.evaluations)
        if not estimate.smooth[0]:
            continue
        error, bound = abs(estimate.value[0] - truth), float(estimate.bound[0]) + 1e-15 * abs(truth)
        ratios.append(error / bound)
        relative.append(bound / max(abs(truth), 1e-300))
        if error > bound:
            violations.append((seed, truth, float(estimate.value[0]), bound, Status(int(estimate.status[0])).name))
    total = len(ratios)
    print(f"coverage: {total - len(violations)} of {total} = {100 * (1 - len(violations) / total):.3f} %")
    print(f"statuses: {dict(statuses)}")
    print(f"relative bound: median {np.median(relative):.1e}, 90 % {np.quantile(relative, 0.9):.1e}")
    print(f"bound / error: median {1 / np.median(ratios):.0f}; evaluations: mean {np.mean(evaluations):.1f}")
    print(f"seconds: {time.perf_counter() - started:.0f}")
    for violation in violations[:20]:
        print("  violation", violation)


def verdicts(seeds: range, factor: float) -> None:
    """Print the outcomes of `verify` for gradients scaled by a factor."""
    started = time.perf_counter()
    outcomes: Counter[str] = Counter()
    evaluations = []
    wanted = Outcome.AGREES if factor == 1.0 else Outcome.DIFFERS
    for seed in seeds:
        expression, x = random_case(seed)
        with np.errstate(all="ignore"):
            result = verify(ExpressionMap(expression, factor), x, seed=seed)
        block = result.blocks[0]
        evaluations.append(result.evaluations)
        outcomes[block.outcome.value + (f" {block.doubt.value}" if block.doubt else "")] += 1
        if block.outcome not in (wanted, Outcome.UNDECIDED):
            print("  wrong verdict", seed, block.outcome.name, block.note, f"{block.max_rel_error:.1e}")
    print(f"gradient x {factor!r}: {dict(outcomes)}, evaluations median {np.median(evaluations):.0f}, ", end="")
    print(f"seconds {time.perf_counter() - started:.0f}")


def main() -> None:
    """Run both tables."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    coverage(range(first, first + count))
    for factor in (1.0, 1 + 1e-2, 1 + 1e-4, 1 + 1e-6):
        verdicts(range(first, first + max(count // 10, 1)), factor)


if __name__ == "__main__":
    main()
