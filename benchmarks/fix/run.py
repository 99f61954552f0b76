"""How many planted mistakes are named and patched, how long that takes, and whether a patch is ever wrong.

Run: python -m benchmarks.fix.run [TEXT] [--stride N] [-v]

TEXT chooses specimens by name. A patch counts as right where the patched Function gives the gradients of the right one
at inputs that the search has not seen.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import statistics
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.fix.corpus import Specimen, specimens
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.fix.search import SECONDS, fixed
from gradcli.patches import FixResult
from gradcli.runner.plan import plan
from gradcli.runner.prepare import prepared
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve


def main() -> None:
    """Print a line for each specimen and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("-v", action="store_true", help="show the patches")
    options = parser.parse_args()
    chosen = [s for s in specimens() if options.text in s.name][:: options.stride]
    tally: Counter[str] = Counter()
    seconds = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for specimen in chosen:
            result, spent = patched(specimen, Path(folder))
            seconds.append(spent)
            told = judged(specimen, result, Path(folder))
            tally.update(told)
            first = result.sentences[0].rpartition("[")[2].rstrip("]") if result.sentences else result.verdict.value
            print(f"{specimen.name:44s} {spent:6.2f} s  {first:24s} {' '.join(sorted(told))}", flush=True)
            if options.v and result.patch is not None:
                print(
                    "\n".join(
                        line
                        for line in result.patch.diff().splitlines()
                        if line[:1] in "+-" and line[:3] not in ("+++", "---")
                    )
                )
    print(f"{len(chosen)} specimens: {', '.join(f'{what} {count}' for what, count in sorted(tally.items()))}")
    print(f"processor time: median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s")


def patched(specimen: Specimen, folder: Path) -> tuple[FixResult, float]:
    """The outcome for the wrong file, and the processor time it took."""
    file = folder / f"{specimen.name.replace('-', '_')}.py"
    file.write_text(specimen.wrong)
    grad = None if specimen.grad is None else f"{file}:{specimen.grad}"
    target = f"{file}:{specimen.target}"
    spec = CheckSpec(target=target, grad=grad)
    if specimen.target == "ComplexSquare":  # real inputs, which would be inferred, have no conjugate
        z = InputSpec(name="z", shape=(3, 4), dtype="complex128")
        spec = spec.with_inputs((z,), InputsFrom.FLAGS)
    (case,) = plan([spec], Settings())
    found = resolve(target).object
    began = time.process_time()
    result = fixed(prepared(found, case), found, target, ends=began + SECONDS)
    return result, time.process_time() - began


def judged(specimen: Specimen, result: FixResult, folder: Path) -> set[str]:
    """What is to be said of an outcome."""
    told = {"caught"} if result.sentences else {"NOT CAUGHT"}
    name = result.sentences[0].rpartition("[")[2].rstrip("]") if result.sentences else ""
    told.add("named" if name in specimen.names else "NAMED OTHERWISE")
    if name == "wrong-gradient":
        told.add("general")
    if result.patch is None:
        return told | {"no patch"}
    told.add("patched")
    told.add(
        "short" if size(result.patch.before, result.patch.after) <= size(specimen.wrong, specimen.right) else "longer"
    )
    return told | ({"right"} if agrees(specimen, result.patch.after, folder) else {"WRONG PATCH"})


def size(before: str, after: str) -> int:
    """How many nodes of syntax a change adds and takes away, as multisets of the texts of expressions."""
    one, other = (Counter(_tokens(text)) for text in (before, after))
    return sum((one - other).values()) + sum((other - one).values())


def _tokens(text: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(text)):
        label = getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", None)
        kind = type(node).__name__
        if not isinstance(node, ast.expr_context):
            found.append(f"{kind} {label}" if isinstance(label, str | int | float) else kind)
    return found


def agrees(specimen: Specimen, text: str, folder: Path) -> bool:
    """Whether the patched file gives the gradients of the right one at fresh inputs of three sizes."""
    modules = [_module(source, folder, f"{specimen.name}_{n}") for n, source in enumerate((text, specimen.right))]
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        one, other = (_gradients(specimen, module, seed, np.random.default_rng([7, seed])) for module in modules)
        del rng
        if any(not np.allclose(a, b, rtol=1e-9, atol=1e-11) for a, b in zip(one, other, strict=True)):
            return False
    return True


def _module(text: str, folder: Path, name: str) -> Any:
    file = folder / f"twin_{name.replace('-', '_')}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHAPES: dict[str, list[Any]] = {
    "TanhLinear": ["nm", "mk"],
    "Linear": ["nm", "km", "k"],
    "Scaled": ["nm", 2.5],
    "LeakyRelu": ["nm", 0.3],
    "MSE": ["nm", "nm"],
    "LayerNorm": ["nm", "m"],
    "Divide": ["nm", "nm"],
    "Attention": ["nm", "km", "kl"],
    "AddColumn": ["nm", "n"],
    "Weighted": ["nm", "nm", "nm"],
    "swish": ["nm", "mk"],
    "sine": ["nm", "m"],
}


def _gradients(specimen: Specimen, module: Any, seed: int, rng: np.random.Generator) -> list[Any]:
    sizes = dict(zip("nmkl", (seed + 2, seed + 4, 2 * seed + 3, seed + 5), strict=True))
    shapes = SHAPES.get(specimen.target, ["nm"])
    arrays = [rng.standard_normal([sizes[c] for c in s]) if isinstance(s, str) else s for s in shapes]
    if specimen.target == "ComplexSquare":
        arrays = [a + 1j * rng.standard_normal(a.shape) for a in arrays]
    target = getattr(module, specimen.target)
    if specimen.framework == "numpy":
        y = np.asarray(target(*arrays))
        found = getattr(module, str(specimen.grad))(*arrays, rng.standard_normal(y.shape))
        return list(found) if isinstance(found, tuple) else [found]
    if specimen.framework == "jax":
        import jax

        y, pull = jax.vjp(target, *(jax.numpy.asarray(a, dtype=np.float32) for a in arrays))
        return [np.round(np.asarray(g), 4) for g in pull(jax.numpy.asarray(rng.standard_normal(y.shape), np.float32))]
    torch: Any = module.torch
    given = [torch.tensor(a, requires_grad=True) if isinstance(a, np.ndarray) else a for a in arrays]
    y = target.apply(*given)
    u = rng.standard_normal(tuple(y.shape))
    y.backward(torch.tensor(u + 0j if specimen.target == "ComplexSquare" else u))
    return [np.asarray(t.grad) if t.grad is not None else np.zeros(t.shape) for t in given if hasattr(t, "grad")]


if __name__ == "__main__":
    main()
