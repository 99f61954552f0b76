"""Small programs about autograd's behaviour; each returns plain data, so that two frameworks can be compared."""

from tests.programs.semantics import (
    contexts,
    functions,
    hooks,
    in_place,
    layers,
    matrices,
    modules,
    optimizing,
    passes,
    registration,
    saving,
    tensors,
    transforms,
)
from tests.programs.semantics.table import CASES

PROGRAMS = (
    contexts,
    functions,
    hooks,
    in_place,
    layers,
    matrices,
    modules,
    optimizing,
    passes,
    registration,
    saving,
    tensors,
    transforms,
)
"""The files whose programs are in the table once they are imported."""
__all__ = ["CASES", "PROGRAMS"]
