"""That the right twins are right, by checkers other than gradcli's, and the wrong ones wrong where they are said to be.

Run: python -m benchmarks.fix.other_hand.truth [TEXT]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fix.other_hand import families
from benchmarks.fix.other_hand.behaviour import FRESH, arguments, behaviour, differences, loaded
from benchmarks.fix.other_hand.record import Case
from benchmarks.fix.unseen import families as unseen

_STEP = 1e-6
_AGREE = 1e-5
"""Central differences with this step agree with a derivative to about 1e-9 in these functions, most of which are of
order one; a mistake makes a difference of order one."""


def main() -> int:
    """Print what does not hold; return how many such statements there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", default="", help="a part of a family's name or of a file's name")
    options = parser.parse_args()
    problems, rights, wrongs = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for family in (*families(), *unseen()):
            if options.text not in f"{family.name} {Path(family.file).stem}":
                continue
            for target, (inputs, right) in family.rights.items():
                told = false_right(family.backend, target, inputs, right, Path(folder))
                rights += 1
                for case in (c for c in family.cases if c.target == target):
                    told += false_wrong(case, Path(folder))
                    wrongs += 1
                problems += len(told)
                for line in told:
                    print(f"{family.name}/{target}: {line}", flush=True)
    print(f"{rights} right twins, {wrongs} wrong ones, {problems} problems")
    return min(problems, 1)


def false_right(backend: str, target: str, inputs: str, text: str, folder: Path) -> list[str]:
    """What is not right about a right twin, at two sets of fresh inputs."""
    module = loaded(text, folder, f"right_{target}")
    found = []
    for seed in range(2):
        given = arguments(inputs, FRESH[seed], 200 + seed)
        try:
            if not _agrees(backend, module, target, given, seed):
                found.append(f"the right twin is not right at seed {seed}")
        except Exception as error:
            found.append(
                f"the right twin raises at seed {seed}: {type(error).__name__}: {str(error).splitlines()[0][:100]}"
            )
    return found


def _agrees(backend: str, module: Any, target: str, given: list[tuple[str, Any, bool]], seed: int) -> bool:
    if backend == "numpy":
        return _agrees_numpy(getattr(module, target), getattr(module, f"{target}_vjp"), given, seed)
    if backend == "jax":
        return _agrees_jax(getattr(module, target), given)
    import torch as real_torch

    from gradcli import engine

    lib: Any = real_torch if backend == "torch" else engine
    values = [lib.tensor(v, requires_grad=needs) if isinstance(v, np.ndarray) else v for _, v, needs in given]
    function = getattr(module, target).apply
    return bool(lib.autograd.gradcheck(function, values) and lib.autograd.gradgradcheck(function, values))


def _agrees_jax(function: Any, given: list[tuple[str, Any, bool]]) -> bool:
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    values = [jax.numpy.asarray(v) if isinstance(v, np.ndarray) else v for _, v, _ in given]
    tracked = [i for i, (_, _, needs) in enumerate(given) if needs]

    def of(*leaves: Any) -> Any:
        full = list(values)
        for i, leaf in zip(tracked, leaves, strict=True):
            full[i] = leaf
        return function(*full)

    check_grads(of, tuple(values[i] for i in tracked), order=2, modes=["rev"], eps=1e-5, atol=1e-4, rtol=1e-4)
    return True


def _agrees_numpy(function: Any, vjp: Any, given: list[tuple[str, Any, bool]], seed: int) -> bool:
    """Whether <u, J v> by central differences is <J^T u, v>, for each input and three directions."""
    rng = np.random.default_rng([5, seed])
    values = [v for _, v, _ in given]
    tracked = [i for i, (_, _, needs) in enumerate(given) if needs]
    for i in tracked * 3:
        direction = rng.standard_normal(values[i].shape)
        if values[i].dtype.kind == "c":
            direction = direction + 1j * rng.standard_normal(values[i].shape)
        ups, downs = (_outputs(function, values, i, sign * _STEP * direction) for sign in (1, -1))
        u = [
            rng.standard_normal(y.shape) + (1j * rng.standard_normal(y.shape) if y.dtype.kind == "c" else 0)
            for y in ups
        ]
        slope = sum(np.vdot(g, (a - b) / (2 * _STEP)).real for g, a, b in zip(u, ups, downs, strict=True))
        got = vjp(*[np.copy(v) if isinstance(v, np.ndarray) else v for v in values], tuple(u) if len(u) > 1 else u[0])
        parts = got if isinstance(got, tuple) else (got,)
        part = parts[tracked.index(i)] if len(parts) == len(tracked) else parts[i]
        if abs(slope - np.vdot(part, direction).real) > _AGREE * (1 + abs(slope)):
            return False
    return True


def _outputs(function: Any, values: list[Any], i: int, step: Any) -> list[Any]:
    moved = [v + step if j == i else v for j, v in enumerate(values)]
    result = function(*moved)
    return [np.asarray(y) for y in (result if isinstance(result, tuple) else (result,))]


def false_wrong(case: Case, folder: Path) -> list[str]:
    """What is not as recorded about a wrong twin: that it differs from the right one, and in which gradients."""
    stem = case.name.replace("/", "_").replace("-", "_")
    right, wrong = (loaded(t, folder, f"{stem}_{n}") for n, t in enumerate((case.right, case.wrong)))
    one, other = (behaviour(m, case.backend, case.target, case.inputs, 0) for m in (right, wrong))
    told = [f"{case.kind}: the right twin {v} in '{u}'" for u, v in one.items() if isinstance(v, str) and u != "second"]
    if not differences(one, other):
        return [*told, f"{case.kind}: the wrong twin does as the right one"]
    if isinstance(one["first"], str) or isinstance(other["first"], str):
        refused = case.accepted & {"wrong-arity", "wrong-shape", "missing-reduction", "missing-gradient", "wrong-dtype"}
        return told if refused else [*told, f"{case.kind}: the wrong twin {other['first']}"]
    names = [name for name, _, needs in arguments(case.inputs, FRESH[0], 100) if needs]
    pairs = list(zip(one["first"][-len(names) :], other["first"][-len(names) :], strict=True))
    differing = tuple(n for n, (a, b) in zip(names, pairs, strict=True) if a.shape != b.shape or not np.allclose(a, b))
    if differing and set(differing) != set(case.wrong_inputs):
        told.append(f"{case.kind}: wrong are {' '.join(differing)}, not {' '.join(case.wrong_inputs)}")
    return told


if __name__ == "__main__":
    sys.exit(main())
