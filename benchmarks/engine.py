"""The embedded engine beside hand-written NumPy, HIPS autograd and PyTorch, in one process and one thread.

Run `OMP_NUM_THREADS=1 python benchmarks/engine.py`. Every workload is the same program for every library that is
installed; a figure is the least processor time of several runs, the libraries taking turns. Ratios are to gradcli's
engine. Hand-written NumPy does what the network needs and no more: it has no `.grad` to add to and to set to zero;
"numpy .grad" is the same with just that.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402  (after the number of threads is set)

from gradcli import engine  # noqa: E402  (as NumPy)

Workload = Callable[[], Any]
SIZES = (64, 1000, 100, 10)
RATE = 1e-6
STEPS = 500


def data(dtype: Any = np.float32) -> list[np.ndarray]:
    """Return x, y and both weights of the two-layer network."""
    source = np.random.default_rng(0)
    n, inputs, hidden, outputs = SIZES
    shapes = [(n, inputs), (n, outputs), (inputs, hidden), (hidden, outputs)]
    return [source.normal(size=shape).astype(dtype) for shape in shapes]


# --- the two-layer network
def network_numpy(dtype: Any = np.float32, kept: bool = False) -> float:
    x, y, w1, w2 = data(dtype)
    kept_w1, kept_w2 = np.zeros_like(w1), np.zeros_like(w2)
    rate = dtype(RATE)
    loss = 0.0
    for _ in range(STEPS):
        h = x.dot(w1)
        h_relu = np.maximum(h, 0)
        y_pred = h_relu.dot(w2)
        loss = np.square(y_pred - y).sum()
        grad_y_pred = 2 * (y_pred - y)
        grad_w2 = h_relu.T.dot(grad_y_pred)
        grad_h = grad_y_pred.dot(w2.T)
        grad_h[h < 0] = 0
        grad_w1 = x.T.dot(grad_h)
        if kept:
            kept_w1 += grad_w1
            kept_w2 += grad_w2
            grad_w1, grad_w2 = kept_w1, kept_w2
        w1 -= rate * grad_w1
        w2 -= rate * grad_w2
        if kept:
            kept_w1.fill(0)
            kept_w2.fill(0)
    return float(loss)


def network_tensors(torch: Any, dtype: Any = np.float32) -> float:
    x, y, w1, w2 = (torch.from_numpy(array) for array in data(dtype))
    w1.requires_grad_()
    w2.requires_grad_()
    loss = None
    for _ in range(STEPS):
        y_pred = x.mm(w1).clamp(min=0).mm(w2)
        loss = (y_pred - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            w1 -= RATE * w1.grad
            w2 -= RATE * w2.grad
            w1.grad.zero_()
            w2.grad.zero_()
    return float(loss.item())


def network_hips(autograd: Any) -> float:
    import autograd.numpy as anp

    x, y, w1, w2 = data()

    def objective(first: Any, second: Any) -> Any:
        return anp.sum((anp.dot(anp.maximum(anp.dot(x, first), 0), second) - y) ** 2)

    both = autograd.value_and_grad(objective, argnum=(0, 1))
    loss = 0.0
    for _ in range(STEPS):
        loss, (g1, g2) = both(w1, w2)
        w1 -= np.float32(RATE) * g1
        w2 -= np.float32(RATE) * g2
    return float(loss)


# --- a chain of 1,000 scalar operations
def chain_tensors(torch: Any) -> float:
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    y = x
    for _ in range(500):
        y = (y * 0.999).sin()
    y.backward()
    return float(x.grad.item())


def chain_hips(autograd: Any) -> float:
    import autograd.numpy as anp

    def objective(y: Any) -> Any:
        for _ in range(500):
            y = anp.sin(y * 0.999)
        return y

    return float(autograd.grad(objective)(0.5))


def chain_numpy() -> float:
    y, path = np.float64(0.5), []
    for _ in range(500):
        y = y * 0.999
        path.append(y)
        y = np.sin(y)
    g = 1.0
    for value in reversed(path):
        g = g * np.cos(value) * 0.999
    return float(g)


# --- overhead of small operations: 4 vectors of 3, 400 recorded operations forward and backward
def small_tensors(torch: Any) -> float:
    a, b = (torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64, requires_grad=True) for _ in range(2))
    y = a
    for _ in range(100):
        y = (y * b + a) * 0.5 - b
    y.sum().backward()
    return float(a.grad[0].item())


def small_hips(autograd: Any) -> float:
    def objective(a: Any, b: Any) -> Any:
        y = a
        for _ in range(100):
            y = (y * b + a) * 0.5 - b
        return y.sum()

    start = np.array([0.1, 0.2, 0.3])
    return float(autograd.grad(objective, argnum=(0, 1))(start, start)[0][0])


# --- forward only, no graph
def forward_tensors(torch: Any) -> float:
    a, b = (torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64) for _ in range(2))
    y = a
    for _ in range(100):
        y = (y * b + a) * 0.5 - b
    return float(y[0].item())


# --- a convolution net: 8 images of 3x20x20, two convolutions, pooling, a linear layer; 5 steps
def convolution_tensors(torch: Any) -> float:
    source = np.random.default_rng(1)
    functional = torch.nn.functional
    images = torch.from_numpy(source.normal(size=(8, 3, 20, 20)).astype(np.float32))
    labels = torch.from_numpy(source.integers(0, 10, 8))
    shapes = [(8, 3, 3, 3), (16, 8, 3, 3), (10, 16 * 8 * 8)]
    weights = [torch.from_numpy((source.normal(size=shape) * 0.1).astype(np.float32)) for shape in shapes]
    for weight in weights:
        weight.requires_grad_()
    loss = None
    for _ in range(5):
        hidden = functional.relu(functional.conv2d(images, weights[0]))
        hidden = functional.max_pool2d(functional.relu(functional.conv2d(hidden, weights[1])), 2)
        loss = functional.cross_entropy(hidden.reshape(8, -1).mm(weights[2].t()), labels)
        loss.backward()
        with torch.no_grad():
            for weight in weights:
                weight -= 0.01 * weight.grad
                weight.grad.zero_()
    return float(loss.item())


def workloads() -> dict[str, dict[str, Workload]]:
    """Return, for each workload, the libraries that run it here."""
    table: dict[str, dict[str, Workload]] = {
        "two-layer network, 500 steps": {
            "gradcli": lambda: network_tensors(engine),
            "numpy": network_numpy,
            "numpy .grad": lambda: network_numpy(kept=True),
        },
        "chain of 1,000 scalar nodes": {"gradcli": lambda: chain_tensors(engine), "numpy": chain_numpy},
        "400 small operations": {"gradcli": lambda: small_tensors(engine)},
        "400 small operations, no graph": {"gradcli": lambda: forward_tensors(engine)},
        "convolution net, 5 steps": {"gradcli": lambda: convolution_tensors(engine)},
        "the same network in float64": {
            "gradcli": lambda: network_tensors(engine, np.float64),
            "numpy": lambda: network_numpy(np.float64),
            "numpy .grad": lambda: network_numpy(np.float64, kept=True),
        },
    }
    names = list(table)
    if importlib.util.find_spec("autograd") is not None:
        import autograd

        for name, run in zip(names[:3], (network_hips, chain_hips, small_hips), strict=True):
            table[name]["autograd"] = lambda run=run: run(autograd)  # type: ignore[misc]  # run is bound now
    if importlib.util.find_spec("torch") is not None:
        torch = _torch()
        wide = functools.partial(network_tensors, dtype=np.float64)
        runs = (network_tensors, chain_tensors, small_tensors, forward_tensors, convolution_tensors, wide)
        for name, run in zip(names, runs, strict=True):
            table[name]["torch"] = lambda run=run: run(torch)  # type: ignore[misc]  # run is bound now
    return table


def _torch() -> ModuleType:
    import torch

    torch.set_num_threads(1)
    return torch


def measure(runs: dict[str, Workload], rounds: int, budget: float) -> dict[str, float]:
    """Return the least seconds of each library, which take turns until the budget is spent."""
    best = dict.fromkeys(runs, float("inf"))
    results = {name: run() for name, run in runs.items()}
    reference = results["gradcli"]
    for name, value in results.items():
        assert np.isclose(value, reference, rtol=2e-2), f"{name} computes {value}, gradcli {reference}"
    start = time.perf_counter()
    for _ in range(rounds):
        for name, run in runs.items():
            before = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - before)
        if time.perf_counter() - start > budget:
            break
    return best


def main() -> None:
    """Print one line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50, help="most rounds for each workload")
    parser.add_argument("--seconds", type=float, default=8.0, help="most seconds for each workload")
    parser.add_argument("--only", default="", help="run workloads whose name has this in it")
    given = parser.parse_args()
    for name, runs in workloads().items():
        if given.only not in name:
            continue
        best = measure(runs, given.rounds, given.seconds)
        ours = best["gradcli"]
        others = "   ".join(
            f"{other} {seconds * 1e3:9.3f} ms (gradcli takes {ours / seconds:5.2f}x)"
            for other, seconds in best.items()
            if other != "gradcli"
        )
        print(f"{name:32s} gradcli {ours * 1e3:9.3f} ms   {others}")


if __name__ == "__main__":
    main()
