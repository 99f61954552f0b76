"""Random sets of hostile, right and wrong cases, spread at random: each comes to what it comes to alone.

Run as `python -m benchmarks.companies [ROUNDS [SEED]]`. The cases are those of `hostile_programs.py`, of the engine
and of PyTorch, each a process of its own when it is alone. Every line printed is a case that came to something else.
"""

import json
import random
import sys
from pathlib import Path

from benchmarks.hostile.programs import CALLS, TORCH, program, torch_program
from benchmarks.hostile.run import gradcli, new_folder

_TIMEOUT = "8"
_UNSTEADY = {"PatchesTime", "NestedCheck", "ForksAndExits", "DiesLater", "RecursesDeep"}
"""What these come to depends on the time or on chance."""
_IN_PROCESS = (
    "EscapesInMessage",
    "ExitsWithText",
    "StopsIteration",
    "Surrogate",
    "PatchesAbs",
    "PatchesZeros",
    "Collects",
)
_SPREADS: tuple[tuple[str, ...], ...] = ((), ("-j", "2"), ("--shard", "1/2"), ("--shard", "2/2"), ("--in-process",))

Seen = tuple[object, ...]


def seen(folder: Path, targets: list[str], *extra: str) -> dict[str, Seen]:
    """Verdict, seed and findings of each case."""
    limit = () if "--in-process" in extra else ("--timeout", _TIMEOUT)
    ended = gradcli(folder, "check", *targets, "-i", "x=3", "--format", "json", *limit, *extra)
    return {
        case["target"]: (case["verdict"], case["seed"], json.dumps(case["findings"]))
        for case in json.loads(ended.out or '{"cases": []}')["cases"]  # a share may hold none
    }


def main(rounds: int, seed: int) -> int:
    """Run the rounds; 1 where a case came to something else than alone."""
    drawn, alone, wrong, count = random.Random(seed), dict[str, Seen](), 0, 0
    folder = new_folder()
    (folder / "engine_attacks.py").write_text(program())
    (folder / "torch_attacks.py").write_text(torch_program())
    files = {"engine_attacks.py": CALLS, "torch_attacks.py": TORCH}
    names = {f"{file}:{kind}{name}": name for file, table in files.items() for name in table for kind in ("", "Wrong")}
    for number in range(rounds):
        extra = drawn.choice(_SPREADS)
        allowed = [
            target
            for target, name in names.items()
            if name not in _UNSTEADY and (name in _IN_PROCESS or "--in-process" not in extra)
        ]
        chosen = drawn.sample(allowed, drawn.randint(3, 10))
        for target, came_to in seen(folder, chosen, *extra).items():
            count += 1
            alone[target] = alone.get(target) or seen(folder, [target])[target]
            if came_to != alone[target]:
                wrong += 1
                print(f"round {number}: {target} came to {came_to}, alone to {alone[target]}: {chosen} {extra}")
    print(f"{rounds} rounds, {count} cases, {wrong} that came to something else than alone")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 30, int(sys.argv[2]) if len(sys.argv) > 2 else 0))
