"""gradcli on public packages: their own Functions through the command, and their own test suites with our gradcheck.

    python -m benchmarks.packages functions [PACKAGE]...
    python -m benchmarks.packages suites FOLDER [PACKAGE]...

`functions` runs `gradcli check` on every row of packages_functions.py, with no options but the flags shown, and holds
the verdict against the one that the row explains. `suites` runs the gradcheck tests of unpacked source distributions
(FOLDER/NAME-VERSION or FOLDER/NAME) with packages_plugin.py, which asks PyTorch and gradcli each time. What is not
installed or unpacked is listed as absent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from packages_functions import FUNCTIONS, Row  # noqa: E402 - found through the path set above


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The tests of a package that call gradcheck: its import name, the files, and how to select in them."""

    package: str
    paths: tuple[str, ...]
    select: str = ""
    minutes: int = 10


SUITES = (
    Suite(package="entmax", paths=("entmax/test_root_finding.py", "entmax/test_topk.py", "entmax/test_losses.py")),
    Suite(package="sparsemax", paths=("tests/test_sparsemax.py",)),
    Suite(
        package="gpytorch",
        paths=("test/functions/test_matern_covariance.py", "test/functions/test_rbf_covariance.py"),
    ),
    Suite(
        package="e3nn",
        paths=("tests/math/soft_unit_step_test.py", "tests/o3/cartesian_spherical_harmonics_test.py"),
        select="grad or backward or soft_unit_step",
    ),
    Suite(
        package="xitorch",
        paths=("xitorch/_tests/test_interp.py", "xitorch/_tests/test_optimize.py", "xitorch/_tests/test_jac.py"),
        minutes=30,
    ),
    Suite(package="kornia", paths=("tests",), select="gradcheck", minutes=60),
)


def installed(distribution: str) -> str | None:
    """The version that is installed, None where there is none."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def checked(row: Row) -> tuple[str, str]:
    """The verdict and the findings of one run of the command."""
    command = [sys.executable, "-m", "gradcli", "check", row.target, *row.flags, "--format", "json"]
    with tempfile.TemporaryDirectory() as folder:
        finished = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    if not finished.stdout:
        return "usage", finished.stderr.strip().splitlines()[-1]
    case: dict[str, Any] = json.loads(finished.stdout)["cases"][0]
    told = [f"{f['name']}({f['input'] or ''}{'' if f['order'] == 1 else ', order 2'})" for f in case["findings"]]
    reasons = {check["reason"] for check in case["checks"] if check["reason"]}
    return case["verdict"], ", ".join(told or sorted(reasons)) or (case["error"] or "").partition("\n")[0]


def functions(only: Sequence[str]) -> int:
    """Print a line for each row; the number of rows that did not come out as explained."""
    counts: Counter[str] = Counter()
    for row in FUNCTIONS:
        if only and row.distribution not in only:
            continue
        have = installed(row.distribution)
        if have is None:
            counts["absent"] += 1
            print(f"absent       {row.distribution}: {row.target}")
            continue
        verdict, found = checked(row)
        met = verdict == row.verdict and row.finding in found
        counts["as explained" if met else "NOT AS EXPLAINED"] += 1
        print(f"{verdict:12s} {row.distribution} {have}: {' '.join([row.target, *row.flags])}")
        print(f"             {'' if met else 'EXPECTED ' + row.verdict + ' '}{found or 'every order'}: {row.because}")
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return counts["NOT AS EXPLAINED"]


def unpacked(folder: Path, package: str) -> Path | None:
    """Where a package's sources lie below `folder`."""
    found = [path for path in sorted(folder.iterdir()) if path.name == package or path.name.startswith(f"{package}-")]
    return found[-1] if found else None


def answers_of(suite: Suite, source: Path) -> Iterator[dict[str, Any]]:
    """Run a suite, and yield what was written down at each call of gradcheck."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "answers.ndjson"
        environment = {**os.environ, "GRADCLI_ANSWERS": str(record), "PYTHONPATH": f"{HERE}{os.pathsep}."}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "packages_plugin", "-p", "no:cacheprovider"]
        command += ["--continue-on-collection-errors", *suite.paths, *(["-k", suite.select] if suite.select else [])]
        try:
            finished = subprocess.run(
                command,
                capture_output=True,
                text=True,
                cwd=source,
                env=environment,
                timeout=60 * suite.minutes,
                check=False,
            )
            print(f"  {finished.stdout.strip().splitlines()[-1]}")
        except subprocess.TimeoutExpired:
            print(f"  stopped after {suite.minutes} minutes: what was answered until then follows")
        if record.is_file():
            yield from map(json.loads, record.read_text(encoding="utf-8").splitlines())


def suites(folder: Path, only: Sequence[str]) -> int:
    """Print each suite's answers, and every call on which the two checkers differ; the number of such calls."""
    differences = 0
    for suite in SUITES:
        if only and suite.package not in only:
            continue
        source = unpacked(folder, suite.package)
        have = installed(suite.package)
        if source is None or have is None:
            print(f"absent       {suite.package}: {'not installed' if have is None else f'no sources in {folder}'}")
            continue
        print(f"{suite.package} {have}, tests of {source.name}")
        answers = list(answers_of(suite, source))
        counts = Counter((a["check"], a["pytorch"]["said"], a["gradcli"]["said"]) for a in answers)
        for (check, theirs, ours), count in sorted(counts.items()):
            print(f"  {count:5d} {check:14s} PyTorch {theirs:14s} gradcli {ours}")
        warned = [a for a in answers if a["gradcli"]["warned"]]
        seconds = [sum(a[who]["seconds"] for a in answers) for who in ("pytorch", "gradcli")]
        print(f"  {len(warned)} with a warning; processor seconds: PyTorch {seconds[0]:.1f}, gradcli {seconds[1]:.1f}")
        apart = [a for a in answers if a["pytorch"]["said"] != a["gradcli"]["said"]]
        differences += len(apart)
        for answer in [*apart, *warned]:
            text = answer["gradcli"]["text"] or answer["gradcli"]["warned"]
            print(f"  {answer['test']}: PyTorch {answer['pytorch']['said']}, gradcli {answer['gradcli']['said']}")
            print("\n".join(f"      {line}" for line in text.splitlines()[:6]))
    return differences


if __name__ == "__main__":
    mode, *rest = sys.argv[1:] or ["functions"]
    if mode not in ("functions", "suites") or (mode == "suites" and not rest):
        sys.exit(__doc__)
    sys.exit(bool(functions(rest) if mode == "functions" else suites(Path(rest[0]), rest[1:])))
