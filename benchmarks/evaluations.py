"""How often a right Function is called until it passes: forwards and backwards of every small one, worst first.

Every specimen of benchmarks/correct with at most 100 input entries goes through `gradcli.check` at one seed; where
forward's body can be differentiated it is hidden behind no_grad as well. Given another checkout, the same specimens
are checked with its gradcli too, and both versions are shown side by side.

Run: python benchmarks/evaluations.py [CHECKOUT] [--only WORD,...] [--order N] [--worst N] [--seed N]
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradcli
from benchmarks.correct.catalogue import ALL
from benchmarks.correct.specimen import Specimen, can_hide, hidden

MOST_ENTRIES = 100
TARGET = 500
"""Forwards that a right Function of so few entries may take."""

Row = tuple[str, str, int, int, float | None]
"""What was checked, the verdict, forwards, backwards, and the resolution."""


def entries(specimen: Specimen, seed: int) -> int:
    """How many numbers forward is given."""
    return sum(math.prod(value.shape) for value in specimen.inputs(seed) if hasattr(value, "shape"))


def forms(options: argparse.Namespace) -> Iterator[Specimen]:
    """The small specimens asked for, in sight and hidden."""
    for specimen in ALL:
        asked = not options.only or any(word in (specimen.name, specimen.group) for word in options.only)
        if asked and entries(specimen, options.seed) <= MOST_ENTRIES:
            yield specimen
            if can_hide(specimen):
                yield hidden(specimen)


def counted(specimen: Specimen, options: argparse.Namespace) -> Row:
    """One check of a specimen."""
    more: dict[str, Any] = {} if specimen.grad is None else {"grad": specimen.grad}
    order = min(options.order, specimen.limit)
    with np.errstate(all="ignore"):
        report = gradcli.check(
            specimen.target, specimen.inputs(options.seed), order=order, seed=options.seed, shrink=False, **more
        )
    (result,) = report.cases
    name = f"{specimen.group}: {specimen.name}{'' if specimen.witnessed else ', hidden'}"
    return name, result.verdict.value, result.forwards, result.backwards, result.resolution


def measured(options: argparse.Namespace) -> list[Row]:
    """Every specimen asked for, checked by the gradcli that is imported here."""
    return [counted(specimen, options) for specimen in forms(options)]


def measured_by(checkout: Path) -> list[Row]:
    """The same by the gradcli of another checkout."""
    arguments = [argument for argument in sys.argv[1:] if Path(argument).resolve() != checkout]
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(checkout)!r}); import gradcli; sys.path.pop(0); "
        f"sys.argv = {[__file__, '--json', *arguments]!r}; runpy.run_path({__file__!r}, run_name='__main__')"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
    )
    return [tuple(row) for row in json.loads(found.stdout.splitlines()[-1])]


def summary(rows: list[Row]) -> str:
    """Medians, tails, and how many are above the target."""
    forwards = sorted(row[2] for row in rows)
    backwards = sorted(row[3] for row in rows)
    at = [statistics.median(forwards), forwards[int(0.9 * len(forwards))], forwards[-1]]
    beside = [statistics.median(backwards), backwards[int(0.9 * len(backwards))], backwards[-1]]
    above = sum(count > TARGET for count in forwards)
    return (
        f"{len(rows)} checks; forwards: median {at[0]:g}, 90 % {at[1]}, most {at[2]}; above {TARGET}: {above}; "
        f"backwards: median {beside[0]:g}, 90 % {beside[1]}, most {beside[2]}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", nargs="?", type=lambda text: Path(text).resolve())
    parser.add_argument("--only", default=[], type=lambda text: text.split(","))
    parser.add_argument("--order", default=1, type=int)
    parser.add_argument("--worst", default=25, type=int)
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--json", action="store_true", help="print the rows alone, as JSON")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    rows = measured(options)
    if options.json:
        print(json.dumps(rows))
        return
    before = dict.fromkeys(row[0] for row in rows)
    if options.checkout is not None:
        other = measured_by(options.checkout)
        before = {row[0]: row for row in other}
        print(f"there: {summary(other)}")
    print(f"here:  {summary(rows)}")
    for row in sorted(rows, key=lambda row: -row[2])[: options.worst]:
        print(_line(row, before[row[0]]))
    for row in rows:
        there = before[row[0]]
        if there is not None and there[1] != row[1]:
            print(f"  verdict {there[1]} -> {row[1]}: {row[0]}")


def _line(row: Row, there: Row | None) -> str:
    resolution = "" if row[4] is None else f"{row[4]:.0e}"
    beside = "" if there is None else f"{there[2]:6d} {there[3]:6d} -> "
    return f"  {beside}{row[2]:6d} {row[3]:6d} {resolution:>6s} {row[1]:12s} {row[0]}"


if __name__ == "__main__":
    main()
