"""What is said where forward calls what an argument holds, or returns whole numbers alone."""

from typing import Any

import pytest

import gradcli
from gradcli import engine


class Stacked(engine.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Any, x: Any) -> Any:
        return engine.stack([features[i](x) for i in range(2)])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return None, g.sum(0)


class Chained(engine.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, layers: Any, settings: Any) -> Any:
        for layer, setting in zip(layers, settings, strict=True):
            x = layer(x, **setting)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


class Nearest(engine.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, table: Any) -> Any:
        distances = ((x.unsqueeze(-2) - table) ** 2).sum(-1)
        return distances.argmin(-1)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise RuntimeError("nothing to differentiate")


@pytest.mark.parametrize(("target", "name"), [(Stacked, "features"), (Chained, "layers")])
def test_elements_that_are_called_are_functions(target: type, name: str) -> None:
    (case,) = gradcli.check(target, shrink=False).cases
    assert f"forward calls {name}, and no flag gives a function or a module" in str(case.error)


def test_whole_numbers_have_nothing_to_check() -> None:
    (case,) = gradcli.check(Nearest, shrink=False).cases
    assert "Nearest returns only whole numbers or booleans" in str(case.error)
    assert "so there is nothing to check" in str(case.error)


class Refusing(engine.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, feature_axis: Any, block_count: Any) -> Any:
        raise ValueError("not these")

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g, None, None


def test_axes_and_counts_are_suggested_as_constants() -> None:
    (case,) = gradcli.check(Refusing, shrink=False).cases
    assert "give the inputs: -i x=3x4 -a feature_axis=-1 -a block_count=2 " in str(case.error)
