"""The namespace `optim`: optimisers, which update parameters from their `.grad`."""

from typing import Any

from gradcli.engine.interface.missing_names import refusal
from gradcli.engine.optim.adaptive import Adagrad, Adam, AdamW, RMSprop
from gradcli.engine.optim.lbfgs import LBFGS
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.optim.rare import Adadelta, Adamax, NAdam, RAdam, Rprop
from gradcli.engine.optim.sgd import SGD

__all__ = [
    "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Raise AttributeError for a name that is not here, with names that are close."""
    raise refusal(".optim", name, globals())
