"""A name that the engine does not have is refused with what to do, and never found by accident."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradcli import engine

LEFT_OUT = [
    (engine, "fft", "numpy.fft"),
    (engine, "distributions", "density"),
    (engine, "compile", "call the function itself"),
    (engine.optim, "lr_scheduler", "param_groups"),
    (engine.utils, "data", "slices"),
    (engine.ones(2), "bfloat16", "float32"),
]
MISTAKEN = [
    (engine, "sofmax", "softmax"),
    (engine.nn, "Conv2D", "Conv2d"),
    (engine.nn.functional, "crossentropy", "cross_entropy"),
    (engine.linalg, "choleski", "cholesky"),
]


@pytest.mark.parametrize(
    ("where", "name", "words"), LEFT_OUT, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_is_left_out_is_refused_with_what_to_do(where: Any, name: str, words: str) -> None:
    with pytest.raises(AttributeError, match="leaves it out") as caught:
        getattr(where, name)
    assert words in str(caught.value)
    assert not hasattr(where, name)


@pytest.mark.parametrize(
    ("where", "name", "close"), MISTAKEN, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_mistaken_name_is_answered_with_close_ones(where: Any, name: str, close: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(where, name)
    assert re.search(rf"close to this one: .*\b{close}\b", caught.value.__notes__[0])


def test_every_name_that_a_namespace_lists_is_there() -> None:
    for where in (engine, engine.nn, engine.nn.functional, engine.linalg, engine.special, engine.optim, engine.func):
        missing = [name for name in where.__all__ if not hasattr(where, name)]
        assert not missing, f"{where.__name__} lists {missing}"
