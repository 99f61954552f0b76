"""How many calls of forward a right and a wrong Function take by default, where forward is slow.

Run as `python benchmarks/slow.py [SECONDS]...`; without arguments for forwards of 0.1, 1 and 5 s.
"""

import sys
import time
from typing import Any

import gradcli
import gradcli.engine as engine


def cube(factor: float, seconds: float) -> Any:
    """x^3 with `factor` x^2 for its derivative, which counts its calls."""

    class Cube(engine.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            Cube.calls += 1
            time.sleep(seconds)
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return factor * x * x * g

    return Cube


def main(seconds: list[float]) -> None:
    """Print the table."""
    print("| forward | Function | verdict | finding | calls | seconds | resolution |")
    print("|---|---|---|---|---|---|---|")
    for each in seconds:
        for name, factor in (("right", 3.0), ("wrong", 2.0)):
            target, began = cube(factor, each), time.perf_counter()
            (case,) = gradcli.check(target).cases
            took = time.perf_counter() - began
            finding = case.findings[0].kind.value if case.findings else ""
            resolution = "" if case.resolution is None else f"{case.resolution:.0e}"
            cells = [f"{each:g} s", name, case.verdict.value, finding, str(target.calls), f"{took:.1f}", resolution]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main([float(text) for text in sys.argv[1:]] or [0.1, 1.0, 5.0])
