"""Other indices than those drawn: all equal, and -1 where the documentation says that it marks an entry."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import Argument
from gradcli.checks.other_points.bounds import is_drawn
from gradcli.checks.other_points.points import Arguments
from gradcli.inputs.domains import parse_domain
from gradcli.inputs.hints.documented_shapes import texts_of
from gradcli.sources import source_of
from gradcli.targets import TargetInfo

_ABSENT = (
    r"(?:empty|missing|pad(?:s|ded|ding)?|invalid|ignored?|ignores|none|no|not|nothing|absent|unused|masked|background"
    r"|unmatched|unassigned|noise|dropped|skip(?:s|ped)?|outside|void|unlabel?led)\b"
)
_MINUS_ONE = r"(?<![\w.])[-−]1(?![\w.]*\w)"
_MARKS = re.compile(
    rf"{_MINUS_ONE}[`'\")]*\s*(?:=|:|->|→|is|are|means?|marks?|denotes?|stands|for|where|if|when)\s*(?:\w+\s+){{0,3}}{_ABSENT}"
    rf"|\b{_ABSENT}[^.;\n]{{0,30}}{_MINUS_ONE}",
    re.IGNORECASE,
)
_LEAST = 3
"""Fewer indices are all equal in many a draw."""
_MARKED = 3
"""One entry of so many becomes -1."""


def other_indices(arguments: Sequence[Argument], info: TargetInfo) -> Iterator[Arguments]:
    """The arguments with other indices in one drawn input.

    A vector of indices becomes all equal to the most frequent one: a limit on how often an index may occur, as the
    capacity of an expert, is then exceeded. A third of the indices become -1 where the documentation says that this
    marks what is missing.
    """
    drawn = [position for position, argument in enumerate(arguments) if _are_indices(argument)]
    for position in drawn:
        value = arguments[position].value
        indices, counts = np.unique(value, return_counts=True)
        if value.ndim == 1 and value.size >= _LEAST and indices.size > 1:
            alike = np.full_like(value, indices[counts.argmax()])
            yield _with(arguments, position, alike)
        if value.size and _may_be_minus_one(arguments[position].name, info, is_only=len(drawn) == 1):
            marked = value.copy()
            marked.reshape(-1)[::_MARKED] = -1
            yield _with(arguments, position, marked)


def _are_indices(argument: Argument) -> bool:
    if not argument.is_tensor or argument.value.dtype.kind not in "iu" or not is_drawn(argument):
        return False
    return parse_domain(str(argument.domain))[0].name == "indices"


def _with(arguments: Sequence[Argument], position: int, value: NDArray[Any]) -> Arguments:
    changed = list(arguments)
    changed[position] = replace(arguments[position], value=value)
    return tuple(changed)


def _may_be_minus_one(name: str, info: TargetInfo, *, is_only: bool) -> bool:
    """Whether the documentation says so in a sentence that names the input, or anywhere for the only such input."""
    named = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    sentences = [
        part
        for text in texts_of(source_of(info.forward), info.documentation)
        for part in re.split(r"[.;]\s|\n\s*\n", text)
    ]
    return any(_MARKS.search(each) and (is_only or named.search(each)) for each in sentences)
