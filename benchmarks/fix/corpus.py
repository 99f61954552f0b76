"""Planted mistakes for `gradcli fix`: right Functions as text, and in each the places where people go wrong.

A mistake is (kind, what is right, what stands there instead, the names a check may give). The
same text serves the engine and PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.fix.engineering import ENGINEERING
from benchmarks.fix.ordinary import FUNCTIONS, JAX, NUMPY

HEADERS = {
    "engine": "from gradcli import engine as torch\nfrom gradcli.engine.autograd import Function\n\n\n",
    "torch": "import torch\nfrom torch.autograd import Function\n\n\n",
    "jax": "import jax\nimport jax.numpy as jnp\n\n\n",
    "numpy": "import numpy as np\n\n\n",
}


@dataclass(frozen=True)
class Specimen:
    """A file with one mistake beside the file without it; `target` is its name, `grad` that of a NumPy gradient.

    `inputs` describes them as in benchmarks/fix/engineering; empty where they are to be inferred.
    """

    name: str
    kind: str
    framework: str
    target: str
    right: str
    wrong: str
    names: frozenset[str]
    grad: str | None = None
    inputs: str = ""


_ALSO_TRUE = {
    "axis": "wrong-reduction",
    "reduction": "wrong-reduction",
    "reduction axis": "wrong-reduction swapped-gradients",
    "index": "wrong-shift",
    "transposition": "transposed",
    "unneeded": "wrong-arity",
    "mask": "wrong-factor wrong-entries nonlinear-backward",
    "region": "wrong-factor wrong-entries",
}
"""What a mistake of a kind may be called as well; of others, another factor where nothing more was known."""


def specimens() -> Iterator[Specimen]:
    """Every mistake: in a Function of the engine and of PyTorch, and in functions of JAX and NumPy."""
    for framework in ("engine", "torch"):
        for name, (body, mistakes) in FUNCTIONS.items():
            text = f"{HEADERS[framework]}class {name}(Function):{body}"
            yield from _planted(framework, name, text, mistakes)
    for name, (inputs, body, mistakes) in ENGINEERING.items():
        text = f"{HEADERS['torch']}class {name}(Function):{body}"
        yield from _planted("torch", name, text, mistakes, inputs=inputs)
    for name, (body, mistakes) in JAX.items():
        yield from _planted("jax", name, HEADERS["jax"] + body, mistakes)
    for name, (body, mistakes) in NUMPY.items():
        yield from _planted("numpy", name, HEADERS["numpy"] + body, mistakes, grad=f"{name}_vjp")


def _planted(
    framework: str,
    name: str,
    right: str,
    mistakes: list[tuple[str, str, str, str]],
    grad: str | None = None,
    inputs: str = "",
) -> Iterator[Specimen]:
    for number, (kind, good, bad, names) in enumerate(mistakes):
        place = right.rindex(good)
        wrong = right[:place] + bad + right[place + len(good) :]
        label = f"{framework}-{name}-{number}-{kind.replace(' ', '_')}"
        names = " ".join((names, _ALSO_TRUE.get(kind, "wrong-factor" if "wrong-gradient" in names else "")))
        yield Specimen(label, kind, framework, name, right, wrong, frozenset(names.split()), grad, inputs)
