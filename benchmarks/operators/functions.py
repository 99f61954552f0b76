"""An operator as a custom Function whose backward is PyTorch's own gradient, right or with a planted error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.operators.database import Tensors, fresh

Gradients = list[torch.Tensor | None]
Spoil = Callable[[Gradients, Tensors], Gradients]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A planted error: what becomes of the gradients, of the cotangents, and of the graph behind them."""

    name: str
    spoil: Spoil | None = None
    ignores_cotangents: bool = False
    detaches: bool = False
    order: int = 1


def wrapped(
    function: Callable[..., Tensors], tensors: Tensors, *, opaque: bool = False, plant: Plant | None = None
) -> Any:
    """A Function class around `function`; `opaque` hides forward's body from autodiff.

    Outputs that carry no gradient at `tensors` are marked non-differentiable.
    """
    carries = [output.requires_grad for output in function(*fresh(tensors))]

    class Wrapped(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: torch.Tensor) -> Tensors:
            ctx.save_for_backward(*tensors)
            with torch.set_grad_enabled(torch.is_grad_enabled() and not opaque):
                outputs = function(*tensors)
            ctx.mark_non_differentiable(*(o for o, carried in zip(outputs, carries, strict=True) if not carried))
            return outputs

        @staticmethod
        def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            tensors = ctx.saved_tensors
            again = torch.is_grad_enabled()
            if not again or (plant is not None and plant.detaches):
                tensors = tuple(
                    t.detach().requires_grad_(n) for t, n in zip(tensors, ctx.needs_input_grad, strict=True)
                )
            if plant is not None and plant.ignores_cotangents:
                cotangents = tuple(torch.ones_like(c) for c in cotangents)
            found = pulled_back(function, tensors, cotangents, create_graph=again)
            return tuple(found if plant is None or plant.spoil is None else plant.spoil(found, tensors))

    return Wrapped


def pulled_back(
    function: Callable[..., Tensors], tensors: Tensors, cotangents: Tensors, *, create_graph: bool = False
) -> Gradients:
    """PyTorch's own gradients of <cotangents, function(tensors)>, None for tensors that ask for none."""
    with torch.enable_grad():
        outputs = function(*tensors)
        pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
        places = [i for i, t in enumerate(tensors) if t.requires_grad]
        gradients: Gradients = [None] * len(tensors)
        if not pairs or not places:
            return gradients
        found = torch.autograd.grad(
            [o for o, _ in pairs],
            [tensors[i] for i in places],
            [c for _, c in pairs],
            create_graph=create_graph,
            allow_unused=True,
        )
    for place, gradient in zip(places, found, strict=True):
        gradients[place] = gradient
    return gradients


def _first(change: Callable[[torch.Tensor], torch.Tensor]) -> Spoil:
    """Change the gradient of the first input that has one."""

    def spoil(gradients: Gradients, tensors: Tensors) -> Gradients:
        del tensors
        place = next((i for i, g in enumerate(gradients) if g is not None), None)
        return [change(g) if i == place and g is not None else g for i, g in enumerate(gradients)]

    return spoil


def _one_entry(gradient: torch.Tensor) -> torch.Tensor:
    factors = torch.ones(gradient.numel(), dtype=gradient.dtype)
    factors[gradient.numel() // 2] = 1.001
    return gradient * factors.reshape(gradient.shape)


def _transposed(gradient: torch.Tensor) -> torch.Tensor:
    square = gradient.dim() >= 2 and gradient.shape[-1] == gradient.shape[-2]
    return gradient.transpose(-1, -2) if square else gradient


def _rolled(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.roll(1, -1) if gradient.dim() else gradient


PLANTS = (
    Plant(name="factor 1.01", spoil=_first(lambda g: g * 1.01)),
    Plant(name="factor 1.001", spoil=_first(lambda g: g * 1.001)),
    Plant(name="factor 1 + 1e-4", spoil=_first(lambda g: g * (1 + 1e-4))),
    Plant(name="factor 1 + 2e-6", spoil=_first(lambda g: g * (1 + 2e-6))),
    Plant(name="times 1e-4", spoil=_first(lambda g: g * 1e-4)),
    Plant(name="times 1e-6", spoil=_first(lambda g: g * 1e-6)),
    Plant(name="sign", spoil=_first(lambda g: -g)),
    Plant(name="one entry by 1e-3", spoil=_first(_one_entry)),
    Plant(name="transposed", spoil=_first(_transposed)),
    Plant(name="rolled", spoil=_first(_rolled)),
    Plant(name="grad_output ignored", ignores_cotangents=True),
    Plant(name="detached second order", detaches=True, order=2),
)


def visible(function: Callable[..., Tensors], tensors: Tensors, plant: Plant, *, threshold: float = 1e-6) -> bool:
    """Whether the planted gradient differs by more than `threshold` of a block's largest entry, at these inputs."""
    faulty = wrapped(function, tensors, plant=plant)
    for seed in range(3):
        leaves = fresh(tensors)
        torch.manual_seed(seed)
        outputs = faulty.apply(*leaves)
        cotangents = tuple(torch.randn_like(o) if o.requires_grad else torch.zeros_like(o) for o in outputs)
        right = pulled_back(function, leaves, cotangents, create_graph=plant.order > 1)
        carried = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
        wrong = torch.autograd.grad(
            [o for o, _ in carried],
            leaves,
            [c for _, c in carried],
            create_graph=plant.order > 1,
            allow_unused=True,
        )
        pairs = list(zip(right, wrong, strict=True)) if plant.order == 1 else _second(leaves, right, wrong)
        scale = max(_largest(tensors), 1e-300)
        slope = _largest(outputs) / scale
        rounding = 1e-13 * (slope if plant.order == 1 else max(_largest(right), slope) / scale)
        if any(_apart(one, other, rounding) > threshold for one, other in pairs):
            return True
    return False


def _second(leaves: Tensors, right: Any, wrong: Any) -> list[tuple[Any, Any]]:
    """The gradients, by the inputs, of one random combination of both sets of gradients."""
    weights = [torch.randn_like(leaf) for leaf in leaves]
    both = []
    for gradients in (right, wrong):
        tracked = [(g, w) for g, w in zip(gradients, weights, strict=True) if g is not None and g.requires_grad]
        if not tracked:
            both.append([None] * len(leaves))
            continue
        both.append(
            list(
                torch.autograd.grad(
                    [g for g, _ in tracked], leaves, [w for _, w in tracked], allow_unused=True, retain_graph=True
                )
            )
        )
    return list(zip(*both, strict=True))


def _largest(tensors: Sequence[torch.Tensor | None]) -> float:
    return max((float(t.detach().abs().max()) for t in tensors if t is not None and t.numel()), default=0.0)


def _apart(right: torch.Tensor | None, wrong: torch.Tensor | None, rounding: float) -> float:
    """The largest difference relative to the largest right entry; zero where it is at the level of rounding."""
    if right is None and wrong is None:
        return 0.0
    one = torch.zeros_like(wrong) if right is None else right.detach()  # type: ignore[arg-type]  # one is a tensor
    other = torch.zeros_like(one) if wrong is None else wrong.detach()
    gap, scale = _largest([one - other]), _largest([one])
    if gap <= rounding:
        return 0.0
    return gap / scale if scale > 0 else float("inf")
