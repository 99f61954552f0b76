"""Which mechanisms of the numerics decide something: each is switched off, and the verdicts that change are counted.

While a case is checked as usual, every mechanism that gives another answer than it would when switched off is noted.
Only those can change the verdict, so the case is checked again with each of them off and no other. A mechanism that
changes no verdict in any table is one that nothing here needs. Results are appended to a file as they come; a run that
is started again goes on where the last one ended. Mechanisms that only save evaluations are switched off when named.

Run: python -m benchmarks.ablation run FILE [--tables maps,misses,...] [--only MECHANISM,...] [--cases WORD]
         [--discovered] [--watch] [--every N] [--first K] [--seeds N] [--enough N]
     python -m benchmarks.ablation report FILE
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ablation.mechanisms import MECHANISMS, Mechanism, discovered
from benchmarks.ablation.tables import TABLES, Verdicts

ROOT = "gradcli.numerics."


@dataclass(frozen=True)
class Place:
    """A name under which a function is known, in a module or a class."""

    owner: Any
    name: str


def places(mechanism: Mechanism) -> list[Place]:
    """Every name under which the mechanism's function was imported."""
    owner: Any = importlib.import_module(ROOT + mechanism.module)
    *classes, name = mechanism.function.split(".")
    for part in classes:
        owner = getattr(owner, part)
    if classes:
        return [Place(owner, name)]
    original = getattr(owner, name)
    modules = [module for key, module in sys.modules.items() if key.startswith("gradcli")]
    return [Place(module, key) for module in modules for key, value in vars(module).items() if value is original]


@contextmanager
def replaced(mechanism: Mechanism, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Put what `make` makes of the mechanism's function in its place."""
    known = places(mechanism)
    original = getattr(known[0].owner, known[0].name)
    new = make(original)
    for place in known:
        setattr(place.owner, place.name, new)
    try:
        yield
    finally:
        for place in known:
            setattr(place.owner, place.name, original)


def same(one: Any, two: Any) -> bool:
    """Whether two answers are one: equal in value, or the same object."""
    if one is two:
        return True
    if isinstance(one, np.ndarray) or isinstance(two, np.ndarray):
        one, two = np.asarray(one), np.asarray(two)
        return one.shape == two.shape and bool(np.array_equal(one, two, equal_nan=one.dtype.kind == "f"))
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if type(one) is not type(two) or hasattr(one, "__dataclass_fields__"):
        return False
    return bool(one == two)


def watching(mechanism: Mechanism, acted: set[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A wrapper that notes when the mechanism does not answer as if it were off."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            answer = original(*args, **kwargs)
            if not same(answer, mechanism.off(*args, **kwargs)):
                acted.add(mechanism.name)
            return answer

        return watched

    return make


def as_usual(check: Callable[[], Verdicts], mechanisms: list[Mechanism]) -> tuple[Verdicts, list[str]]:
    """The verdicts of a case, and the mechanisms that had a part in them."""
    acted: set[str] = set()
    with ExitStack() as stack:
        for mechanism in mechanisms:
            stack.enter_context(replaced(mechanism, watching(mechanism, acted)))
        verdicts = told(check)
    return verdicts, sorted(acted)


def without(check: Callable[[], Verdicts], mechanism: Mechanism) -> Verdicts:
    """The verdicts of a case with one mechanism off."""
    with replaced(mechanism, lambda _: mechanism.off):
        return told(check)


def told(check: Callable[[], Verdicts]) -> Verdicts:
    """What a check says, or what it raises."""
    try:
        with np.errstate(all="ignore"):
            return check()
    except Exception as error:
        return [f"raised {type(error).__name__}: {error}"[:120]]


def run(options: argparse.Namespace) -> None:
    """Check every case as usual and without each mechanism that acted."""
    file = Path(options.file)
    done = {(one["table"], one["case"]) for one in read(file)}
    listed = [*MECHANISMS, *discovered()] if options.discovered or options.only else MECHANISMS
    mechanisms = [m for m in listed if (m.name in options.only if options.only else not m.spares)]
    decided = Counter(name for one in read(file) for name in one["changed"])
    for table in options.tables:
        started, count = time.process_time(), 0
        for number, (name, check) in enumerate(TABLES[table](options.seeds)):
            outside = number % options.every != options.first or not re.search(options.cases, name)
            if outside or (table, name) in done:
                continue
            verdicts, acted = as_usual(check, mechanisms)
            found = {"table": table, "case": name, "verdicts": verdicts, "acted": acted, "changed": {}}
            tried = [] if options.watch else [m for m in mechanisms if m.name in acted]
            for mechanism in (m for m in tried if decided[m.name] < options.enough):
                off = without(check, mechanism)
                if off != verdicts:
                    found["changed"][mechanism.name] = off
                    decided[mechanism.name] += 1
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(found) + "\n")
            count += 1
            if count % 50 == 0:
                print(f"{table}: {count} cases, {time.process_time() - started:.0f} s", flush=True)
        print(f"{table}: {count} cases, {time.process_time() - started:.0f} s", flush=True)


def read(file: Path) -> list[dict[str, Any]]:
    """What was found so far."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def report(options: argparse.Namespace) -> None:
    """Print, for every mechanism, in how many cases it acted, how many verdicts change without it, and one of them."""
    found = read(Path(options.file))
    tables = Counter(one["table"] for one in found)
    print(", ".join(f"{table} {count}" for table, count in sorted(tables.items())))
    known = {name for one in found for name in one["acted"]}
    for mechanism in [*MECHANISMS, *(m for m in discovered() if m.name in known)]:
        acted = [one for one in found if mechanism.name in one["acted"]]
        changed = [one for one in acted if mechanism.name in one["changed"]]
        print(f"{mechanism.name}: acts in {len(acted)}, decides {len(changed)}")
        for one in changed[: options.show]:
            off = one["changed"][mechanism.name]
            before, after = Counter(one["verdicts"]), Counter(off)
            print(f"    {one['table']}: {one['case']}: {dict(before - after)} -> {dict(after - before)}")


def main() -> None:
    """Run the tables, or report."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "report"))
    parser.add_argument("file")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--cases", default="", help="a regular expression that the case's name must hold")
    parser.add_argument("--discovered", action="store_true", help="also every function that answers yes, no or nothing")
    parser.add_argument("--watch", action="store_true", help="only note which mechanisms act, and switch none off")
    parser.add_argument("--every", type=int, default=1, help="only one of so many cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of these")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--enough", type=int, default=10**9, help="cases decided after which a mechanism is not tried")
    parser.add_argument("--show", type=int, default=2)
    options = parser.parse_args()
    (run if options.what == "run" else report)(options)
