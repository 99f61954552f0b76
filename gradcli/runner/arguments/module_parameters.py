"""The parameters of a module, as inputs in addition to those of its forward."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import Backend
from gradcli.backends.tensor.framework import double_precision, same_kind
from gradcli.cases import HELD, Argument, InputSpec
from gradcli.inputs.builders import generator_for, known_dtype, rounded
from gradcli.runner.arguments.supply import Supply
from gradcli.targets import TargetInfo

Sample = Callable[[], tuple[Argument, ...]]


def with_held(supply: Supply, backend: Backend, target: object, info: TargetInfo, seed: int) -> Supply:
    """The supply with the module's own parameters added, except for those that are given by name.

    The first sample has them as they are; later ones move them, since a parameter that is initialised to zeros or ones
    can hide a mistake in another's gradient.
    """
    if not info.held:
        return supply

    def sample(number: int, draw: Sample) -> tuple[Argument, ...]:
        arguments = draw()
        own = complete(arguments, info, seed, number if number else None)
        return own if _accepted(backend, target, own) else complete(arguments, info, seed, None)

    given = {spec.name for spec in supply.specs}
    return replace(
        supply,
        samples=tuple(partial(sample, number, draw) for number, draw in enumerate(supply.samples)),
        held=tuple(
            InputSpec(name=name, shape=value.shape, domain=HELD) for name, value in info.held if name not in given
        ),
    )


def complete(arguments: Sequence[Argument], info: TargetInfo, seed: int, moved: int | None) -> tuple[Argument, ...]:
    """The arguments, then the parameters that are not among them; `moved` numbers the sample that moves them.

    Parameters come in 64 bits, and where an argument has a lower precision in that one.
    """
    names = {argument.name for argument in arguments}
    floats = [a.dtype_name for a in arguments if a.is_tensor and a.value.dtype.kind in "fc"]
    dtype = next((name for name in floats if double_precision(name) != name), "float64")
    own = [_held(name, _moved(value, name, seed, moved), dtype) for name, value in info.held if name not in names]
    return (*arguments, *own)


def _held(name: str, value: NDArray[Any], dtype: str) -> Argument:
    wanted = same_kind(dtype, is_complex=value.dtype.kind == "c")
    return Argument(
        name=name,
        value=rounded(value.astype(known_dtype(wanted)), wanted),
        is_tensor=True,
        requires_grad=True,
        keyword=True,
        dtype=wanted if wanted == "bfloat16" else None,
    )


def _moved(value: NDArray[Any], name: str, seed: int, sample: int | None) -> NDArray[Any]:
    """The value times numbers in [0.6, 1.4), eighths of normal numbers in place of exact zeros; itself without."""
    if sample is None:
        return value.copy()
    generator = generator_for(name, seed=seed, sample=sample)
    factors = 0.6 + 0.8 * generator.random(value.shape)
    fresh = np.round(generator.standard_normal(value.shape) / 8, 6)
    return np.asarray(np.where(value == 0, fresh, value * factors)).astype(value.dtype)


def _accepted(backend: Backend, target: object, arguments: Sequence[Argument]) -> bool:
    """Whether forward takes the arguments, and is finite there."""
    trial = backend.attempt(target, arguments)
    return trial.ok and all(bool(np.isfinite(o).all()) for o in trial.outputs if o.dtype.kind in "fc")
