"""How many planted mistakes are named and patched, how long that takes, and whether a patch is ever wrong.

Run: python -m benchmarks.fix.run [TEXT] [--stride N] [--names] [-v]

TEXT chooses specimens by name; "torch-" those of PyTorch alone. With --names nothing is patched. A patch counts as
right where the patched Function gives the gradients of the right one at inputs that the search has not seen.
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.fix.corpus import Specimen, specimens
from gradcli.cases import CheckSpec, InputsFrom, InputSpec
from gradcli.diagnosis.naming import name_findings
from gradcli.fix.examine import examined, sentences
from gradcli.fix.outcome import fixed
from gradcli.fix.search import SECONDS
from gradcli.inputs.builders import build
from gradcli.patches import FixResult, Patch
from gradcli.runner.arguments.prepare import prepared
from gradcli.runner.planning.plan import CheckCase, plan
from gradcli.settings import Settings
from gradcli.spec.resolve import resolve

_SIZES = {"n": 3, "m": 4, "k": 2, "l": 5}


def main() -> None:
    """Print a line for each specimen and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--names", action="store_true", help="name the mistakes, and look for no patch")
    parser.add_argument("-v", action="store_true", help="show the patches")
    options = parser.parse_args()
    chosen = [s for s in specimens() if options.text in s.name][:: options.stride]
    tally: Counter[str] = Counter()
    seconds = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for specimen in chosen:
            result, spent = (named if options.names else patched)(specimen, Path(folder))
            seconds.append(spent)
            told = judged(specimen, result, Path(folder))
            tally.update(told)
            first = result.sentences[0].rpartition("[")[2].rstrip("]") if result.sentences else result.verdict.value
            print(f"{specimen.name:44s} {spent:6.2f} s  {first:24s} {' '.join(sorted(told))}", flush=True)
            if options.v:
                _show(result)
    print(f"{len(chosen)} specimens: {', '.join(f'{what} {count}' for what, count in sorted(tally.items()))}")
    print(f"processor time: median {statistics.median(seconds):.2f} s, most {max(seconds):.2f} s")


def _show(result: FixResult) -> None:
    for sentence in result.sentences:
        print(f"    {sentence}")
    for line in () if result.patch is None else result.patch.diff().splitlines():
        if line[:1] in "+-" and line[:3] not in ("+++", "---"):
            print(f"    {line}")


def case_of(specimen: Specimen, folder: Path) -> tuple[CheckCase, object]:
    """The case for the wrong file, which is written into the folder, and its target."""
    file = folder / f"{specimen.name.replace('-', '_')}.py"
    file.write_text(specimen.wrong)
    grad = None if specimen.grad is None else f"{file}:{specimen.grad}"
    target = f"{file}:{specimen.target}"
    spec = CheckSpec(target=target, grad=grad)
    if specimen.target == "ComplexSquare":  # real inputs, which would be inferred, have no conjugate
        z = InputSpec(name="z", shape=(3, 4), dtype="complex128")
        spec = spec.with_inputs((z,), InputsFrom.FLAGS)
    if specimen.inputs:
        spec = spec.with_inputs(
            inputs_of(specimen.inputs, dict(zip("nmkl", (3, 4, 2, 5), strict=True))), InputsFrom.FLAGS
        )
    (case,) = plan([spec], Settings())
    return case, resolve(target).object


def inputs_of(text: str, sizes: Mapping[str, int]) -> tuple[InputSpec, ...]:
    """The inputs that a description means."""
    found = []
    for part in text.split():
        name, _, rest = part.partition("=")
        if rest[0].isdigit() and "." in rest:
            found.append(InputSpec(name=name, kind="value", value=float(rest)))
            continue
        kind, _, letters = rest.rpartition(":")
        letters, _, below = letters.partition("/")
        shape = tuple(sizes.get(letter) or int(letter) for letter in letters)
        found.append(_input(name, kind, shape, sizes.get(below, 0)))
    return tuple(found)


def _input(name: str, kind: str, shape: tuple[int, ...], below: int) -> InputSpec:
    if kind == "idx":
        return InputSpec(
            name=name, shape=shape, dtype="int64", domain="indices", parameters=(("high", below),), requires_grad=False
        )
    if kind == "bool":
        return InputSpec(name=name, shape=shape, dtype="bool", domain="boolean", requires_grad=False)
    if kind == "unit":
        return InputSpec(name=name, shape=shape, domain="open-interval", parameters=(("lo", 0.1), ("hi", 0.9)))
    domain = {"pos": "positive", "spd": "spd", "distinct": "distinct"}.get(kind, "normal")
    return InputSpec(name=name, shape=shape, domain=domain)


def named(specimen: Specimen, folder: Path) -> tuple[FixResult, float]:
    """What the check says of the wrong file, with the correction that the name rests on, and the time for the name."""
    case, found = case_of(specimen, folder)
    ready = prepared(found, case)
    spent: list[float] = []

    def timed(*arguments: Any, **keywords: Any) -> Any:
        began = time.process_time()
        try:
            return name_findings(*arguments, **keywords | {"corrections": False})
        finally:
            spent.append(time.process_time() - began)

    with mock.patch("gradcli.fix.examine.name_findings", timed):
        seen = examined(ready)
    texts = {f.corrected for f in seen.findings}
    corrected = texts.pop() if len(texts) == 1 else None  # of several mistakes each text corrects one
    file = str(folder / f"{specimen.name.replace('-', '_')}.py")
    patch = None if corrected is None else Patch(file=file, before=specimen.wrong, after=corrected, proven=())
    result = FixResult(target=case.spec.case_id, verdict=seen.verdict, sentences=sentences(seen.findings), patch=patch)
    return result, sum(spent)


def patched(specimen: Specimen, folder: Path) -> tuple[FixResult, float]:
    """The outcome for the wrong file, and the processor time it took."""
    case, found = case_of(specimen, folder)
    began = time.process_time()
    result = fixed(prepared(found, case), found, case.spec.case_id, ends=began + SECONDS)
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
        try:
            one, other = (_gradients(specimen, module, seed, np.random.default_rng([7, seed])) for module in modules)
        except Exception:  # as a wrong patch may do at other sizes
            return False
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
    if specimen.inputs:
        arguments = build(inputs_of(specimen.inputs, sizes), seed=seed)
        return _torch_gradients(module, specimen.target, [a.value for a in arguments], rng)
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
    return _torch_gradients(module, specimen.target, arrays, rng)


def _torch_gradients(module: Any, target: str, arrays: list[Any], rng: np.random.Generator) -> list[Any]:
    torch: Any = module.torch
    given = [_leaf(torch, a) if isinstance(a, np.ndarray) else a for a in arrays]
    y = getattr(module, target).apply(*given)
    u = rng.standard_normal(tuple(y.shape))
    y.backward(torch.tensor(u + 0j if target == "ComplexSquare" else u))
    tracked = [t for t in given if hasattr(t, "grad") and t.requires_grad]
    return [np.asarray(t.grad) if t.grad is not None else np.zeros(t.shape) for t in tracked]


def _leaf(torch: Any, array: Any) -> Any:
    return torch.tensor(array, requires_grad=array.dtype.kind in "fc")


if __name__ == "__main__":
    main()
