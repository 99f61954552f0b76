"""Optimisers: each steps parameters by what backward left in their `.grad`."""

from gradcli.engine.optim.adaptive import Adam, AdamW, RMSprop
from gradcli.engine.optim.lbfgs import LBFGS
from gradcli.engine.optim.optimizer import Optimizer
from gradcli.engine.optim.sgd import SGD

__all__ = ["LBFGS", "SGD", "Adam", "AdamW", "Optimizer", "RMSprop"]
