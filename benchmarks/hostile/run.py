"""Programs, specs and surroundings that attack a run: each must end with the right exit code and harm no neighbour.

Run as `python -m benchmarks.hostile [FAMILY]...`; the families are calls, torch, imports, specs and surroundings. Every
line that is printed is an answer that is not the right one. Takes a few minutes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.hostile.programs import CALLS, IMPORTS, NEIGHBOUR, TORCH, program, torch_program
from benchmarks.hostile.surroundings import SPECS, SURROUNDINGS

_SECONDS = 240
_TIMEOUT = "4"
_ROOMS = "runner|cli|checks|backends|numerics|tracing|inputs|spec"
_OURS = re.compile(rf'File "[^"]*/gradcli/({_ROOMS})/.*|internal error in gradcli')
"""What no standard error may hold: frames of gradcli, or that it failed."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    error: str
    seconds: float

    @property
    def cases(self) -> dict[str, dict[str, Any]]:
        """The cases of the JSON document by the name of their target."""
        try:
            document = json.loads(self.out)
        except ValueError:
            return {}
        return {case["target"].rpartition(":")[2]: case for case in document["cases"]}

    def wrongs(self) -> Iterator[str]:
        """What no command may do."""
        yield from (f"standard error holds {found[0]!r}" for found in _OURS.finditer(self.error))
        if self.seconds > _SECONDS:
            yield f"took {self.seconds:.0f} s"


def ran(folder: Path, command: list[str], **environment: str) -> Ended:
    """Run a command in a folder."""
    began = time.perf_counter()
    own = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parents[2]), **environment}
    try:
        ended = subprocess.run(
            command, cwd=folder, env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=2 * _SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Ended(-1, "", "did not end", 2 * _SECONDS)
    seconds = time.perf_counter() - began
    return Ended(
        ended.returncode, ended.stdout.decode(errors="replace"), ended.stderr.decode(errors="replace"), seconds
    )


def gradcli(folder: Path, *arguments: str, **environment: str) -> Ended:
    """Run the command line."""
    return ran(folder, [sys.executable, "-m", "gradcli", *arguments], **environment)


def new_folder() -> Path:
    """A folder with a good module."""
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    (folder / "good.py").write_text(NEIGHBOUR)
    return folder


def calls(table: Mapping[str, tuple[str, str, str]], text: str, extra: tuple[str, ...]) -> Iterator[str]:
    """Attacks in forward and backward, each followed by a wrong neighbour."""
    folder = new_folder()
    (folder / "attacks.py").write_text(text)
    ended = gradcli(folder, "check", "attacks.py", "-i", "x=3", "--timeout", _TIMEOUT, "--format", "json", *extra)
    yield from ended.wrongs()
    if ended.code != 1:
        yield f"exit code {ended.code} instead of 1: {ended.error[-600:]}"
    for name, (_, _, expected) in table.items():
        verdict, _, said = expected.partition(":")
        case, wrong = ended.cases.get(name), ended.cases.get(f"Wrong{name}")
        if case is None or wrong is None:
            yield f"{name}: lost"
            continue
        if case["verdict"] not in verdict.split("/") or said not in json.dumps(case):
            yield f"{name}: {case['verdict']} instead of {expected}: {str(case['error'])[:300]} {case['findings'][:1]}"
        if [finding["name"] for finding in wrong["findings"]] != ["wrong-factor"]:
            yield f"{name}: its neighbour is {wrong['verdict']}: {str(wrong['error'])[:300]}"
    shutil.rmtree(folder, ignore_errors=True)


def imports() -> Iterator[str]:
    """Modules that attack while they are imported, all in one run between good ones."""
    folder = new_folder()
    for name, (text, _) in IMPORTS.items():
        (folder / f"{name}.py").write_text(text)
    targets = [part for name in IMPORTS for part in (f"{name}.py:F", "good.py:Wrong", "good.py:Right")]
    ended = gradcli(folder, "check", *dict.fromkeys(targets), "-i", "x=3", "--timeout", "4", "--format", "json")
    yield from ended.wrongs()
    if ended.code != 2:
        yield f"exit code {ended.code} instead of 2"
    cases = {case["target"]: case for case in json.loads(ended.out or '{"cases": []}')["cases"]}
    if {cases.get(f"good.py:{name}", {}).get("verdict") for name in ("Wrong", "Right")} != {"failed", "passed"}:
        yield "the good module was lost"
    for name, (_, expected) in IMPORTS.items():
        case = cases.get(f"{name}.py:F")
        if case is None or case["verdict"] not in expected.split("/"):
            yield f"{name}: {case and case['verdict']} instead of {expected}: {str(case and case['error'])[:300]}"
        elif case["verdict"] == "error" and not case["error"]:
            yield f"{name}: its case does not say what happened"
    shutil.rmtree(folder, ignore_errors=True)


def specs() -> Iterator[str]:
    """Files of specs that attack who reads them, each beside a good one."""
    folder = new_folder()
    (folder / "good.yaml").write_text("target: good.py:Right\ncases: [{inputs: {x: {shape: [3]}}}]\n")
    for name, (content, code) in SPECS.items():
        (folder / "attack.yaml").write_bytes(content)
        ended = gradcli(folder, "check", "attack.yaml", "good.yaml", "--timeout", "4", "--format", "json")
        yield from (f"{name}: {wrong}" for wrong in ended.wrongs())
        if ended.code != code:
            yield f"{name}: exit code {ended.code} instead of {code}: {ended.error[:300]}"
        elif code == 2 and "attack.yaml" not in ended.error:
            yield f"{name}: the file is not named in {ended.error[:300]!r}"
        if len(ended.error) > 20_000:
            yield f"{name}: {len(ended.error)} characters on standard error"
    shutil.rmtree(folder, ignore_errors=True)


def surroundings() -> Iterator[str]:
    """Folders, descriptors, signals and settings that a shell makes; GRADCLI stands for the command."""
    for name, (script, codes, said) in SURROUNDINGS.items():
        folder = new_folder()
        text = script.replace("GRADCLI", f"{sys.executable} -m gradcli")
        ended = ran(folder, ["bash", "-c", text])
        yield from (f"{name}: {wrong}" for wrong in ended.wrongs())
        if ended.code not in codes:
            yield f"{name}: exit code {ended.code} instead of {codes}: {ended.out[-200:]} {ended.error[-400:]}"
        if said not in ended.out + ended.error:
            yield f"{name}: {said!r} is not in {ended.out[-300:]!r} {ended.error[-300:]!r}"
        ran(folder, ["bash", "-c", "chmod -R u+rwx ."])
        shutil.rmtree(folder, ignore_errors=True)


FAMILIES = {
    "calls": lambda: calls(CALLS, program(), ()),
    "torch": lambda: calls(TORCH, torch_program(), ()),
    "imports": imports,
    "specs": specs,
    "surroundings": surroundings,
}


def main(names: list[str]) -> int:
    """Run the families; 1 where any answer was not the right one."""
    tries, wrong = 0, 0
    sizes = {"calls": CALLS, "torch": TORCH, "imports": IMPORTS, "specs": SPECS, "surroundings": SURROUNDINGS}
    for name in names or list(FAMILIES):
        began, tries = time.perf_counter(), tries + len(sizes[name])
        for text in FAMILIES[name]():
            wrong += 1
            print(f"{name}: {text}", flush=True)
        print(f"{name}: {len(sizes[name])} tries, {time.perf_counter() - began:.0f} s", flush=True)
    print(f"{tries} tries, {wrong} wrong answers")
    return 1 if wrong else 0
