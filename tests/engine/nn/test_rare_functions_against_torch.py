"""Losses of sequences and labels, bags of embeddings, unpooling and weight normalisation agree at awkward inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli import engine

torch = pytest.importorskip("torch", reason="the reference for these functions is PyTorch")


def outcome(case: Callable[[Any, Any], Any], t: Any, array: np.ndarray) -> Any:
    """Return values and gradients of a random sum of them; or the class of the error and its text."""
    point = t.tensor(array, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = case(t, point)
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0]
        weights = np.cos(np.arange(value.numel())).reshape(tuple(value.shape))
        (gradient,) = t.autograd.grad(value, point, t.tensor(weights))
    return value.detach().numpy(), gradient.numpy()


def ctc(targets: Any = ((1, 2, 2), (3, 1, 0)), inputs: Any = (6, 5), lengths: Any = (3, 2), **options: Any) -> Any:
    def run(t: Any, x: Any) -> Any:
        logs = x.log_softmax(-1) if options.get("logits", True) else x
        rest = {name: value for name, value in options.items() if name != "logits"}
        return t.nn.functional.ctc_loss(logs, t.tensor(targets), inputs, lengths, **rest)

    return run


def labels(rows: Any, reduction: str = "mean") -> Any:
    return lambda t, x: t.nn.functional.multilabel_margin_loss(x, t.tensor(rows), reduction=reduction)


def bag(indices: Any, offsets: Any = None, **options: Any) -> Any:
    def run(t: Any, x: Any) -> Any:
        return t.nn.functional.embedding_bag(
            t.tensor(indices), x, None if offsets is None else t.tensor(offsets), **options
        )

    return run


def unpooled(size: int, stride: int, padding: int, output: Any = None) -> Any:
    def run(t: Any, x: Any) -> Any:
        values, places = t.nn.functional.max_pool2d(x, size, stride, padding, return_indices=True)
        return t.nn.functional.max_unpool2d(values, places, size, stride, padding, output)

    return run


SEQUENCE, TABLE, IMAGE = (6, 2, 4), (5, 3), (1, 2, 5, 4)
CASES: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = {
    **{f"ctc, {kind}": (ctc(reduction=kind), SEQUENCE) for kind in ("mean", "sum", "none")},
    "ctc of what is no distribution": (ctc(reduction="none", logits=False), SEQUENCE),
    "ctc, one after the other": (ctc((1, 2, 2, 3, 1)), SEQUENCE),
    "ctc, another blank": (ctc(((1, 2, 2), (0, 1, 0)), blank=3), SEQUENCE),
    "ctc without an alignment": (ctc(inputs=(3, 5), reduction="none"), SEQUENCE),
    "ctc without an alignment, as zero": (ctc(inputs=(3, 5), zero_infinity=True), SEQUENCE),
    "ctc of no labels": (ctc(lengths=(0, 2)), SEQUENCE),
    "ctc of no steps": (ctc(inputs=(0, 5), lengths=(1, 2), reduction="none", zero_infinity=True), SEQUENCE),
    "ctc without a batch": (ctc((1, 2), (6,), (2,)), (6, 4)),
    "ctc, too few lengths": (ctc(inputs=(6,)), SEQUENCE),
    "ctc, too long": (ctc(inputs=(6, 7)), SEQUENCE),
    "ctc, too few labels": (ctc(lengths=(4, 2)), SEQUENCE),
    "ctc, no such blank": (ctc(blank=4), SEQUENCE),
    **{
        f"labels, {kind}": (labels(((3, 0, -1, 1), (-1, 0, 1, 2), (2, 2, 1, 0)), kind), (3, 4))
        for kind in ("mean", "sum", "none")
    },
    "labels of one example": (labels((3, 0, -1, 1)), (4,)),
    "labels of fewer examples": (labels(((3, 0, -1, 1),)), (3, 4)),
    **{f"bag, {mode}": (bag((0, 1, 1, 4, 2, 0, 3), (0, 2, 2, 5), mode=mode), TABLE) for mode in ("sum", "mean", "max")},
    "bag up to the last offset": (bag((0, 1, 1, 4), (0, 2, 4), include_last_offset=True), TABLE),
    "bag of two axes": (bag(((0, 1, 1), (4, 2, 0)), mode="max", padding_idx=-1), TABLE),
    "bag of an index too large": (bag((0, 5), (0,)), TABLE),
    "bag that begins later": (bag((0, 1), (1,)), TABLE),
    "bag without offsets": (bag((0, 1)), TABLE),
    "bag of another mode": (bag((0, 1), (0,), mode="min"), TABLE),
    "unpooled": (unpooled(2, 2, 0), IMAGE),
    "unpooled of overlapping windows": (unpooled(3, 2, 1, (5, 4)), IMAGE),
    "unpooled too large": (unpooled(2, 2, 0, (9, 9)), IMAGE),
    "bicubic, of one row": (lambda t, x: t.nn.functional.interpolate(x[:, :, :1], (3, 9), mode="bicubic"), IMAGE),
    "bicubic, of a batch too few": (lambda t, x: t.nn.functional.interpolate(x[0], 3, mode="bilinear"), IMAGE),
}


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_errors(name: str) -> None:
    case, shape = CASES[name]
    array = np.random.default_rng(1).normal(size=shape)
    ours, theirs = outcome(case, engine, array), outcome(case, torch, array)
    if isinstance(theirs[0], str):
        assert ours == theirs
    else:
        for mine, reference in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(mine, reference, rtol=1e-9, atol=1e-11)


def layer(t: Any, kind: str) -> Any:
    made = (t.nn.Conv1d(2, 3, 2) if kind == "convolution" else t.nn.Linear(2, 3)).double()
    with t.no_grad():
        for number, parameter in enumerate(made.parameters()):
            shape = tuple(parameter.shape)
            parameter.copy_(t.tensor(np.sin(np.arange(parameter.numel()) + number).reshape(shape)))
    return made


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("old", [False, True])
def test_weight_norm(kind: str, dim: int | None, old: bool) -> None:
    def program(t: Any) -> list[Any]:
        made = layer(t, kind)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (t.nn.utils if old else t.nn.utils.parametrizations).weight_norm(made, dim=dim)
        shape = (2, 2, 3) if kind == "convolution" else (6, 2)
        point = t.tensor(np.cos(np.arange(12.0)).reshape(shape))
        (made(point) ** 2).sum().backward()
        seen = [list(made.state_dict()), *(p.grad.tolist() for p in made.parameters()), made.weight.is_leaf]
        if not old:
            made.weight = made.weight.detach() * 2
            assert t.nn.utils.parametrize.is_parametrized(made, "weight")
            with pytest.raises(ValueError, match="sequence of tensors"):
                t.nn.utils.parametrize.remove_parametrizations(made, "weight", leave_parametrized=False)
            t.nn.utils.parametrize.remove_parametrizations(made, "weight")
        else:
            t.nn.utils.remove_weight_norm(made)
            with pytest.raises(ValueError, match="not found"):
                t.nn.utils.remove_weight_norm(made)
        return [*seen, list(made.state_dict()), made.weight.tolist(), made(point).tolist()]

    for mine, reference in zip(program(engine), program(torch), strict=True):
        if mine and isinstance(mine, list) and isinstance(mine[0], str):
            assert mine == reference
        else:
            np.testing.assert_allclose(mine, reference, rtol=1e-10, atol=1e-12)


def test_a_second_derivative_of_weight_norm_counts_the_norm() -> None:
    """PyTorch's does not; its own formula written out does."""

    def second(t: Any, write_out: bool) -> Any:
        v = t.tensor([[0.5, -1.0, 2.0]], dtype=t.float64, requires_grad=True)
        made = t.nn.Linear(3, 1, bias=False).double()
        t.nn.utils.parametrizations.weight_norm(made)
        weight = made.parametrizations.weight[0]
        value = (v / v.norm(dim=1, keepdim=True) if write_out else weight(t.ones(1, 1, dtype=t.float64), v)) ** 3
        (first,) = t.autograd.grad(value.sum(), v, create_graph=True)
        return t.autograd.grad((first**2).sum(), v)[0].tolist()

    np.testing.assert_allclose(second(engine, False), second(torch, True), rtol=1e-10)


