"""False alarms on right but awkward Functions, checked as a user would check them.

Every specimen of benchmarks/correct goes through `gradcli.check`. Where forward's body can be differentiated by itself
it is hidden behind no_grad at every other seed, which leaves differences alone as a witness.

Run: python benchmarks/alarms.py [SEEDS] [WORD]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gradcli
from benchmarks.correct.catalogue import ALL
from benchmarks.correct.specimen import Specimen, can_hide, hidden
from gradcli.results import CheckResult, judge
from gradcli.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one check of one specimen."""

    specimen: Specimen
    seed: int
    first: str
    all: str
    why: str


def examine(specimen: Specimen, seed: int) -> Outcome:
    """Check a specimen at a seed's inputs; the verdict of order 1 is read from the same run."""
    options = {} if specimen.grad is None else {"grad": specimen.grad}
    with np.errstate(all="ignore"):
        report = gradcli.check(
            specimen.target, specimen.inputs(seed), order=specimen.limit, seed=seed, shrink=False, **options
        )
    (result,) = report.cases
    told = result.verdict.value
    if result.verdict is Verdict.ERROR:
        return Outcome(specimen=specimen, seed=seed, first=told, all=told, why=str(result.error))
    first = judge([e for e in result.evidence if e.order == 1]).value
    return Outcome(specimen=specimen, seed=seed, first=first, all=told, why=_why(result))


def _why(result: CheckResult) -> str:
    if result.verdict is Verdict.FAILED:
        told = [f"{f.kind.value} at order {f.order}: {f.message}" for f in result.findings]
        return "; ".join(told) or "; ".join(str(e.note) for e in result.evidence if e.verdict is Verdict.FAILED)
    doubts = [e for e in result.evidence if e.verdict is Verdict.INCONCLUSIVE]
    return "; ".join(dict.fromkeys(f"order {e.order}: {e.reason and e.reason.value}: {e.note}" for e in doubts))


def form(specimen: Specimen, number: int, seed: int) -> Specimen:
    """The specimen as it is, or hidden: half and half over the specimens at every seed."""
    return hidden(specimen) if can_hide(specimen) and (number + seed) % 2 else specimen


def main() -> None:
    """Print the counts, and every verdict that is not a pass."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    chosen = [(k, s) for k, s in enumerate(ALL) if len(sys.argv) < 3 or sys.argv[2] in (s.name, s.group)]
    started = time.perf_counter()
    counts, doubts = Counter[tuple[bool, str, str]](), Counter[str]()
    for number, given in chosen:
        for seed in range(min(seeds, given.seeds)):
            specimen = form(given, number, seed)
            found = examine(specimen, seed)
            counts[specimen.witnessed, "order 1", found.first] += 1
            counts[specimen.witnessed, "default", found.all] += 1
            told = f"{specimen.group}: {specimen.name}, {'with' if specimen.witnessed else 'without'} witness"
            if found.all in ("failed", "error"):
                print(f"  {found.all.upper()}: {told}, seed {seed}: {found.why}", flush=True)
            elif found.all == "inconclusive":
                doubts[f"{told}: {found.why}"] += 1
    for text, count in sorted(doubts.items()):
        print(f"  inconclusive {count} of {seeds}: {text}")
    distinct = len({id(s.target) for _, s in chosen})
    print(
        f"{distinct} Functions, {len(chosen)} with their inputs, {seeds} seeds, {time.perf_counter() - started:.0f} s"
    )
    for (witnessed, orders, verdict), count in sorted(counts.items()):
        print(f"{'with' if witnessed else 'without'} witness, {orders}: {verdict} {count}")


if __name__ == "__main__":
    main()
