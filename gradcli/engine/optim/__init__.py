"""Optimisers: each steps parameters by what backward left in their `.grad`."""

from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.optim.adaptive import Adam, AdamW, RMSprop
from gradcli.engine.optim.lbfgs import LBFGS
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]


def __getattr__(name: str) -> Any:
    """Refuse a name that is not here."""
    raise refusal(".optim", name, globals())
