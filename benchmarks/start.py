"""What it costs to start: processor time of the commands beside that of Python and of NumPy alone, in pairs.

Run as `python benchmarks/start.py [start|specs|jobs] [--repeats 15]`. Every round runs each command once, one
after the other, so that what else the machine does falls on all of them; the first round warms the caches and does not
count. A ratio is the median of the rounds' ratios. Processor time is user and system time of a command and of all its
children. `specs` compares worker processes with `--in-process` on the specs that are shipped, `jobs` one worker process
with two on 200 cases.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

ROOT = Path(__file__).resolve().parent.parent
GRADCLI = (sys.executable, "-m", "gradcli")
CASES = 200
SUITE = """
from gradcli.engine.autograd import Function

def make(power):
    class Power(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**power

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * power * x ** (power - 1)

    Power.__name__ = Power.__qualname__ = f"Power{power}"
    return Power

for power in range(2, 2 + CASES):
    globals()[f"Power{power}"] = make(2 + power % 5)
"""


def cost(command: Sequence[str], folder: str) -> tuple[float, float]:
    """Seconds of the processor, and of the clock, that a command takes with its children."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds, after = perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, seconds


def rounds(commands: Mapping[str, Sequence[str]], repeats: int, folder: str) -> dict[str, list[tuple[float, float]]]:
    """What each command cost in each round, without the first."""
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(repeats + 1):
        for name, command in commands.items():
            costs[name].append(cost(command, folder))
    return {name: found[1:] for name, found in costs.items()}


def ratio(above: list[tuple[float, float]], below: list[tuple[float, float]], which: int = 0) -> str:
    """The median of the ratios of two commands, with the quarter of them on either side."""
    found = sorted(a[which] / b[which] for a, b in zip(above, below, strict=True))
    return f"{median(found):.2f} ({found[len(found) // 4]:.2f} to {found[-1 - len(found) // 4]:.2f})"


def start(repeats: int, target: str, folder: str) -> None:
    """Print what starting costs."""
    costs = rounds(
        {
            "python -c pass": (sys.executable, "-c", "pass"),
            'python -c "import numpy"': (sys.executable, "-c", "import numpy"),
            "gradcli --version": (*GRADCLI, "--version"),
            "gradcli check": (*GRADCLI, "check", target),
            "gradcli check --in-process": (*GRADCLI, "check", "--in-process", target),
        },
        repeats,
        folder,
    )
    for name, found in costs.items():
        print(f"{name:28} {1e3 * median(c for c, _ in found):7.1f} ms of the processor")
    nothing, numpy, version, check, inside = costs.values()
    print(f"--version to pass            {ratio(version, nothing)}, wanted: below 2")
    print(f"check to import numpy        {ratio(check, numpy)}, wanted: at most 4")
    compared(check, inside)


def specs(repeats: int, folder: str) -> None:
    """Print what worker processes cost on the shipped specs."""
    command = (*GRADCLI, "check", str(ROOT / "specs"), "-q")
    costs = rounds({"workers": command, "in process": (*command, "--in-process")}, repeats, folder)
    for name, found in costs.items():
        print(f"{name:28} {1e3 * median(c for c, _ in found):7.1f} ms of the processor")
    compared(*costs.values())


def compared(check: list[tuple[float, float]], inside: list[tuple[float, float]]) -> None:
    """Print what worker processes cost above --in-process."""
    more = 1e3 * median(c[0] - i[0] for c, i in zip(check, inside, strict=True))
    print(f"check above --in-process     {more:+.0f} ms, wanted: at most 150")


def jobs(repeats: int, folder: str) -> None:
    """Print what a second worker process gains."""
    Path(folder, "suite.py").write_text(SUITE.replace("CASES", str(CASES)), encoding="utf-8")
    command = (*GRADCLI, "check", "suite.py", "-q")
    costs = rounds({"one": (*command, "-j", "1"), "two": (*command, "-j", "2")}, repeats, folder)
    for name, found in costs.items():
        print(
            f"{name} worker: {median(s for _, s in found):.2f} s, {median(c for c, _ in found):.2f} s of the processor"
        )
    idle = median(1.0 - c / (2.0 * s) for c, s in costs["two"])
    print(f"one worker to two, by the clock: {ratio(costs['one'], costs['two'], 1)}, wanted: at least 1.6")
    print(f"of two processors idle with two workers: {100 * idle:.0f} %, were the machine alone")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--target", default="gradcli.examples.cube:Cube")
    parser.add_argument("what", nargs="?", choices=("start", "specs", "jobs"), default="start")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.what == "start":
            start(options.repeats, options.target, place)
        else:
            {"specs": specs, "jobs": jobs}[options.what](options.repeats, place)
