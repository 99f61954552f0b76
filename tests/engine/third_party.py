"""Custom Functions of public packages, run with the framework named on the command line under the name `torch`.

`python third_party.py gradcli.engine PACKAGE...` (or `torch`) prints, for each of the packages' cases, values and
gradients as JSON. The packages are imported as they are installed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Case = Callable[[Any, Any], Any]


def take_the_place_of_torch(name: str) -> Any:
    """Import a framework and put it, and every module below it, into sys.modules as `torch`."""
    framework = importlib.import_module(name)
    if name != "torch":
        for key, module in list(sys.modules.items()):
            if key == name or key.startswith(name + "."):
                sys.modules["torch" + key[len(name) :]] = module
    return framework


def entmax(torch: Any) -> dict[str, Case]:
    activations = importlib.import_module("entmax.activations")
    roots = importlib.import_module("entmax.root_finding")
    losses = importlib.import_module("entmax.losses")
    return {
        "SparsemaxFunction": lambda x, _: activations.SparsemaxFunction.apply(x, -1, None),
        "SparsemaxFunction of the top 2": lambda x, _: activations.SparsemaxFunction.apply(x, 1, 2),
        "Entmax15Function": lambda x, _: activations.Entmax15Function.apply(x, 0, None),
        "EntmaxBisectFunction": lambda x, a: roots.EntmaxBisectFunction.apply(x, a[:, :1].abs() + 1.2, 1, 50, True),
        "SparsemaxBisectFunction": lambda x, _: roots.sparsemax_bisect(x, dim=-1),
        "NormmaxBisectFunction": lambda x, _: roots.normmax_bisect(x, alpha=3, dim=-1),
        "SparsemaxLossFunction": lambda x, _: losses.sparsemax_loss(x, torch.tensor([0, 2, 1])),
        "Entmax15LossFunction": lambda x, _: losses.entmax15_loss(x, torch.tensor([3, 2, 1])),
    }


def sparsemax(_: Any) -> dict[str, Case]:
    module = importlib.import_module("sparsemax")
    return {
        "SparsemaxFunction": lambda x, _: module.Sparsemax(dim=-1)(x),
        "SparsemaxFunction of three axes": lambda x, y: module.Sparsemax(dim=1)(x.unsqueeze(2) * y.unsqueeze(1)),
    }


def pytorch_revgrad(torch: Any) -> dict[str, Case]:
    module = importlib.import_module("pytorch_revgrad")
    return {
        "RevGrad": lambda x, y: module.RevGrad()(x * y) ** 2,
        "RevGrad with alpha": lambda x, y: module.RevGrad(alpha=0.5)(x.sin()) * y,
    }


def diffsort(_: Any) -> dict[str, Case]:
    functional = importlib.import_module("diffsort.functional")
    networks = importlib.import_module("diffsort.networks")

    def sorted_by(distribution: str) -> Case:
        def run(x: Any, _: Any) -> Any:
            network = networks.get_sorting_network("odd_even", 4, "cpu")
            return functional.sort(network, x, steepness=5.0, distribution=distribution)

        return run

    return {
        "NormalCDF": lambda x, _: functional.NormalCDF.apply(x, 0.7),
        **{f"sort, {name}": sorted_by(name) for name in ("gaussian", "logistic", "cauchy")},
    }


def torchdiffeq(torch: Any) -> dict[str, Case]:
    module = importlib.import_module("torchdiffeq")

    class Field(torch.nn.Module):  # type: ignore[misc]  # the framework is a parameter
        def __init__(self, weight: Any) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(weight.detach().clone())

        def forward(self, t: Any, y: Any) -> Any:
            return (y @ self.weight).tanh() * (1 + t)

    def adjoint(method: str) -> Case:
        def run(x: Any, y: Any) -> Any:
            field = Field(y.t() @ y * 0.2)
            times = torch.tensor([0.0, 0.4, 1.0], dtype=x.dtype)
            path = module.odeint_adjoint(field, x, times, rtol=1e-9, atol=1e-11, method=method)
            (path[-1] ** 2).sum().backward(retain_graph=True)
            return path, field.weight.grad

        return run

    return {f"OdeintAdjointMethod, {name}": adjoint(name) for name in ("dopri5", "rk4", "midpoint")}


def snntorch(_: Any) -> dict[str, Case]:
    place = importlib.util.find_spec("snntorch")
    assert place is not None
    assert place.submodule_search_locations
    path = Path(place.submodule_search_locations[0]) / "surrogate.py"
    spec = importlib.util.spec_from_file_location("snntorch_surrogate", path)
    assert spec is not None
    assert spec.loader is not None
    surrogate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(surrogate)
    return {
        "StraightThroughEstimator": lambda x, _: surrogate.StraightThroughEstimator.apply(x),
        "Triangular": lambda x, _: surrogate.Triangular.apply(x, 1),
        "FastSigmoid": lambda x, _: surrogate.FastSigmoid.apply(x, 25),
        "ATan": lambda x, _: surrogate.ATan.apply(x, 2.0),
        "Sigmoid": lambda x, _: surrogate.Sigmoid.apply(x, 25),
        "SparseFastSigmoid": lambda x, _: surrogate.SparseFastSigmoid.apply(x, 25, -0.1),
        "CustomSurrogate": lambda x, _: surrogate.custom_surrogate(lambda u, g, s: g * u.cos())(x),
    }


PACKAGES: dict[str, tuple[str, str, Callable[[Any], dict[str, Case]]]] = {
    "entmax": ("entmax", "1.3", entmax),
    "sparsemax": ("sparsemax", "0.1.9", sparsemax),
    "pytorch_revgrad": ("pytorch-revgrad", "0.2.0", pytorch_revgrad),
    "diffsort": ("diffsort", "0.2.0", diffsort),
    "torchdiffeq": ("torchdiffeq", "0.2.5", torchdiffeq),
    "snntorch": ("snntorch", "1.0.0", snntorch),
}


def outcome(torch: Any, case: Case) -> Any:
    """Return values and gradients of one case at fixed inputs."""
    source = np.random.default_rng(3)
    inputs = [torch.tensor(source.normal(size=(3, 4)), requires_grad=True) for _ in range(2)]
    result = case(*inputs)
    outputs = list(result) if isinstance(result, tuple) else [result]
    total = sum((output * (index + 1) * output.cos()).sum() for index, output in enumerate(outputs))
    found = torch.autograd.grad(total, inputs, allow_unused=True)
    return {
        "values": [output.detach().tolist() for output in outputs],
        "gradients": [None if entry is None else entry.tolist() for entry in found],
    }


def main(framework: str, *packages: str) -> None:
    """Print the outcomes of the packages' cases; the traceback of a package that raises."""
    torch = take_the_place_of_torch(framework)
    found: dict[str, Any] = {}
    for package in packages:
        try:
            cases = PACKAGES[package][2](torch)
            found[package] = {name: outcome(torch, case) for name, case in cases.items()}
        except Exception:
            found[package] = traceback.format_exc()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
