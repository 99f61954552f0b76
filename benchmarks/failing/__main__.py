"""What a failing case costs, and what is said of it: one version of gradcli, or two side by side.

Run: python -m benchmarks.failing [--beside ROOT] [--stride N] [--only TEXT] [--slow]

ROOT is another checkout of gradcli. Both versions check the same planted Functions in turns, each in a process of its
own. Every case prints its processor times, and what differs, when it is done; every 25 cases and at the end, or when
the run is interrupted, come the totals so far.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]
EVERY = 25
"""After so many cases the totals are printed."""
WORKER = """
import sys
root, here, slow = sys.argv[1:4]
sys.path.insert(0, root)
import gradcli
sys.path[0] = here
from benchmarks.failing.cases import serve
serve(slow == "slow")
"""


class Version:
    """A checkout of gradcli in a process of its own, asked for one case at a time."""

    def __init__(self, root: Path, slow: bool) -> None:
        arguments = [sys.executable, "-c", WORKER, str(root), str(HERE), "slow" if slow else "quick"]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question: str) -> Any:
        """What the process answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(question + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process ended with {self._process.wait()} at {question}")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main() -> None:
    """Ask every version for every case and print the tables."""
    options = _options()
    versions = [Version(root, options.slow) for root in [HERE, *options.beside]]
    names = versions[0].ask("names")
    chosen = [i for i, n in enumerate(names) if options.only in n][:: options.stride]
    for version in versions:
        version.ask(str(chosen[0]))  # the first check pays for imports
    rows: list[list[dict[str, Any]]] = []
    try:
        for done, number in enumerate(chosen):
            turns = versions if done % 2 else versions[::-1]
            answers = {id(version): version.ask(str(number)) for version in turns}
            rows.append([answers[id(version)] for version in versions])
            _print_row(rows[-1], done + 1, len(chosen), options.slow)
            if len(rows) % EVERY == 0:
                _print_costs(rows)
    except KeyboardInterrupt:
        print("interrupted; what was measured so far:")
    else:
        for version in versions:
            version.close()
    _print_costs(rows)
    if options.beside:
        _print_differences(rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=lambda text: Path(text).resolve(), action="append", default=[])
    parser.add_argument("--stride", type=int, default=1, help="only every N-th case")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--slow", action="store_true", help="forwards that take 10 and 100 ms, by the clock")
    return parser.parse_args()


def _print_row(row: Sequence[dict[str, Any]], number: int, of: int, slow: bool) -> None:
    told = list(map(_times, row)) if slow else [f"{each['seconds']:7.3f} s" for each in row]
    verdicts = {each["verdict"] for each in row}
    print("  ".join([f"{number:4d}/{of} {row[0]['name']:50s}", *told, *sorted(verdicts - {"failed"})]), flush=True)


def _times(row: dict[str, Any]) -> str:
    found = ", ".join(f"{f['kind']} {f['input']}" for f in row["findings"])
    return f"{row['wall']:7.2f} s, {row['calls']:5d} forwards  {row['verdict']} {found} | {'; '.join(row['smallest'])}"


def _print_costs(rows: Sequence[Sequence[dict[str, Any]]]) -> None:
    failed = [row for row in rows if all(each["verdict"] == "failed" for each in row)]
    if not failed:
        print("no case failed")
        return
    print(f"{len(rows)} cases, {len(failed)} failed; processor time in seconds")
    print(f"{'':12s} {'median':>8s} {'90 %':>8s} {'largest':>8s} {'sum':>8s}   shrinking: median, share of the sum")
    for place in range(len(rows[0])):
        label = "this" if place == 0 else f"beside {place}"
        times = sorted(row[place]["seconds"] for row in failed)
        shrinking = [row[place]["shrinking"] for row in failed]
        tenth = times[min(len(times) - 1, int(0.9 * len(times)))]
        print(
            f"{label:12s} {statistics.median(times):8.3f} {tenth:8.3f} {times[-1]:8.3f} {sum(times):8.1f}   "
            f"{statistics.median(shrinking):.3f}, {sum(shrinking) / sum(times):.0%}"
        )
    for place in range(1, len(rows[0])):
        ratios = [row[place]["seconds"] / row[0]["seconds"] for row in failed]
        print(f"beside {place} / this: median {statistics.median(ratios):.1f}, least {min(ratios):.2f}")
    worst = sorted(failed, key=lambda row: -row[0]["seconds"])[:8]
    print("the dearest:", ", ".join(f"{row[0]['name']} {row[0]['seconds']:.2f}" for row in worst), flush=True)


def _print_differences(rows: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Every case that is answered otherwise, by what differs."""
    tally: Counter[str] = Counter()
    for this, *others in rows:
        for other in others:
            for what in ("verdict", "findings", "smallest"):
                if this[what] == other[what]:
                    continue
                label = what if what != "smallest" else _compared(this, other)
                tally[label] += 1
                print(f"{this['name']}: {label}")
                print(f"   this   {_shown(this[what])}\n   beside {_shown(other[what])}")
    print("differences:", ", ".join(f"{what} {count}" for what, count in sorted(tally.items())) or "none")


def _compared(this: dict[str, Any], other: dict[str, Any]) -> str:
    one, two = this["entries"], other["entries"]
    size = "as large" if one == two else "smaller" if one < two else "LARGER"
    return f"smallest input {size}"


def _shown(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return " | ".join(f"{f['message']} entries {f['entries']} at {f['location']}" for f in value)
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


if __name__ == "__main__":
    main()
