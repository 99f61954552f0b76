"""How the planted mistakes of `benchmarks/fix/other_hand` are named by `gradcli check` and patched by `gradcli fix`.

Run: python -m benchmarks.fix_corpus [--only TEXT] [--results FILE] [--resume] [--workers N] [--table] [--names]
     [--reported | --unseen]

Each case runs in a worker process with one BLAS thread, through the command line. A line is printed, and one written
to the file, as each case ends; with --resume the cases in the file are left out. TEXT is a part of a case's name, of
its kind or of "family-backend". A patch is right where the patched Function behaves as the right twin at fresh inputs
of two sizes: outputs, gradients in several uses, second derivatives, and what it changes.

The columns of seconds are medians of processor time: of the whole command `check` with its imports, of the part of it
that names the mistake and looks for the correction of one expression, and of the whole command `fix`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from benchmarks.fix.other_hand import cases
from benchmarks.fix.other_hand.behaviour import AT_ZEROS, behaviour, differences, is_finite, loaded
from benchmarks.fix.other_hand.record import Case, changed_nodes, flags_of
from benchmarks.fix.unseen import cases as unseen

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_SECONDS = 1800.0
"""How long a case may take by the clock before its worker is ended: check and fix, on a machine that is busy."""
_CASES_A_WORKER = 25
"""After so many cases a worker is replaced, as modules and compiled programs stay in its memory."""


def main() -> None:
    """Run the cases that are wanted, and print the tables of all in the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of a case's name, of its kind or of family-backend")
    parser.add_argument("--results", type=Path, default=Path("fix_corpus.jsonl"), help="the file of JSON lines")
    parser.add_argument("--resume", action="store_true", help="leave out the cases that the file has")
    parser.add_argument("--workers", type=int, default=1, help="how many worker processes")
    parser.add_argument("--names", action="store_true", help="name the mistakes, and look for no patch")
    parser.add_argument("--table", action="store_true", help="print only the tables of the file")
    parser.add_argument("--reported", action="store_true", help="the mistakes of public reports instead")
    parser.add_argument("--unseen", action="store_true", help="the mistakes of `benchmarks/fix/unseen` instead")
    options = parser.parse_args()
    known = {case.name: case for case in (reported() if options.reported else unseen() if options.unseen else cases())}
    if not options.table:
        done = {row["case"] for row in rows_of(options.results)} if options.resume else set()
        wanted = [
            c for c in known.values() if c.name not in done and options.only in _label(c.name, c.family, c.backend)
        ]
        with options.results.open("a", encoding="utf-8") as file:

            def ended(row: dict[str, Any]) -> None:
                print(line_of(row), flush=True)
                file.write(json.dumps(row) + "\n")
                file.flush()

            wanted.sort(key=lambda c: hashlib.sha256(c.name.encode()).digest())  # so that a part is like the whole
            run([c.name for c in wanted], options.workers, names_only=options.names, ended=ended)
    rows = {row["case"]: row for row in rows_of(options.results) if row["case"] in known}
    print(tables([row for n, row in rows.items() if options.only in _label(n, row["family"], row["backend"])]))


def reported() -> list[Case]:
    """The cases that stand for public reports."""
    from benchmarks.fix.reported import cases as reported_cases

    return reported_cases()


def _label(name: str, family: str, backend: str) -> str:
    return f"{name} {family}-{backend}"


