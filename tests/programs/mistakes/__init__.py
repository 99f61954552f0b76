"""Mistakes to plant, with the name, the input and the marked line that a diagnosis must come to."""

from tests.programs.mistakes.contract import BROKEN_RULES
from tests.programs.mistakes.gradients import WRONG_GRADIENTS

MISTAKES = (*WRONG_GRADIENTS, *BROKEN_RULES)
__all__ = ["MISTAKES"]
