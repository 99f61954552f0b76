"""The mechanisms of the numerics that can be switched off, and what each answers then."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

import gradcli.numerics
from gradcli.numerics.course.small_rows import NONE
from gradcli.numerics.reference.arbitration import Ruling


@dataclass(frozen=True)
class Mechanism:
    """A function of a module of the numerics, and what answers in its place when it is off.

    `spares` says that it is there to save evaluations: what it decides others would decide as well. `answer` names
    what it answers, where a function is tried with several answers.
    """

    module: str
    function: str
    off: Callable[..., Any]
    spares: bool = False
    answer: str = ""

    @property
    def name(self) -> str:
        """Room, file and function, and the answer."""
        return f"{self.module}.{self.function}{self.answer}"


def always(answer: Any) -> Callable[..., Any]:
    """The same answer to everything."""
    return lambda *_, **__: answer


def argument(number: int) -> Callable[..., Any]:
    """What came in goes out."""
    return lambda *args, **_: args[number]


def no_outputs(ladder: Any, *_: Any) -> Any:
    """No output of a ladder."""
    return np.zeros(ladder.line.outputs, bool)


def nothing_of(search: Any, *_: Any) -> Any:
    """No output of a search along a line."""
    return np.zeros(search.line.outputs, bool)


def found_none(*_: Any, **__: Any) -> dict[Any, Any]:
    """Nothing found."""
    return {}


NO, YES, NOTHING = always(False), always(True), always(None)

MECHANISMS = [
    Mechanism("differences.breaks", "broken_at_centre", no_outputs),
    Mechanism("differences.breaks", "even_dominates", no_outputs),
    Mechanism("differences.breaks", "jump_size", NOTHING),
    Mechanism("differences.breaks", "staircases", no_outputs),
    Mechanism("differences.directional", "_Search._drowned", nothing_of),
    Mechanism("differences.directional", "_Search._unsettled", nothing_of),
    Mechanism("differences.directional", "_Search._lengthen", argument(1)),
    Mechanism("differences.formats", "single_precision", lambda values: np.zeros(values.shape[1], bool)),
    Mechanism(
        "differences.noise", "quantised", lambda values: (np.zeros(values.shape[1], bool), np.zeros(values.shape[1]))
    ),
    Mechanism("differences.formats", "may_be_half", NO),
    Mechanism("differences.formats", "format_of", NOTHING),
    Mechanism("regularity.kinks", "additive", YES),
    Mechanism("claims.site", "Site._jitter", lambda site: np.full(site.claim.rows, np.inf)),
    Mechanism("regularity.cancellation", "is_rounding_only", NO),
    Mechanism("regularity.stored_format", "hidden_by_format", NOTHING),
    Mechanism("screen.held_still", "is_held_still", NO),
    Mechanism("regularity.gradient_noise", "jitter", lambda site: np.zeros_like(site.claim.forms)),
    Mechanism("regularity.gradient_noise", "_curve_noise", lambda *args: np.zeros_like(args[2])),
    Mechanism("regularity.gradient_noise", "_jumps", NO),
    Mechanism("regularity.stored_format", "significance_of", argument(1)),
    Mechanism("regularity.stored_format", "format_at", NOTHING),
    Mechanism("confirm.isolated_points", "certain", NO),
    Mechanism("confirm.isolated_points", "wrong_at_this_point", NOTHING),
    Mechanism("confirm.isolated_points", "_differentiable", NO),
    Mechanism("regularity.iteration", "iterates", NO),
    Mechanism("regularity.iteration", "stops_early", NO),
    Mechanism("regularity.iteration", "where_it_stops", NOTHING),
    Mechanism("regularity.iteration", "on_other_branches", NO),
    Mechanism("regularity.jumps", "jump_nearby", lambda *args: np.zeros(args[2].size)),
    Mechanism("regularity.kinks", "kink_notes", always(())),
    Mechanism("regularity.nonfinite", "judge_nonfinite", NOTHING),
    Mechanism("regularity.nonfinite", "_slope_left", lambda site, *_: np.full(site.row_values().size, np.inf)),
    Mechanism("regularity.nonfinite", "_on_kink", NOTHING),
    Mechanism("regularity.quantisation", "has_plateaus", NO),
    Mechanism("regularity.quantisation", "is_rough", NO),
    Mechanism("regularity.stored_format", "floating_format", NOTHING),
    Mechanism("regularity.step_functions", "is_staircase", NO),
    Mechanism("regularity.step_functions", "witness_is_zero", NO),
    Mechanism("reference.symmetric", "on_symmetric_changes", NOTHING),
    Mechanism("reference.symmetric", "share_alike", NO),
    Mechanism("reference.arbitration", "_over_wide_steps", always(Ruling.NEITHER)),
    Mechanism("reference.arbitration", "_persists", YES),
    Mechanism("reference.discrepancy", "tail", NOTHING),
    Mechanism("confirm.single_column", "confirm_column", NOTHING),
    Mechanism("localise.entries", "locate", NOTHING, spares=True),
    Mechanism("confirm.persistence", "_too_fast", NOTHING),
    Mechanism("confirm.persistence", "_swings", NO),
    Mechanism("confirm.persistence", "_few_digits", NOTHING),
    Mechanism("confirm.persistence", "_roughness", NOTHING),
    Mechanism("confirm.persistence", "_claim_is_noisy", NO),
    Mechanism("confirm.persistence", "_claim_moves", NO),
    Mechanism("confirm.persistence", "_excused", NO),
    Mechanism("confirm.persistence", "confirm_sparse", NOTHING, spares=True),
    Mechanism("confirm.large_scale", "agreed_in_half_precision", NOTHING, spares=True),
    Mechanism("confirm.large_scale", "with_large_steps", argument(1)),
    Mechanism("confirm.large_scale", "is_zero_of_an_iteration", NO),
    Mechanism("confirm.large_scale", "_unless_few_digits", argument(1)),
    Mechanism("confirm.wide_steps", "agreement", NOTHING),
    Mechanism("confirm.wide_steps", "_sloped", NO),
    Mechanism("confirm.wide_steps", "_is_noise", YES),
    Mechanism("confirm.wide_errors", "disagreement", NOTHING),
    Mechanism(
        "confirm.wide_errors", "_suspects", lambda site, case, _: np.zeros(site.map.domain.sizes[case.pair[0]], bool)
    ),
    Mechanism("confirm.wide_errors", "_close_by", YES),
    Mechanism("confirm.wide_errors", "_claimed_only", argument(1)),
    Mechanism("screen.certification", "certify", found_none),
    Mechanism("screen.certification", "supports", NO),
    Mechanism("screen.single_pair", "certified_at_once", NOTHING, spares=True),
    Mechanism("screen.pair_result", "unmoved", lambda site, *_: np.zeros(site.row_values().size, bool)),
    Mechanism("screen.small_entries", "wrong_in_the_tail", found_none),
    Mechanism("screen.small_entries", "wrong_in_small_rows", found_none),
    Mechanism("screen.survey", "is_below_rounding", NO),
    Mechanism("screen.survey", "_is_rounding_nearer_to_zero", NO),
    Mechanism("screen.survey", "_underweighted", always([])),
    Mechanism("screen.survey", "_unless_apart", argument(2)),
    Mechanism("screen.survey", "_at_its_precision", argument(2), spares=True),
    Mechanism("screen.survey", "_together", found_none, spares=True),
    Mechanism("screen.long_inputs", "clearly_wrong", found_none, spares=True),
    Mechanism("screen.survey", "as_step_function", argument(2)),
    Mechanism("screen.with_reference", "_explained", found_none),
    Mechanism("screen.with_reference", "_confirmed", NOTHING),
    Mechanism("screen.with_reference", "WitnessComparison.temper", argument(2)),
    Mechanism("course.small_rows", "suspect_rows", always(NONE)),
    Mechanism("course.small_rows", "cut_to_small_rows", argument(0)),
    Mechanism("course.protocol", "Protocol._if_it_matters", argument(2)),
]
"""Functions that leave something out, find something, or answer a question; `run` reaches the others through these."""


def discovered() -> Iterator[Mechanism]:
    """Every question of the numerics, answered always with yes and always with no, and every search that finds nothing.

    A question is a function that says it returns `bool`, a search one that says it may return `None`.
    """
    ours = gradcli.numerics
    for found in pkgutil.walk_packages(ours.__path__, ours.__name__ + "."):
        module = importlib.import_module(found.name)
        place = found.name.removeprefix(ours.__name__ + ".")
        for name, function in _functions(module):
            returns = str(function.__annotations__.get("return", ""))
            if returns == "bool":
                yield Mechanism(place, name, NO, answer=": no")
                yield Mechanism(place, name, YES, answer=": yes")
            elif returns.endswith("| None"):
                yield Mechanism(place, name, NOTHING, answer=": nothing")


def _functions(module: ModuleType) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that a module defines, by their names in it; no generators and no properties."""
    for name, value in vars(module).items():
        members = {f"{name}.{key}": member for key, member in vars(value).items()} if inspect.isclass(value) else {}
        for key, member in ({name: value} | members).items():
            own = isinstance(member, FunctionType) and member.__module__ == module.__name__
            if own and not inspect.isgeneratorfunction(member):
                yield key, member
