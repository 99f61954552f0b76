"""How many mistakes planted in the numerics their tests find: comparisons turned round, numbers doubled, and the like.

A sample of the places where a comparison, a number, a sum, a condition or a choice stands is drawn from given files.
Each is changed in a copy of the tree, in which the tests of that file run until one fails. A mutant that no test kills
is printed with its line; it may be equivalent to the code (a cost alone changes, a bound that no number meets).

Run: python benchmarks/mutants.py [FILE...] [--count N] [--seed N] [--out FILE]
     (files below gradcli/numerics, by default those of TESTS)
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMERICS = "gradcli/numerics"
ESTIMATE = ("test_estimate.py", "test_jacobian.py", "test_correct.py", "test_wrong.py")
VERDICT = ("test_first_sight.py", "test_wrong.py", "test_witness.py", "test_correct.py")
TESTS = {
    "verify.py": VERDICT,
    "claims/compare.py": ("test_compare.py", *VERDICT),
    "claims/residual.py": ("test_wide_steps.py", "test_wide_errors.py"),
    "differences/breaks.py": ESTIMATE,
    "differences/directional.py": ESTIMATE,
    "differences/formats.py": ("test_formats.py", *ESTIMATE),
    "differences/ladder.py": ESTIMATE,
    "differences/noise.py": ESTIMATE,
    "differences/stencil.py": ESTIMATE,
    "differences/three_pairs.py": ("test_first_sight.py", *ESTIMATE),
}
"""The tests of each file, those that are quick first."""
SECONDS = 300
"""A mutant that runs so long is killed: it does not end."""
OTHER_WAY: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
}


@dataclass(frozen=True)
class Mutant:
    """One changed place of a file: its line, what was done there, and the text of the whole file with it."""

    file: str
    line: int
    what: str
    text: str


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every node that can be changed, with what is done to it; texts, annotations and imports are left alone."""
    skipped = {id(inner) for node in ast.walk(tree) for outer in _untouched(node) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_WAY:
            yield node, "comparison"
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OTHER_WAY:
            yield node, "operator"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0:
            yield node, "number doubled"
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node, "condition"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "not left out"


def _untouched(node: ast.AST) -> list[ast.expr]:
    """The parts of a node that decide nothing: annotations and decorators."""
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return [part for part in (node.returns, *(one.annotation for one in arguments)) if part] + node.decorator_list
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    return node.decorator_list if isinstance(node, ast.ClassDef) else []


def _change(node: ast.AST) -> None:
    """Plant the mistake."""
    if isinstance(node, ast.Compare):
        node.ops[0] = OTHER_WAY[type(node.ops[0])]()  # type: ignore[call-overload]  # the table keeps the kinds apart
    elif isinstance(node, ast.BoolOp | ast.BinOp):
        node.op = OTHER_WAY[type(node.op)]()  # type: ignore[assignment]  # the table keeps the kinds apart
    elif isinstance(node, ast.Constant):
        node.value = 2 * node.value  # type: ignore[operator]  # a number, as _places has seen
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)


def mutants(file: str) -> list[Mutant]:
    """All mutants of one file."""
    text = (ROOT / NUMERICS / file).read_text(encoding="utf-8")
    found = []
    for number, (node, what) in enumerate(_places(ast.parse(text))):
        tree = ast.parse(text)
        same = list(_places(tree))[number][0]
        _change(same)
        found.append(Mutant(file, getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(tree))))
    return found


def killed(mutant: Mutant, tree: Path) -> bool:
    """Whether a test of the file fails with the mutant in place, in a copy of the tree."""
    place = tree / NUMERICS / mutant.file
    before = place.read_text(encoding="utf-8")
    place.write_text(mutant.text, encoding="utf-8")
    tests = [f"tests/numerics/{name}" for name in TESTS[mutant.file] if (tree / "tests/numerics" / name).exists()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        run = subprocess.run(
            command, cwd=tree, capture_output=True, timeout=SECONDS, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_text(before, encoding="utf-8")
    return run.returncode != 0


def main() -> None:
    """Draw mutants, run the tests on each, and print those that live."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", default=list(TESTS))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file to which results are appended; those in it are not run again")
    options = parser.parse_args()
    pool = [mutant for file in options.files for mutant in mutants(file)]
    drawn = random.Random(options.seed).sample(pool, min(options.count, len(pool)))
    lines = options.out.read_text(encoding="utf-8").splitlines() if options.out and options.out.exists() else []
    done = {tuple(key): dead for key, dead in map(json.loads, lines)}
    counts: Counter[bool] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "docs", "__pycache__", "shared"))
        for mutant in drawn:
            key = (mutant.file, mutant.line, mutant.what, zlib.crc32(mutant.text.encode()))
            dead = done[key] if key in done else killed(mutant, tree)
            counts[dead] += 1
            if not dead:
                print(f"lives: {mutant.file}:{mutant.line}, {mutant.what}", flush=True)
            if options.out and key not in done:
                with options.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps([key, dead]) + "\n")
    print(f"{counts[True]} of {counts.total()} killed, drawn from {len(pool)} mutants")


if __name__ == "__main__":
    main()
