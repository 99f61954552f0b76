"""gradcli against PyTorch's gradcheck on PyTorch's own operator database, right and with planted errors.

Run: python -m benchmarks.operators [right|planted] [--dtype float64|complex128] [--in-place] [--ways WAY,...]
     [--samples N] [--part I/N] [--only NAME,...] [--order N] [--plants N] [--limit SECONDS]
     [--append ROWS.jsonl]
     python -m benchmarks.operators table ROWS.jsonl...

Every operator runs in a worker process under a time limit of its own; one that crashes or hangs is a row of the table.
A run that was cut off goes on where the rows that it appended end.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from benchmarks.operators.checkers import WAYS, Row
from benchmarks.operators.database import operators, title
from benchmarks.operators.functions import PLANTS
from benchmarks.operators.tables import print_tables
from benchmarks.operators.worker import work


def main() -> None:
    """Run a part, or print the tables of rows that were kept."""
    options = _options()
    if options.what == "table":
        print_tables([row for path in options.rows for row in _kept(path)])
        return
    entries = operators(getattr(torch, options.dtype), in_place=options.in_place)
    share, shares = map(int, options.part.split("/"))
    rows = _kept(options.append)
    done = {row.operator for row in rows}
    wanted = [
        i
        for i, e in enumerate(entries)
        if i % shares == share % shares and _named(e, options.only) and title(e) not in done
    ]
    for row in _all_rows(wanted, options):
        rows.append(row)
        if options.append is not None:
            with options.append.open("a") as file:
                file.write(json.dumps(row.to_dict()) + "\n")
    print_tables(rows)


def _kept(path: Path | None) -> list[Row]:
    if path is None or not path.exists():
        return []
    return [Row(**json.loads(line)) for line in path.read_text().splitlines()]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="right", choices=["right", "planted", "table"])
    parser.add_argument("rows", nargs="*", type=Path)
    parser.add_argument("--dtype", default="float64", choices=["float64", "complex128"])
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--ways", type=lambda text: text.split(","))
    parser.add_argument("--samples", default=1, type=int)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--only", default=[], type=lambda text: text.split(","))
    parser.add_argument("--order", default=1, type=int)
    parser.add_argument("--plants", default=len(PLANTS), type=int, help="planted errors for an operator, in turn")
    parser.add_argument("--limit", default=60.0, type=float)
    parser.add_argument("--append", type=Path)
    options = parser.parse_args()
    if options.ways is None:  # a plain callable has no backward to plant an error in
        options.ways = [way for way in WAYS if options.what != "planted" or way != "callable"]
    return options


def _named(entry: Any, names: list[str]) -> bool:
    return not names or title(entry) in names or entry.name in names


def _all_rows(wanted: list[int], options: argparse.Namespace) -> Iterator[Row]:
    """The rows of all operators; a worker that dies or overruns is replaced, and a row says so."""
    context = multiprocessing.get_context("spawn")
    worker: tuple[Any, Connection] | None = None
    entries = operators(getattr(torch, options.dtype), in_place=options.in_place)
    for index in wanted:
        if worker is None:
            worker = _start(context, options)
        process, channel = worker
        channel.send(index)
        while True:
            try:
                answer = channel.recv() if channel.poll(options.limit) else f"no answer within {options.limit:g} s"
            except EOFError:
                answer = "the worker died"
            if isinstance(answer, Row):
                yield answer
                continue
            if answer is not None:
                yield _lost(title(entries[index]), answer, options)
                process.kill()
                worker = None
            break
    if worker is not None:
        worker[1].send(None)
        worker[0].join()


def _lost(name: str, why: str, options: argparse.Namespace) -> Row:
    return Row(
        operator=name, dtype=options.dtype, sample=-1, way="-", order=options.order, gradcli="lost", telling=[why]
    )


def _start(context: Any, options: argparse.Namespace) -> tuple[Any, Connection]:
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, options), daemon=True)
    process.start()
    theirs.close()
    # Importing PyTorch counts against no operator.
    ours.recv()
    return process, ours


if __name__ == "__main__":
    main()
