"""Layers and optimisers with the same weights give PyTorch's outputs, gradients and steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these layers is PyTorch")

LAYERS: dict[str, tuple[Callable[[Any], Any], list[tuple[int, ...]]]] = {
    "Linear": (lambda nn: nn.Linear(3, 4), [(2, 3)]),
    "Bilinear": (lambda nn: nn.Bilinear(3, 4, 2), [(5, 3), (5, 4)]),
    "Conv1d": (lambda nn: nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), [(2, 2, 7)]),
    "Conv2d": (lambda nn: nn.Conv2d(2, 3, (2, 3), dilation=2), [(1, 2, 5, 7)]),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(2, 3, 3, 2, 1, 1, dilation=2), [(2, 2, 4)]),
    "ConvTranspose2d": (lambda nn: nn.ConvTranspose2d(2, 4, 3, 2, 1, groups=2), [(1, 2, 3, 4)]),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(3), [(4, 3)]),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(2, momentum=0.3), [(2, 2, 3, 3)]),
    "LayerNorm without a bias": (lambda nn: nn.LayerNorm((3, 2), bias=False), [(2, 3, 2)]),
    "LayerNorm": (lambda nn: nn.LayerNorm((3, 2)), [(2, 3, 2)]),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), [(2, 4, 3)]),
    "RNNCell": (lambda nn: nn.RNNCell(3, 4), [(2, 3), (2, 4)]),
    "GRUCell": (lambda nn: nn.GRUCell(3, 4), [(2, 3), (2, 4)]),
    "PReLU": (lambda nn: nn.PReLU(3), [(2, 3, 2)]),
    "RReLU": (lambda nn: nn.RReLU(0.2, 0.2), [(2, 3)]),
    "RReLU in evaluation": (lambda nn: nn.RReLU().eval(), [(2, 3)]),
    "LPPool1d": (lambda nn: nn.LPPool1d(2, 3, stride=1), [(1, 2, 6)]),
    "LPPool1d to the end": (lambda nn: nn.LPPool1d(2, 4, ceil_mode=True), [(2, 2, 6)]),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(2), [(1, 2, 4, 4)]),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(2, stride=1, padding=1), [(1, 2, 4, 4)]),
    "Sequential": (lambda nn: nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), [(2, 3)]),
}


def twins(make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return one module on both frameworks, in float64 and with the same state."""
    theirs = make(torch.nn).double()
    ours = make(engine.nn).double()
    state = {name: engine.tensor(value.numpy().copy()) for name, value in theirs.state_dict().items()}
    missing, unexpected = ours.load_state_dict(state)
    assert not missing
    assert not unexpected
    return ours, theirs