def rows_of(file: Path) -> list[dict[str, Any]]:
    """The rows of a file of results, none if there is no file."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def run(names: list[str], workers: int, *, names_only: bool, ended: Callable[[dict[str, Any]], None]) -> None:
    """Run cases in worker processes; a worker that takes too long or dies is replaced, and its case told so."""
    os.environ.update(_ONE_THREAD)  # for the workers, which import NumPy anew
    context = multiprocessing.get_context("spawn")
    waiting, busy = list(names), dict[Connection, tuple[Any, list[str], float]]()
    while waiting or busy:
        while waiting and len(busy) < workers:
            share, waiting = waiting[:_CASES_A_WORKER], waiting[_CASES_A_WORKER:]
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, share, names_only), daemon=True)
            process.start()
            there.close()
            busy[here] = (process, share, time.monotonic())
        for connection in wait(list(busy), timeout=1.0):
            process, share, _ = busy[connection]  # type: ignore[index]
            try:
                ended(connection.recv())  # type: ignore[union-attr]
                busy[connection] = (process, share[1:], time.monotonic())  # type: ignore[index]
                if not share[1:]:
                    _leave(busy, connection)
            except EOFError:
                if share:
                    ended(_unfinished(share[0], "the worker died"))
                    waiting[:0] = share[1:]
                _leave(busy, connection)
        for connection, (process, share, since) in list(busy.items()):
            if time.monotonic() - since > _SECONDS:
                process.kill()
                ended(_unfinished(share[0], "took too long"))
                waiting[:0] = share[1:]
                _leave(busy, connection)


def _leave(busy: dict[Connection, Any], connection: Any) -> None:
    process, _, _ = busy.pop(connection)
    connection.close()
    process.join()


def _unfinished(name: str, why: str) -> dict[str, Any]:
    case = next(c for c in (*cases(), *reported(), *unseen()) if c.name == name)
    return _row(case) | {"problem": why}


def _row(case: Case) -> dict[str, Any]:
    shared = {"family": case.family, "backend": case.backend, "kind": case.kind, "accepted": sorted(case.accepted)}
    return {"case": case.name, **shared, "human_nodes": changed_nodes(case.wrong, case.right)}


def _work(connection: Connection, names: list[str], names_only: bool) -> None:
    """In the worker: run cases one after the other, in copies of this process, which has imported the frameworks."""
    import jax  # noqa: F401
    import torch  # noqa: F401

    warnings.simplefilter("ignore")
    known = {case.name: case for case in (*cases(), *reported(), *unseen())}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in names:
            connection.send(outcome(known[name], Path(folder), names_only=names_only))


def outcome(case: Case, folder: Path, *, names_only: bool = False) -> dict[str, Any]:
    """How a case is named and patched."""
    row = _row(case)
    stem = case.name.replace("/", "_").replace("-", "_")
    file = folder / f"{stem}.py"
    file.write_text(case.wrong, encoding="utf-8")
    target = [f"{file}:{case.target}", *(["--grad", f"{file}:{case.grad}"] if case.grad else [])]
    given = [part for flag in flags_of(case.inputs) for part in flag] if case.flags else []
    seconds = multiprocessing.RawValue("d", 0.0)
    text, row["check_seconds"], code = command(["check", *target, *given, "--format", "json", "--in-process"], seconds)
    row["name_seconds"] = seconds.value
    try:
        (checked,) = json.loads(text)["cases"]
    except (ValueError, KeyError) as error:
        return row | {"problem": f"check exits with {code}: {type(error).__name__}: {text[-300:]}"}
    row["verdict"], row["error"] = checked["verdict"], checked["error"]
    row["named"] = [finding["name"] for finding in checked["findings"]]
    row["said"] = [finding["message"] for finding in checked["findings"]][:3]
    if names_only:
        return row
    text, row["fix_seconds"], code = command(["fix", *target, *given, "--write", "--force", "--in-process"])
    after = file.read_text(encoding="utf-8")
    row["proven"] = text.count("  proven: ")
    row["recomputes"] = "runs forward again" in text
    row["patched"] = after != case.wrong
    if not row["patched"]:
        return row | {"reason": next((line.strip() for line in text.splitlines() if "no patch" in line), text[-300:])}
    row["diff"] = [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    row["nodes"] = changed_nodes(case.wrong, after)
    text, _, _ = _in_a_copy(lambda: print(json.dumps(patch_differs(case, after, folder, stem))))
    row["differs"] = json.loads(text.splitlines()[-1]) if text else ["the comparison fails"]
    return row


def command(arguments: list[str], naming: Any = None) -> tuple[str, float, int]:
    """What a command prints, the processor seconds that it takes, and its exit code.

    The seconds that naming takes are added to `naming`, a number in shared memory.
    """

    def run_it() -> None:
        from gradcli.cli.app import run as gradcli

        if naming is not None:
            _time_naming(naming)
        os._exit(gradcli(arguments))

    return _in_a_copy(run_it)


def _time_naming(seconds: Any) -> None:
    """Add the processor seconds that the naming of mistakes takes from now on in this process to a number."""
    from gradcli.runner.outcome import failed

    name_findings = failed.name_findings

    def timed(*arguments: Any, **options: Any) -> Any:
        begun = time.process_time()
        try:
            return name_findings(*arguments, **options)
        finally:
            seconds.value += time.process_time() - begun

    failed.name_findings = timed


def _in_a_copy(action: Callable[[], None]) -> tuple[str, float, int]:
    """Do something in a copy of this process: what it prints, its processor seconds and its exit code."""
    with tempfile.TemporaryFile("w+") as file:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            os.dup2(file.fileno(), 1)
            try:
                action()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(70)
        _, status, used = os.wait4(pid, 0)
        file.seek(0)
        return file.read(), used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)


def patch_differs(case: Case, after: str, folder: Path, stem: str) -> list[str]:
    """In which uses a patched Function does not behave as the right twin.

    At zeros, where two conventions may both be right, only a patch of a mistake that shows there is compared, and one
    that returns NaN there.
    """
    found: set[str] = set()
    for seed in range(2):
        right, wrong, patched = (
            behaviour(loaded(text, folder, f"{stem}_{name}"), case.backend, case.target, case.inputs, seed)
            for name, text in (("right", case.right), ("wrong", case.wrong), ("patched", after))
        )
        uses = set(differences(right, patched))
        shown = AT_ZEROS in differences(right, wrong) or (
            AT_ZEROS in right and is_finite(right[AT_ZEROS]) and not is_finite(patched[AT_ZEROS])
        )
        found |= uses if shown else uses - {AT_ZEROS}
    return sorted(found)


def line_of(row: dict[str, Any]) -> str:
    """A case's outcome in a line."""
    named = " ".join(row.get("named", ())[:2]) or row.get("verdict", "-")
    seconds = " ".join(f"{row.get(f'{part}_seconds', 0):6.1f}" for part in ("check", "name", "fix")) + " s"
    return f"{row['case']:52s} {seconds}  {naming(row):9s} {named:34s} {patching(row)}"