def test_layers_of_these_functions() -> None:
    def program(t: Any) -> list[Any]:
        nn, x = t.nn, t.tensor(np.sin(np.arange(16.0)).reshape(1, 4, 2, 2))
        rows = x.reshape(4, 4)
        pooled, places = nn.MaxPool2d(2, return_indices=True)(x)
        return [
            nn.MaxUnpool2d(2)(pooled, places),
            nn.LocalResponseNorm(2)(x),
            nn.ChannelShuffle(2)(x),
            nn.UpsamplingNearest2d(scale_factor=2)(x),
            nn.UpsamplingBilinear2d(scale_factor=2)(x),
            nn.CTCLoss()(x.reshape(4, 1, 4).log_softmax(-1), t.tensor([[1, 2]]), (4,), (2,)),
            nn.MultiMarginLoss(p=2)(rows, t.tensor([0, 2, 1, 3])),
            nn.PoissonNLLLoss()(rows, rows.abs()),
            nn.MultiLabelSoftMarginLoss()(rows, (rows > 0).double()),
            nn.MultiLabelMarginLoss()(rows, t.tensor([[0, -1, 0, 0]] * 4)),
            nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1), swap=True)(
                rows, rows * 2, rows**2
            ),
        ]

    for mine, reference in zip(program(engine), program(torch), strict=True):
        np.testing.assert_allclose(mine.numpy(), reference.numpy(), rtol=1e-10, atol=1e-12)
    for kind in (lambda nn: nn.EmbeddingBag(4, 2, mode="sum", padding_idx=1), lambda nn: nn.MaxUnpool1d(3, 2, 1)):
        assert repr(kind(engine.nn)) == repr(kind(torch.nn))
