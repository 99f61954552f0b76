"""How many tests of verdicts notice that every verdict is the same: `verify` is replaced by one that gives one outcome.

A test that passes whatever `verify` says asserts nothing about it (or is about something else; both are printed).

Run: python benchmarks/forced.py [TESTS...]     (by default those of tests/numerics that call `verify`)
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
OUTCOME = "GRADCLI_FORCED_OUTCOME"
OUTCOMES = ("agrees", "differs", "undecided")


def pytest_configure() -> None:
    """Replace `verify` before the tests import it; pytest calls this where the file is loaded as a plugin."""
    from gradcli.numerics import verify as module
    from gradcli.numerics.outcome import BlockOutcome, Doubt, Outcome, Verification

    outcome = Outcome(os.environ[OUTCOME])
    doubt = Doubt.NOISE if outcome is Outcome.UNDECIDED else None

    def forced(map: Any, x: Any, *, seed: int, inputs: Any = None, **_: Any) -> Verification:  # noqa: ARG001
        chosen = range(len(map.domain.blocks)) if inputs is None else inputs
        pairs = [(i, o) for i in chosen for o in range(len(map.codomain.blocks))]
        return Verification(
            blocks=tuple(BlockOutcome(input=i, output=o, outcome=outcome, doubt=doubt) for i, o in pairs),
            kinks=(),
            point=np.asarray(x, float),
            moved=False,
            evaluations=1,
            vjps=1,
            notes=(),
        )

    module.verify = forced


def passing(outcome: str, tests: list[str]) -> set[str]:
    """The tests that pass while every pair has one outcome."""
    command = [sys.executable, "-m", "pytest", "-p", "benchmarks.forced", "-p", "no:cacheprovider", "-v", *tests]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, OUTCOME: outcome})
    return set(re.findall(r"^(\S.*?) PASSED", run.stdout, re.M))


def main() -> None:
    """Run the tests with each outcome, and print how many pass with it and with all."""
    folder = ROOT / "tests" / "numerics"
    using = [str(file) for file in sorted(folder.glob("test_*.py")) if "verify" in file.read_text(encoding="utf-8")]
    found = {outcome: passing(outcome, sys.argv[1:] or using) for outcome in OUTCOMES}
    for outcome, names in found.items():
        print(f"{outcome}: {len(names)} pass")
    indifferent = set.intersection(*found.values())
    print(f"all three: {len(indifferent)} pass")
    for name, count in sorted(Counter(name.split("[")[0] for name in indifferent).items()):
        print(f"    {count} {name}")


if __name__ == "__main__":
    main()