def naming(row: dict[str, Any]) -> str:
    """How a mistake was named: right, general, false, missed (it passed), or open (no verdict)."""
    if "named" not in row or row["verdict"] not in ("failed", "passed"):
        return "open"
    if row["verdict"] == "passed":
        return "missed"
    if row["named"][0] in row["accepted"]:
        return "right"
    return "general" if row["named"][0] == "wrong-gradient" else "false"


def patching(row: dict[str, Any]) -> str:
    """What came of a patch: none, wrong, longer, short (as long as the human edit or shorter), or recomputes."""
    if not row.get("patched"):
        return "none"
    if row["differs"]:
        return "WRONG"
    if row["recomputes"]:
        return "recomputes"
    return "short" if row["nodes"] <= row["human_nodes"] else "longer"


_COLUMNS = ("right", "general", "false", "missed", "open", "short", "longer", "recomputes", "WRONG", "none")


def tables(rows: list[dict[str, Any]]) -> str:
    """The outcomes by backend, family and kind."""
    found = []
    for title, key in (("backend", "backend"), ("family", "family"), ("kind", "kind")):
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            groups[row[key]].append(row)
        found.append(f"\n{title:24s} {'cases':>5s} {' '.join(f'{c:>7.7s}' for c in _COLUMNS)}  check s  name s   fix s")
        found += [_line(name, groups[name]) for name in sorted(groups)]
    return "\n".join([*found, "", _line("all", rows)])


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    told = [word for row in rows for word in (naming(row), patching(row))]
    counts = " ".join(f"{told.count(column):7d}" for column in _COLUMNS)
    check, naming_alone, fix = (_median(rows, f"{part}_seconds") for part in ("check", "name", "fix"))
    return f"{name:24.24s} {len(rows):5d} {counts} {check:>8s} {naming_alone:>7s} {fix:>7s}"


def _median(rows: Iterable[dict[str, Any]], key: str) -> str:
    found = [row[key] for row in rows if key in row]
    return f"{statistics.median(found):.2f}" if found else "-"


if __name__ == "__main__":
    main()
