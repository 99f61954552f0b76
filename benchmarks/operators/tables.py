"""The tables of the operator benchmark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median

from benchmarks.operators.checkers import Row

_NAMES = {"drop_in": "gradcli.gradcheck", "slow": "PyTorch, slow mode", "fast": "PyTorch, fast mode"}


def print_tables(rows: Sequence[Row]) -> None:
    """Print verdicts, disagreements, and times of right operators; misses of planted ones."""
    right = [row for row in rows if row.plant is None]
    if right:
        _verdicts(right)
        _times(right)
        _disagreements(right)
    planted = [row for row in rows if row.plant is not None]
    if planted:
        _planted(planted)


def _verdicts(rows: Sequence[Row]) -> None:
    print("dtype       order  way       operators  checks  passed  failed  inconclusive  error  lost")
    for dtype, order, way in sorted({(row.dtype, row.order, row.way) for row in rows}):
        chosen = [row for row in rows if (row.dtype, row.order, row.way) == (dtype, order, way)]
        counts = Counter(row.gradcli for row in chosen)
        numbers = [counts[name] for name in ("passed", "failed", "inconclusive", "error", "lost")]
        names = len({row.operator for row in chosen})
        print(
            f"{dtype:<12}{order:<7}{way:<10}{names:>9}{len(chosen):>8}"
            + "".join(f"{n:>{width}}" for n, width in zip(numbers, (8, 8, 14, 7, 6), strict=True))
        )
    for mode in ("drop_in", "slow", "fast"):
        counts = Counter(str(getattr(row, mode)).split(":")[0] for row in rows if getattr(row, mode))
        print(f"{_NAMES[mode]}: {dict(counts)}")


def _times(rows: Sequence[Row]) -> None:
    print("\nprocessor time a check [ms]   checks     median       p90     total [s]")
    grouped = defaultdict(list)
    for row in rows:
        if row.slow and row.gradcli in ("passed", "failed", "inconclusive") and row.slow == "passed":
            grouped[(row.dtype, row.order, row.way)].append(row)
    for (dtype, order, way), chosen in sorted(grouped.items()):
        for name in ("gradcli", "drop_in", "slow", "fast"):
            times = sorted(1e3 * float(getattr(row, f"{name}_seconds")) for row in chosen)
            print(
                f"{dtype} {order} {way:<10}{name:<10}{len(times):>6}{median(times):>11.2f}"
                f"{times[int(0.9 * (len(times) - 1))]:>10.1f}{sum(times) / 1e3:>14.2f}"
            )


def _disagreements(rows: Sequence[Row]) -> None:
    """One line for each operator and verdict: the ways and samples it happened in, and what slow mode says there."""
    slow = {(row.operator, row.dtype, row.sample, row.order, row.way): row.slow for row in rows if row.slow}
    grouped: dict[tuple[str, str, str, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row.gradcli != "passed":
            grouped[(row.gradcli, row.operator, row.dtype, row.order)].append(row)
    for (verdict, operator, dtype, order), chosen in sorted(grouped.items()):
        places = ", ".join(f"{row.way} {row.sample}" for row in chosen)
        peers = Counter(
            slow.get((operator, dtype, row.sample, order, "wrapped" if row.way == "opaque" else row.way), "not run")
            for row in chosen
        )
        print(f"\n{verdict} {operator} [{dtype}, order {order}: {places}]; slow mode: {_counted(peers)}")
        for line in dict.fromkeys(line for row in chosen for line in row.telling[:2]):
            print(f"    {line[:200]}")
    alone = sorted({r.operator for r in rows if r.gradcli == "passed" and r.slow not in ("", "passed")})
    if alone:
        print(f"\nslow mode alone does not pass: {', '.join(alone)}")


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name[:100]} ({count})" for name, count in counts.items())


def _planted(rows: Sequence[Row]) -> None:
    print(
        "\nplanted error           way         visible  gradcli misses (passed, inconclusive, error)  slow  fast miss"
    )
    slow = {_key(row): (row.slow, row.fast) for row in rows if row.slow}
    for plant, way in sorted({(str(row.plant), row.way) for row in rows}):
        chosen = [row for row in rows if (row.plant, row.way) == (plant, way)]
        counts = Counter(row.gradcli for row in chosen)
        peers = [slow.get(_key(row), ("", "")) for row in chosen]
        missed = [sum(pair[i] == "passed" for pair in peers) for i in (0, 1)]
        numbers = f"({counts['passed']}, {counts['inconclusive']}, {counts['error']})"
        print(
            f"{plant:<24}{way:<12}{len(chosen):>7}{len(chosen) - counts['failed']:>16} {numbers:<33}"
            f"{missed[0]:>5}{missed[1]:>11}"
        )
    for row in rows:
        if row.gradcli != "failed":
            print(
                f"\n{row.gradcli.upper()} {row.operator} [{row.dtype}, sample {row.sample}, {row.way}] with {row.plant}"
            )
            for line in row.telling[:3]:
                print(f"    {line[:300]}")


def _key(row: Row) -> tuple[str, str, int, str | None]:
    return row.operator, row.dtype, row.sample, row.plant
