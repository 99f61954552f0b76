"""Large suites: time and memory for each case as their number grows, and what an executor adds to a case.

    python benchmarks/suites.py grow [CASES...]      check N cases of one engine Function, for several N
    python benchmarks/suites.py executors [CASES]    -j 2 beside a local Dask cluster of two processes

Each run is a process of its own. Memory is the largest resident set of the command itself, which holds the results;
`list` and the reports are timed on the same spec.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASE = "target: gradcli.examples.cube:Cube\ndefaults: {order: 1, samples: 1}\ncases:\n"
LINE = "  - {name: case NUMBER, inputs: {x: {shape: [3, 4]}}}\n"
PER_FILE = 1000
"""A spec holds 20,000 values at most, eight of them a case here."""


def written(folder: Path, cases: int) -> Path:
    """A folder of specs with so many cases, each with a name and so a seed of its own."""
    specs = folder / f"specs{cases}"
    specs.mkdir()
    for first in range(0, cases, PER_FILE):
        text = CASE + "".join(LINE.replace("NUMBER", str(n)) for n in range(first, min(cases, first + PER_FILE)))
        (specs / f"part{first:06}.yaml").write_text(text)
    return specs


def timed(folder: Path, *arguments: str) -> tuple[float, float, float, int]:
    """Seconds by the clock, of processor time with that of workers, MB of the command, and its exit code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gradcli", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def grow(counts: list[int]) -> None:
    """The cost of a case as their number grows."""
    print(f"{'cases':>6} {'check':>9} {'a case':>9} {'memory':>9} {'list':>9} {'reports':>32}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in counts:
            specs = written(folder, count)
            reports = [folder / f"r{count}.{suffix}" for suffix in ("json", "ndjson", "xml", "sarif", "md", "html")]
            options = [part for report in reports[:5] for part in ("--report", str(report))]
            seconds, _, memory, code = timed(folder, "check", str(specs), "-q", *options)
            listed, *_ = timed(folder, "list", str(specs)) if count <= 5 * PER_FILE else (float("nan"),)
            sizes = " ".join(f"{r.suffix} {r.stat().st_size / 1e6:.1f}" for r in reports if r.exists())
            found = len(json.loads(reports[0].read_text())["cases"])
            assert (code, found) == (0, count)
            print(
                f"{count:6} {seconds:8.1f}s {1e3 * seconds / count:7.1f}ms {memory:6.0f} MB {listed:8.1f}s   {sizes} MB"
            )


def executors(count: int) -> None:
    """What a case costs with worker processes, and on a local cluster."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        specs, few = written(folder, count), written(folder, 10)
        for options in (["-j", "2"], ["-j", "2", "--executor", "dask"]):
            start, *_ = timed(folder, "check", str(few), "-q", *options)
            seconds, used, memory, code = timed(folder, "check", str(specs), "-q", *options)
            assert code == 0
            each = 1e3 * (seconds - start) / (count - 10)
            print(
                f"{' '.join(options):28} {count} cases {seconds:7.1f} s, {start:.1f} s of it for 10; "
                f"{each:.2f} ms a case beyond; {memory:.0f} MB; processor {used:.0f} s"
            )


if __name__ == "__main__":
    what, *numbers = sys.argv[1:] or ["grow"]
    if what == "grow":
        grow([int(n) for n in numbers] or [100, 1000, 5000])
    else:
        executors(int(numbers[0]) if numbers else 10_000)
