"""False alarms on correct awkward Functions: NumPy maps and PyTorch Functions, with and without a witness.

Run: python benchmarks/alarms.py [SEEDS]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gradcli.numerics.vector_map import VectorMap
from gradcli.numerics.verify import Outcome, verify
from tests.numerics.cases import AWKWARD, space

Array = npt.NDArray[np.float64]
Body = Callable[[Any], Any]

DRAWS: dict[str, Callable[[np.random.Generator], Array]] = {
    "normal": lambda rng: rng.standard_normal(6),
    "positive": lambda rng: np.abs(rng.standard_normal(6)) + 0.1,
    "small": lambda rng: 1e-8 * rng.standard_normal(6),
    "large": lambda rng: 30 * rng.standard_normal(6),
    "wide": lambda rng: rng.standard_normal(6) * 10.0 ** rng.integers(-6, 4, 6),
    "zeros": lambda rng: np.where(rng.random(6) < 0.5, 0.0, rng.standard_normal(6)),
    "ties": lambda rng: rng.integers(-1, 2, 6).astype(float),
    "whole": lambda rng: rng.integers(-3, 4, 6) + 0.5,
}


def _matrix(x: Any) -> Any:
    return x.reshape(2, 3) @ x.reshape(2, 3).T + 0.5 * torch.eye(2, dtype=x.dtype)


BODIES: dict[str, tuple[Body, tuple[str, ...]]] = {
    "relu": (torch.relu, ("normal", "small", "zeros", "ties")),
    "leaky relu": (lambda x: torch.nn.functional.leaky_relu(x, 0.1), ("normal", "wide", "zeros")),
    "absolute value": (torch.abs, ("normal", "zeros")),
    "clamp": (lambda x: x.clamp(-1, 1), ("normal", "large", "ties")),
    "hard sigmoid": (torch.nn.functional.hardsigmoid, ("normal", "large")),
    "hard tanh": (torch.nn.functional.hardtanh, ("normal", "large")),
    "soft shrink": (torch.nn.functional.softshrink, ("normal", "whole")),
    "hard shrink": (torch.nn.functional.hardshrink, ("normal", "whole")),
    "elu": (torch.nn.functional.elu, ("normal", "large", "zeros")),
    "gelu": (torch.nn.functional.gelu, ("normal", "large")),
    "softplus": (torch.nn.functional.softplus, ("normal", "large", "small")),
    "log sigmoid": (torch.nn.functional.logsigmoid, ("normal", "large")),
    "log softmax": (lambda x: torch.log_softmax(x, 0), ("normal", "large", "wide")),
    "softmax": (lambda x: torch.softmax(x, 0), ("normal", "large", "ties")),
    "log of sum of exp": (lambda x: torch.logsumexp(x, 0), ("normal", "large")),
    "sort": (lambda x: torch.sort(x)[0], ("normal", "ties", "small")),
    "maximum": (lambda x: x.max(), ("normal", "ties")),
    "amax": (lambda x: x.amax(), ("normal", "ties")),
    "median": (lambda x: x.median(), ("normal", "ties")),
    "cumulative maximum": (lambda x: torch.cummax(x, 0)[0], ("normal", "ties")),
    "top two": (lambda x: torch.topk(x, 2)[0], ("normal", "ties")),
    "max pool": (lambda x: torch.nn.functional.max_pool1d(x[None], 2)[0], ("normal", "ties")),
    "floor": (torch.floor, ("normal", "whole")),
    "sign": (torch.sign, ("normal", "zeros")),
    "fraction": (torch.frac, ("normal", "whole")),
    "norm": (lambda x: x.norm(), ("normal", "small", "zeros")),
    "one norm": (lambda x: x.norm(p=1), ("normal", "zeros")),
    "largest magnitude": (lambda x: x.norm(p=float("inf")), ("normal", "ties")),
    "normalised": (lambda x: x / (x.norm() + 1e-12), ("normal", "small", "large")),
    "variance": (lambda x: (x + 1e4).var(), ("normal", "small")),
    "layer norm": (lambda x: torch.nn.functional.layer_norm(x, (6,)), ("normal", "small", "large")),
    "product": (torch.prod, ("normal", "zeros", "wide")),
    "cumulative product": (lambda x: torch.cumprod(x, 0), ("normal", "zeros")),
    "logarithm": (torch.log, ("positive",)),
    "log1p": (torch.log1p, ("positive", "small")),
    "expm1": (torch.expm1, ("normal", "small")),
    "square root": (torch.sqrt, ("positive",)),
    "reciprocal": (torch.reciprocal, ("normal", "wide")),
    "power": (lambda x: x.abs() ** 1.3, ("normal", "wide")),
    "tail of erf": (torch.erfc, ("normal", "large")),
    "log gamma": (torch.lgamma, ("positive",)),
    "digamma": (torch.digamma, ("positive",)),
    "Bessel": (torch.special.i0e, ("normal", "large")),
    "sinc": (torch.sinc, ("normal", "small", "zeros")),
    "fast sine": (lambda x: torch.sin(1e4 * x), ("normal",)),
    "atan2": (lambda x: torch.atan2(x[:3], x[3:]), ("normal", "wide")),
    "determinant": (lambda x: torch.linalg.det(_matrix(x)), ("normal", "small")),
    "inverse": (lambda x: torch.linalg.inv(_matrix(x)), ("normal", "large")),
    "Cholesky": (lambda x: torch.linalg.cholesky(_matrix(x)), ("normal",)),
    "eigenvalues": (lambda x: torch.linalg.eigvalsh(_matrix(x)), ("normal", "zeros")),
    "singular values": (lambda x: torch.linalg.svdvals(x.reshape(2, 3)), ("normal",)),
    "logarithm of det": (lambda x: torch.logdet(_matrix(x)), ("normal", "large")),
    "Huber": (lambda x: torch.nn.functional.huber_loss(x, torch.zeros_like(x)), ("normal", "large", "whole")),
    "smooth l1": (lambda x: torch.nn.functional.smooth_l1_loss(x, x * 0 + 1), ("normal", "whole")),
    "hinge": (lambda x: (1 - x).clamp(min=0).sum(), ("normal", "ties")),
    "cross entropy": (lambda x: torch.nn.functional.cross_entropy(x[None], torch.tensor([2])), ("normal", "large")),
    "where": (lambda x: torch.where(x > 0, 2 * x, 3 * x), ("normal", "zeros", "small")),
    "float32 sine": (lambda x: torch.sin(x.float()).double(), ("normal",)),
    "float32 matrix": (lambda x: (_matrix(x).float() @ _matrix(x).float()).double(), ("normal",)),
    "offset": (lambda x: 1e8 + torch.sin(x), ("normal",)),
    "cancelling": (lambda x: (1 - torch.cos(x)) / x**2, ("normal",)),
}


class BodyMap(VectorMap):
    """A PyTorch body with its own gradient, exact in float64, as claim and as witness."""

    def __init__(self, body: Body, x: Array) -> None:
        self.body = body
        self.domain = space(x.shape)
        self.codomain = space((self.value(x).size,))

    def value(self, x: Array) -> Array:
        """The body."""
        with torch.no_grad():
            return np.asarray(self.body(torch.from_numpy(np.array(x))).reshape(-1).numpy(), dtype=np.float64)

    def vjp(self, x: Array, cotangent: Array) -> Array:
        """Autodiff of the body."""
        leaf = torch.from_numpy(np.array(x)).requires_grad_()
        output = self.body(leaf).reshape(-1)
        (gradient,) = torch.autograd.grad(output, leaf, torch.from_numpy(np.array(cotangent)))
        return np.asarray(gradient.numpy())


def functions(seed: int) -> Iterator[tuple[str, VectorMap, Array]]:
    """Every correct map of this benchmark with its point."""
    for case in AWKWARD:
        yield f"numpy: {case.name}", case.map(), case.x
    for name, (body, draws) in BODIES.items():
        for draw in draws:
            x = DRAWS[draw](np.random.default_rng([seed, *name.encode(), *draw.encode()]))
            yield f"torch: {name}, {draw}", BodyMap(body, x), x


def main() -> None:
    """Print the counts, and every alarm."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    started, counts, doubts = time.perf_counter(), Counter[tuple[bool, str]](), Counter[str]()
    total = 0
    for seed in range(seeds):
        for name, map_, x in functions(seed):
            for witnessed in (False, True):
                with np.errstate(all="ignore"):
                    found = verify(map_, x, seed=seed, witness=map_ if witnessed else None).blocks
                worst = max(found, key=lambda b: [Outcome.AGREES, Outcome.UNDECIDED, Outcome.DIFFERS].index(b.outcome))
                counts[witnessed, worst.outcome.value] += 1
                total += 1
                if worst.outcome is Outcome.DIFFERS or worst.special is not None:
                    print(f"  ALARM: {name}, seed {seed}, witness {witnessed}: {worst.note} {worst.special}")
                elif worst.outcome is Outcome.UNDECIDED and worst.doubt is not None:
                    doubts[f"{name}: {worst.doubt.value}, {'with' if witnessed else 'without'} witness"] += 1
    print(f"{total // seeds // 2} correct maps, {seeds} seeds, {time.perf_counter() - started:.0f} s")
    for (witnessed, outcome), count in sorted(counts.items()):
        print(f"{'with' if witnessed else 'without'} witness: {outcome} {count}")
    for text, count in sorted(doubts.items()):
        print(f"  undecided {count} of {seeds}: {text}")


if __name__ == "__main__":
    main()