def outputs(namespace: Any, module: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return results, and gradients of inputs and parameters."""
    tensors = [namespace.tensor(array, requires_grad=True) for array in arrays]
    result = module(*tensors)
    results = [entry for entry in (result if isinstance(result, tuple) else (result,)) if entry is not None]
    sum((entry * entry).sum() + entry.sum() for entry in results).backward()
    found = results + [t.grad for t in tensors] + [p.grad for p in module.parameters()] + list(module.buffers())
    return [entry.detach().numpy() for entry in found]


def agree(make: Callable[[Any], Any], arrays: list[np.ndarray]) -> None:
    ours, theirs = twins(make)
    for mine, reference in zip(outputs(engine, ours, arrays), outputs(torch, theirs, arrays), strict=True):
        assert mine.shape == reference.shape
        np.testing.assert_allclose(mine, reference, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_layer_agrees(name: str) -> None:
    make, shapes = LAYERS[name]
    source = np.random.default_rng(0)
    agree(make, [source.normal(size=shape) for shape in shapes])


def test_lstm_cell_agrees() -> None:
    ours, theirs = twins(lambda nn: nn.LSTMCell(3, 4))
    x, h, c = (np.random.default_rng(0).normal(size=shape) for shape in ((2, 3), (2, 4), (2, 4)))
    mine = ours(engine.tensor(x), (engine.tensor(h), engine.tensor(c)))
    reference = theirs(torch.tensor(x), (torch.tensor(h), torch.tensor(c)))
    for a, b in zip(mine, reference, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"kdim": 3, "vdim": 5}, {"bias": False}])
def test_attention_agrees(options: dict[str, Any]) -> None:
    sizes = options.get("kdim", 4), options.get("vdim", 4)
    source = np.random.default_rng(1)
    arrays = [source.normal(size=(3, 2, 4)), source.normal(size=(3, 2, sizes[0])), source.normal(size=(3, 2, sizes[1]))]
    agree(lambda nn: nn.MultiheadAttention(4, 2, **options), arrays)


@pytest.mark.parametrize("weights", ["average", "each", "none"])
def test_masked_attention_agrees(weights: str) -> None:
    ours, theirs = twins(lambda nn: nn.MultiheadAttention(4, 2))
    x = np.random.default_rng(2).normal(size=(3, 2, 4))
    causal, padding = np.triu(np.ones((3, 3), dtype=bool), 1), np.array([[False, False, True], [False, False, False]])
    results = []
    for namespace, module in ((engine, ours), (torch, theirs)):
        given = namespace.tensor(x)
        result = module(
            given, given, given, key_padding_mask=namespace.tensor(padding), attn_mask=namespace.tensor(causal),
            need_weights=weights != "none", average_attn_weights=weights == "average",
        )  # fmt: skip
        results.append([None if entry is None else entry.detach().numpy() for entry in result])
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-9)
    assert (results[0][1] is None) == (results[1][1] is None)
    if results[0][1] is not None:
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-9)


def test_an_embedding_with_a_padding_row_agrees() -> None:
    ours, theirs = twins(lambda nn: nn.Embedding(4, 3, padding_idx=1))
    index = [[0, 1], [3, 3]]
    for namespace, module in ((engine, ours), (torch, theirs)):
        (module(namespace.tensor(index)) ** 2).sum().backward()
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy())


@pytest.mark.parametrize(
    "options", [{"max_norm": 0.5}, {"max_norm": 0.5, "norm_type": 1}, {"scale_grad_by_freq": True}]
)
def test_an_embedding_with_options_agrees(options: dict[str, Any]) -> None:
    ours, theirs = twins(lambda nn: nn.Embedding(4, 3, padding_idx=2, **options))
    assert repr(ours) == repr(theirs)
    index = [[0, 1, 2], [3, 3, 0]]
    for namespace, module in ((engine, ours), (torch, theirs)):
        (module(namespace.tensor(index)) ** 2).sum().backward()
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy())
    np.testing.assert_allclose(ours.weight.grad.numpy(), theirs.weight.grad.numpy())


OPTIMISERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda o, p: o.SGD(p, lr=0.1),
    "SGD, Nesterov": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda o, p: o.Adam(p, lr=0.1),
    "Adam, amsgrad": lambda o, p: o.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda o, p: o.AdamW(p, lr=0.1),
    "Adagrad": lambda o, p: o.Adagrad(p, lr=0.1),
    "Adagrad, decaying": lambda o, p: o.Adagrad(
        p, lr=0.1, lr_decay=0.3, weight_decay=0.1, initial_accumulator_value=0.5, maximize=True
    ),
    "RMSprop": lambda o, p: o.RMSprop(p, lr=0.05),
    "RMSprop, centered": lambda o, p: o.RMSprop(p, lr=0.05, momentum=0.5, centered=True),
    "Adadelta": lambda o, p: o.Adadelta(p, lr=0.5, weight_decay=0.1),
    "Adamax": lambda o, p: o.Adamax(p, lr=0.1, maximize=True),
    "NAdam": lambda o, p: o.NAdam(p, lr=0.1, momentum_decay=0.1, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam": lambda o, p: o.RAdam(p, lr=0.1, betas=(0.8, 0.7)),
    "Rprop": lambda o, p: o.Rprop(p, lr=0.1, step_sizes=(1e-2, 0.3)),
    "LBFGS": lambda o, p: o.LBFGS(p, lr=0.5, max_iter=4),
    "LBFGS, few evaluations": lambda o, p: o.LBFGS(p, max_iter=6, max_eval=3, history_size=2),
    "LBFGS, line search": lambda o, p: o.LBFGS(p, line_search_fn="strong_wolfe"),
    "LBFGS, short line search": lambda o, p: o.LBFGS(p, lr=5, max_iter=3, line_search_fn="strong_wolfe"),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimiser_agrees(name: str) -> None:
    source = np.random.default_rng(3)
    start, x, y = source.normal(size=(3, 2)), source.normal(size=(5, 3)), source.normal(size=(5, 2))
    paths = []
    for namespace in (engine, torch):
        weight = namespace.tensor(start.copy(), requires_grad=True)
        optimiser = OPTIMISERS[name](namespace.optim, [weight])
        inputs, targets = namespace.tensor(x), namespace.tensor(y)

        def closure(o: Any = optimiser, w: Any = weight, a: Any = inputs, b: Any = targets) -> Any:
            o.zero_grad()
            loss = ((a.mm(w).tanh() - b) ** 2).sum()
            loss.backward()
            return loss

        path = []
        for _ in range(6):
            loss = optimiser.step(closure)
            path.append([float(loss.item()), *weight.detach().numpy().ravel().tolist()])
        paths.append(path)
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in OPTIMISERS if "LBFGS" not in name and name != "Adamax"])
def test_a_complex_parameter_takes_the_steps_of_its_parts(name: str) -> None:
    found = []
    for namespace in (engine, torch):
        point = namespace.tensor([1 + 2j, -0.5 + 0.1j], dtype=namespace.complex128, requires_grad=True)
        optimiser = OPTIMISERS[name](namespace.optim, [point])
        for _ in range(4):
            optimiser.zero_grad()
            ((point - 1j) ** 2 * point.conj()).real.sum().backward()
            optimiser.step()
        state = optimiser.state_dict()["state"].get(0, {})
        kept = {name: value.is_complex() for name, value in state.items() if getattr(value, "ndim", 0)}
        found.append((point.detach().numpy(), {key: kept[key] for key in sorted(kept)}))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    if "RMSprop" not in name:  # the engine's has a state for each option
        assert found[0][1] == found[1][1]


@pytest.mark.parametrize("rate", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("start", [(-1.2, 1.0), (2.0, -3.0)])
def test_line_searches_down_a_curved_valley_agree(rate: float, start: tuple[float, float]) -> None:
    paths = []
    for namespace in (engine, torch):
        point = namespace.tensor(start, dtype=namespace.float64, requires_grad=True)
        optimiser = namespace.optim.LBFGS([point], lr=rate, max_iter=15, line_search_fn="strong_wolfe")
        losses: list[float] = []

        def closure(o: Any = optimiser, p: Any = point, seen: list[float] = losses) -> Any:
            o.zero_grad()
            loss = (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2
            loss.backward()
            seen.append(float(loss.item()))
            return loss

        for _ in range(2):
            optimiser.step(closure)
        paths.append(losses)
    assert len(paths[0]) > 10
    np.testing.assert_allclose(paths[0][:12], paths[1][:12], rtol=1e-6)
    assert min(paths[0]) < max(1e-3, 2 * min(paths[1]))


def test_another_line_search_is_refused() -> None:
    for namespace in (engine, torch):
        point = namespace.ones(2, requires_grad=True)
        optimiser = namespace.optim.LBFGS([point], line_search_fn="armijo")

        def closure(p: Any = point) -> Any:
            loss = (p**2).sum()
            loss.backward()
            return loss

        with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
            optimiser.step(closure)


def test_hooks_of_every_module_agree() -> None:
    logs = []
    for namespace in (engine, torch):
        module_hooks = __import__(namespace.__name__ + ".nn.modules.module", fromlist=["x"])
        log: list[Any] = []
        handles = [
            module_hooks.register_module_forward_pre_hook(lambda m, a, log=log: log.append(("pre", type(m).__name__))),
            module_hooks.register_module_forward_hook(lambda m, a, o, log=log: log.append(("fwd", type(m).__name__))),
            module_hooks.register_module_full_backward_pre_hook(
                lambda m, g, log=log: log.append(("bwd pre", type(m).__name__, len(g)))
            ),
            module_hooks.register_module_full_backward_hook(
                lambda m, gi, go, log=log: log.append(("bwd", type(m).__name__, len(gi), len(go)))
            ),
        ]
        net = namespace.nn.Sequential(namespace.nn.Linear(2, 3), namespace.nn.Tanh())
        net[0].register_full_backward_hook(lambda m, gi, go, log=log: log.append("own"))
        try:
            net(namespace.ones(1, 2, requires_grad=True)).sum().backward()
        finally:
            for handle in handles:
                handle.remove()
        net(namespace.ones(1, 2)).sum()
        logs.append(log)
    assert logs[0] == logs[1]
