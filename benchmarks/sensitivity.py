"""What every constant of the numerics decides: it is halved and doubled, and the verdicts that change are counted.

While a case is checked as usual, the functions that run are noted. Only the constants that they name can change the
verdict, so the case is checked again with each of these at half and at twice its value, wherever it was imported. (A
constant that another one is computed from, or that is a default of a parameter, changes there only where it is named.)
Results are appended to a file as they come; a run that is started again goes on where the last one ended.

Run: python benchmarks/sensitivity.py run FILE [--tables maps,misses,...] [--every N] [--first K] [--enough N]
         [--only FILE:NAME,...] [--seconds S]
     python benchmarks/sensitivity.py write FILE     (to tools/constants_measured.json, for docs/constants.md)
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.ablation.run import read, told
from benchmarks.ablation.tables import TABLES, Verdicts
from tools.constants import MEASURED, NUMERICS, constants

FACTORS = {"half": 0.5, "twice": 2.0}


@dataclass(frozen=True)
class Number:
    """A constant, and the modules in which it is known, each with its name there."""

    key: str
    places: tuple[tuple[Any, str], ...]

    @property
    def value(self) -> Any:
        """Its value, a number or a tuple of numbers."""
        module, name = self.places[0]
        return getattr(module, name)


def _imported() -> dict[tuple[str, str], list[tuple[Any, str]]]:
    """Where a name of a module is imported: module and name, to the modules that import it and its names there."""
    found: dict[tuple[str, str], list[tuple[Any, str]]] = {}
    for file in NUMERICS.rglob("*.py"):
        module = importlib.import_module(_module(file))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    found.setdefault((node.module, name.name), []).append((module, name.asname or name.name))
    return found


def _module(file: Path) -> str:
    parts = file.relative_to(NUMERICS.parent.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def numbers() -> list[Number]:
    """All constants that can be scaled."""
    imported, found = _imported(), []
    for one in constants():
        module = _module(NUMERICS / one.file)
        own = (importlib.import_module(module), one.name)
        found.append(Number(f"{one.file}:{one.name}", (own, *imported.get((module, one.name), ()))))
    return [number for number in found if scaled(number.value, 2.0) is not None]


def scaled(value: Any, factor: float) -> Any:
    """A value times a factor, a whole number rounded to another one above zero; None if it cannot be scaled."""
    if isinstance(value, tuple):
        parts = tuple(scaled(part, factor) for part in value)
        return None if None in parts else parts
    if isinstance(value, int):
        return None if value < 1 else max(1, round(value * factor))
    return value * factor if isinstance(value, float) else None


@contextmanager
def at(number: Number, value: Any) -> Iterator[None]:
    """Give a constant another value."""
    before = number.value
    try:
        for module, name in number.places:
            setattr(module, name, value)
        yield
    finally:
        for module, name in number.places:
            setattr(module, name, before)


def _names(code: CodeType) -> set[str]:
    """The names that a function uses, with those of the functions inside it."""
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*map(_names, inner))


def as_usual(check: Callable[[], Verdicts]) -> tuple[Verdicts, set[tuple[str, str]]]:
    """The verdicts of a case, and the names that its functions use, each with the module."""
    codes: set[CodeType] = set()
    inside = str(NUMERICS)

    def called(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(inside):
            codes.add(frame.f_code)

    sys.setprofile(called)
    try:
        verdicts = told(check)
    finally:
        sys.setprofile(None)
    return verdicts, {(_module(Path(code.co_filename)), name) for code in codes for name in _names(code)}


def run(options: argparse.Namespace) -> None:
    """Check cases as usual, and with each constant that they use at half and at twice its value."""
    file, started = Path(options.file), time.process_time()
    done = {(one["table"], one["case"]) for one in read(file)}
    changed = Counter(key for one in read(file) for key in one["changed"])
    known = [number for number in numbers() if not options.only or number.key in options.only]
    for table in options.tables:
        for order, (name, check) in enumerate(TABLES[table](1)):
            if order % options.every != options.first or (table, name) in done:
                continue
            if time.process_time() - started > options.seconds:
                return
            verdicts, used = as_usual(check)
            ours = [n for n in known if any((module.__name__, key) in used for module, key in n.places)]
            found: dict[str, Any] = {"table": table, "case": name, "used": [n.key for n in ours], "changed": {}}
            for number in ours:
                for word, factor in FACTORS.items():
                    key, value = f"{number.key} {word}", scaled(number.value, factor)
                    if value == number.value or changed[key] >= options.enough:
                        continue
                    with at(number, value):
                        other = told(check)
                    if other != verdicts:
                        found["changed"][key] = other
                        changed[key] += 1
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(found) + "\n")
        print(f"{table}: {time.process_time() - started:.0f} s", flush=True)


def write(options: argparse.Namespace) -> None:
    """Write for every constant how many cases use it, and which verdicts change at half and at twice its value."""
    found = read(Path(options.file))
    used = Counter(key for one in found for key in one["used"])
    summary: dict[str, Any] = {}
    for key in sorted(used):
        told_of = {word: [one for one in found if f"{key} {word}" in one["changed"]] for word in FACTORS}
        summary[key] = {
            "cases": used[key],
            **{word: len(cases) for word, cases in told_of.items()},
            **{f"{word} case": f"{cases[0]['table']}: {cases[0]['case']}" for word, cases in told_of.items() if cases},
        }
    MEASURED.write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Run, or write the summary."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "write"))
    parser.add_argument("file")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--every", type=int, default=1, help="only one of so many cases")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of these")
    parser.add_argument("--enough", type=int, default=2, help="changed cases after which a value is not tried again")
    parser.add_argument("--seconds", type=float, default=np.inf, help="processor time after which no case is begun")
    options = parser.parse_args()
    (run if options.what == "run" else write)(options)


if __name__ == "__main__":
    main()
