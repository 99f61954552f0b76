"""The candidates for each argument of forward, with costs: a tensor of some kind and rank, a constant, nothing."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from gradcli.cases import InputSpec
from gradcli.frozen import dataclass
from gradcli.inputs.domains import CLASSES, INTEGRAL, LABELS, MATRICES
from gradcli.inputs.hints import argument_names
from gradcli.inputs.hints.argument_names import excludes_tensors, flag_values, names_tensors
from gradcli.inputs.hints.kinds import (
    MASK_COST,
    NAMED_INDEX_COST,
    UNSURE_INDEX_COST,
    index_cost,
    mask_cost,
    suggested_kinds,
)
from gradcli.inputs.hints.source_hints import IndexRange, SourceHints
from gradcli.inputs.hints.suggested_constants import annotated_values, means_tensor, suggested
from gradcli.inputs.hints.summed_gradients import Sum
from gradcli.targets import Parameter

TRACKED = ("float", "complex", "idle-tensor", "fixed-tensor", "key", "typed-key")
"""The tensors that require a gradient; one that the user gave may not."""
TENSORS = (*TRACKED, "label", "complex-label", "index", "mask", "number-tensor")
FIRST_RANK_COSTS = {2: 0.0, 3: 1.0, 1: 1.2, 4: 1.6, 0: 3.5}
LATER_RANK_COSTS = {2: 0.0, 1: 0.4, 3: 1.0, 4: 1.6, 0: 2.0}
INDEX_RANK_COSTS = {1: 0.0, 2: 0.3, 3: 1.0, 0: 1.2}
MASK_RANK_COSTS = {2: 0.0, 1: 0.3, 3: 1.0, 4: 1.5}
STATE_RANK_COSTS = {1: 0.0, 0: 1.5, 2: 3.0}
SUMMED_COST = 0.5
"""Of a single number whose gradient is a sum over all entries: more than a vector, less than `BROADCAST`."""
COUNTER_COST = -0.1
"""Of a tensor without axes that forward writes into, where its name is that of a number: `steps`, `lo`, `amax`."""
WITH_GRADIENT_COST = 3.0
"""Of indices for which backward has a gradient: more than for a backward that raises (`RAISING_BACKWARD`)."""
PASSED_COST = -0.1
"""Of a guard, and of the default that a helper has for a number whose name suggests none: less than other numbers."""
COMPARED_COST = 0.45
"""Of a number that the source compares an argument with: more than for class numbers."""
NONE_COST = 0.5
"""What None costs more than the likeliest tensor, for an argument without a default that forward compares with None."""
UNSURE_LABEL_COST = 0.35
"""Of a tensor that documentation says to get no gradient, where the source does not tell: less than one for which
backward returns None (0.7), and more than one for which it returns a gradient."""
NUMBER_COST, NOT_A_TENSOR_COST = 0.4, 1.5
"""Of a number for which backward returns None, and of a tensor there: in all arguments of one Function alike."""
STATIC_COST = 4.0
"""Of a tensor for an argument that is declared to be none, as by nondiff_argnums: more than any number."""
SURE_INDEX_COST = -0.6
"""Of an index input that its name suggests if backward returns None for it too: less than a float tensor."""
SAID_BONUS, LABEL_BONUS, SURE_BONUS = 2.0, 0.5, 2.0
"""For a tensor that is what documentation says of an argument's values, for one without a gradient, and the least of a
rank that the source gives to one argument alone."""
LOW_RANK_COST = 3.0
"""Of a rank too low for an axis that forward reads, as in x.shape[2]: as much as the strongest hint on a rank."""
NO_KEY_COST = 6.0
"""Of anything else where a random key seems to be meant: more than all other hints together."""
BEYOND_REAL = 0.3
"""Of a complex tensor, more than of a real one of the same rank: real inputs that forward accepts come first."""
COMPLEX_COST, CONSTANT_COST, NUMBER_TENSOR_COST = 2.9, 2.4, 4.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What one argument may be.

    `kind` is one of `TENSORS`, "value", "fixed-value" or "omitted"; `text` is the value's repr, by which choices are
    told apart (1, 1.0 and True are equal to Python). A "label" is a real tensor without a gradient; a
    "complex-label" is a complex tensor without one. A "number-tensor"
    is one without a gradient that need not change an output: of rank 0 in place of a number, which backward alone may
    use, and of another rank where forward may read only the shape. An "idle-tensor" need not either: it takes its place
    where backward has a gradient for it. A "key" is a random key of JAX's, a "typed-key" one made by `jax.random.key`.
    """

    kind: str
    rank: int = 0
    text: str = ""
    value: Any = field(default=None, compare=False)

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor of any kind."""
        return self.kind in TENSORS

    @property
    def is_free(self) -> bool:
        """Whether the search may choose its shape and values."""
        return self.is_tensor and self.kind not in ("fixed-tensor", "number-tensor", "idle-tensor")

    @staticmethod
    def of_value(value: Any) -> "Choice":
        """The constant `value`."""
        return Choice(kind="value", text=repr(value), value=value)


Skeleton = tuple[Choice, ...]
OMITTED = Choice(kind="omitted")
DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One argument of forward and its choices, cheapest first; `fixed` is what the user gave for it.

    `suggested` holds "index" or "mask" where something says so; `said` and `within` are documented, or `said` is
    `DIFFERENT`: equal numbers have no defined result. No return has a buffer's gradient; a `guard` has that value.
    """

    name: str
    parameter: Parameter
    choices: tuple[tuple[float, Choice], ...]
    suggested: frozenset[str] = frozenset()
    said: str | None = None
    within: IndexRange | None = None
    is_buffer: bool = False
    guard: float | None = None
    fixed: InputSpec | None = None
    fixed_shape: tuple[int, ...] | None = None

    def cost(self, choice: Choice) -> float:
        """The cost of `choice` here."""
        return next(cost for cost, known in self.choices if known == choice)

    @property
    def is_axis(self) -> bool:
        """Whether its name is that of an axis: a tensor that holds its number is one of whole numbers."""
        return re.fullmatch(r"(?:.*_)?(?:dim|axis)", self.name.lower().strip("_")) is not None

    def beside(self, chosen: Choice, *, is_idle: bool) -> Iterator[tuple[float, Choice]]:
        """The other choices with their costs; one with axes that may be idle only for a tensor that has proved so."""
        for cost, choice in self.choices:
            proved = is_idle and choice.rank == chosen.rank
            if choice != chosen and (choice.kind != "number-tensor" or not choice.rank or proved):
                yield cost, choice


def fixed_slot(name: str, parameter: Parameter, spec: InputSpec, shape: tuple[int, ...]) -> Slot:
    """The slot of an argument that the user gave; `shape` is its own, or that of the array it is read from."""
    if spec.kind == "value":
        choice = Choice(kind="fixed-value", text=repr(spec.value), value=spec.value)
    else:
        choice = Choice(kind="fixed-tensor", rank=len(shape))
    return Slot(name=name, parameter=parameter, choices=((0.0, choice),), fixed=spec, fixed_shape=shape)


def slot_for(
    name: str, parameter: Parameter, position: int, names: Sequence[str], hints: SourceHints,
    numbers: Sequence[float] = (),
) -> Slot:  # fmt: skip
    """The slot of the argument `name` with every plausible choice.

    Args:
        name: as forward's signature has it, without underscores at the ends and in lower case for the names.
        parameter: its default and annotation.
        position: 0 for the first tensor, which tends to be the input itself.
        names: the names of all arguments.
        hints: what the source of forward and backward says.
        numbers: what the argument is tried as first, if it may be a number and its name suggests none.
    """
    costs = _Costs()
    annotation = parameter.annotation or ""
    if not (names_tensors(annotation) or excludes_tensors(annotation)) and (demanded := hints.demanded_type(name)):
        parameter = replace(parameter, annotation=demanded)
    word = hints.meant_by(name, word_of(name))
    gradient = False if parameter.static else hints.gradient_of(position)
    is_array = name in hints.arrays | hints.read and not excludes_tensors(parameter.annotation or "")
    tensor_offset = 0.0 if is_array else _add_constants(costs, word, parameter, gradient, names, hints)
    if parameter.has_default:
        costs.put(0.0, OMITTED)
        tensor_offset = max(tensor_offset, 1.3 if parameter.default is None else 4.0)
    is_number = seems_a_number(name, hints) and not parameter.has_default
    tensor_offset = max(tensor_offset, STATIC_COST * parameter.static, NOT_A_TENSOR_COST * is_number)
    _add_tensors(costs, word, name, position, names, tensor_offset, hints, parameter.annotation or "")
    if not parameter.has_default and not is_array:
        base = 4.5 if gradient is True else 0.55 if gradient is False and _may_be_constant(word) else CONSTANT_COST
        base = 4.0 if name in hints.objects else min(base, NUMBER_COST) if is_number else base
        costs.put_values(NUMBER_COST - 0.4, numbers, 0.2)
        costs.put_values(PASSED_COST, _defaults(word, parameter, gradient, names, hints))
        if is_condition := gradient is not True and hints.is_condition(name):
            costs.put_values(0.0 if hints.is_flag(name) else COMPARED_COST, flag_values(word) or (False, True))
        _add_any_constant(costs, base + is_condition + 3.6 * hints.is_input(position), word)
        if gradient is not True:
            number = -0.1 if word in argument_names.WORDS else COMPARED_COST
            _add_compared(costs, hints.compared_with(name), number)
    least = min(0.0, *(cost for choice, cost in costs.found.items() if choice.is_tensor))
    costs.put_values(least + NONE_COST, (None,) if not parameter.has_default and hints.may_be_none(name) else ())
    if name in hints.read or any(choice.kind == "value" for choice in costs.found):
        costs.put(NUMBER_TENSOR_COST, Choice(kind="number-tensor"))
    if not parameter.has_default:
        for choice, cost in [each for each in costs.found.items() if each[0].kind == "float" and each[0].rank]:
            costs.put(NUMBER_TENSOR_COST + 0.1 + cost, replace(choice, kind="number-tensor"))
    if name in hints.keys:
        costs.found = {choice: cost + NO_KEY_COST for choice, cost in costs.found.items() if choice != OMITTED}
        for kind, is_typed in (("key", False), ("typed-key", True)):
            costs.put(0.0 if hints.keys[name] is is_typed else 0.3, Choice(kind=kind))
    ordered = sorted(costs.found.items(), key=lambda item: (item[1], item[0].kind, item[0].rank, item[0].text))
    return Slot(
        name=name,
        parameter=parameter,
        choices=tuple((cost, choice) for choice, cost in ordered),
        suggested=suggested_kinds(word, name, position, hints, parameter.annotation or ""),
        said=hints.values.domains.get(name),
        within=hints.ranges.get(name),
        is_buffer=argument_names.is_state(name) and hints.gradient_of(position) is not True,
    )


def seems_a_number(name: str, hints: SourceHints) -> bool:
    """Whether an argument is a number if forward accepts one: backward has no gradient, and no hint is for a tensor."""
    is_said = (
        name in hints.objects
        or name in hints.values.constants
        or any(bonus >= SURE_BONUS for bonus in hints.rank_bonuses(name, first=False).values())
    )
    is_used = max(hints.index_bonus(name), hints.mask_bonus(name)) > 0
    return name in hints.numbers and not (is_said or is_used or means_tensor(name) or hints.is_flag(name))


def word_of(name: str) -> str:
    """The name as the lists of names have it. A single capital keeps its case: `k` is a count, `K` seldom is."""
    bare = name.split("[", maxsplit=1)[0].strip("_")
    return bare if len(bare) == 1 else bare.lower()


class _Costs:
    """The cheapest cost of each choice."""

    def __init__(self) -> None:
        self.found: dict[Choice, float] = {}

    def put(self, cost: float, choice: Choice) -> None:
        self.found[choice] = min(cost, self.found.get(choice, cost))

    def put_values(self, cost: float, values: Sequence[Any], step: float = 0.25) -> None:
        for index, value in enumerate(values):
            self.put(cost + step * index, Choice.of_value(value))


def _add_any_constant(costs: _Costs, base: float, word: str = "") -> None:
    """Add constants of every kind, but no flags for what is called as a number is."""
    no_flag = word in {*argument_names.REAL_NUMBERS, *argument_names.WHOLE_NUMBERS, *argument_names.PERHAPS_NUMBERS}
    values = [each for each in argument_names.ANY_CONSTANT if not (no_flag and isinstance(each, bool))]
    costs.put_values(base, values, 0.2)


def _defaults(
    word: str, parameter: Parameter, gradient: bool | None, names: Sequence[str], hints: SourceHints
) -> Sequence[float]:
    """The value of a guard, or a helper's default for an argument that is surely a number and has no telling name."""
    is_constant = gradient is False or parameter.static or excludes_tensors(parameter.annotation or "")
    is_unnamed = is_constant and not suggested(word, gradient, names)[0]
    return hints.defaults.get(parameter.name, ()) if is_unnamed or parameter.name in hints.guards else ()


def _add_compared(costs: _Costs, values: Sequence[Any], number: float) -> None:
    """Add the values that the source compares an argument with: texts at no cost, and numbers at the given cost."""
    for kind, cost in ((str, 0.0), (bool, 0.0), (int, number), (float, number)):
        costs.put_values(cost, [value for value in values if type(value) is kind], 0.01)


def _may_be_constant(word: str) -> bool:
    known = argument_names.VECTOR_NAMES | argument_names.INDEX_NAMES | argument_names.MASK_NAMES
    return word not in known and not re.match(r"w|mask", word)


def _add_constants(
    costs: _Costs, word: str, parameter: Parameter, gradient: bool | None, names: Sequence[str], hints: SourceHints
) -> float:  # fmt: skip
    """Add the constants that annotation, documentation and name suggest.

    Returns what a tensor costs more because of them.
    """
    base, documented = 1.5 if parameter.has_default else 0.0, hints.values.types.get(parameter.name)
    annotated = hints.objects.get(parameter.name, annotated_values(word, parameter.annotation or ""))
    if annotated is None and documented is not None and parameter.annotation is None and gradient is not True:
        is_tensor = documented == "scalar" and gradient is None
        annotated = None if is_tensor else annotated_values(word, documented.replace("scalar", "float"))
    if annotated is not None:
        costs.put_values(base, annotated)
        _add_any_constant(costs, 4.0)
        return 5.0
    if "ensor" in (parameter.annotation or "") or gradient is True:
        return 0.0
    if parameter.has_default and parameter.default is not None:
        costs.put_values(base, (not parameter.default,) if isinstance(parameter.default, bool) else ())
        return 0.0
    values, uncertainty, offset = suggested(word, gradient, names)
    costs.put_values(base + uncertainty, values)
    return offset


def _add_tensors(
    costs: _Costs, word: str, name: str, position: int, names: Sequence[str], offset: float, hints: SourceHints,
    annotation: str,
) -> None:  # fmt: skip
    if argument_names.STATE_NAMES.fullmatch(word):
        bonuses = hints.rank_bonuses(name, first=False)
        for rank, cost in STATE_RANK_COSTS.items():
            costs.put(cost + offset - bonuses.get(rank, 0.0), Choice(kind="float", rank=rank))
        return
    ranks = dict(LATER_RANK_COSTS if position else FIRST_RANK_COSTS)
    gradient, is_input = hints.gradient_of(position), hints.is_input(position)
    of_layer = not argument_names.OF_LAYERS.get(word, frozenset()).isdisjoint(name.lower() for name in names)
    ranks[0] = min(ranks[0], _cost_without_axes(word, name, position, hints, of_layer=of_layer))
    alone = not (word == "b" and "a" in names) and not (word == "v" and "k" in names)
    vector = of_layer or word in argument_names.VECTOR_NAMES or "bias" in word or re.match(r"b(\d$|_)", word)
    if vector and alone:
        ranks[1] = min(ranks[1], -0.1)
    if word in argument_names.IMAGE_NAMES:
        ranks[4] = -0.2
    for rank, bonus in hints.rank_bonuses(name, first=position == 0).items():
        ranks[rank] = ranks.get(rank, 2.0) - bonus
    said = hints.values.domains.get(name)
    ranks = _with_vectors({rank: cost - _said_bonus(said, rank) for rank, cost in ranks.items()}, name, names)
    kinds = _real_kinds(word, name, gradient, hints)
    for (rank, cost), (kind, more) in itertools.product(ranks.items(), kinds.items()):
        costs.put(cost + more + offset + LOW_RANK_COST * hints.lacks_axes(name, rank), Choice(kind=kind, rank=rank))
    is_table = hints.is_table(name, names)
    index = UNSURE_INDEX_COST if is_table else index_cost(word, annotation, is_input=is_input)
    named = index_cost(word, annotation, is_input=is_input) <= NAMED_INDEX_COST
    if gradient is False and named and word not in argument_names.UNSURE_INDEX_NAMES:
        index = SURE_INDEX_COST
    elif gradient is False and any(type(value) is int for value in hints.compared_with(name)):
        index = min(index, NAMED_INDEX_COST)
    bonuses = hints.rank_bonuses(name, first=position == 0)
    # A value that is scattered has a gradient; what JAX calls float0 is the gradient of an index.
    has_gradient = gradient is True and "float0" not in hints.backward
    seems_index = -WITH_GRADIENT_COST if has_gradient else hints.index_bonus(name)
    seems_index += SAID_BONUS * ((said in INTEGRAL) - (said in ("signs", "binary")))
    for rank, cost in (LATER_RANK_COSTS if is_table else INDEX_RANK_COSTS).items():
        low = LOW_RANK_COST * hints.lacks_axes(name, rank) - bonuses.get(rank, 0.0)
        costs.put(cost + index - seems_index + offset + low, Choice(kind="index", rank=rank))
    is_mask = said == "boolean"
    mask = mask_cost(word, is_input=is_input) - is_mask * (SAID_BONUS + MASK_COST - WITH_GRADIENT_COST * has_gradient)
    mask += offset - hints.mask_bonus(name)
    for rank, cost in MASK_RANK_COSTS.items():
        costs.put(cost + mask - bonuses.get(rank, 0.0), Choice(kind="mask", rank=rank))
    if name not in hints.values.reals:
        _add_complex(costs, bonuses, offset - hints.complex_bonus(), is_said=name in hints.values.complexes)


def _cost_without_axes(word: str, name: str, position: int, hints: SourceHints, *, of_layer: bool) -> float:
    """The cost of a tensor without axes where something suggests one."""
    known = {**argument_names.WHOLE_NUMBERS, **argument_names.REAL_NUMBERS, **argument_names.PERHAPS_NUMBERS}
    numberlike = name in hints.values.types or word in known
    gradient = hints.gradient_of(position)
    of_axes = hints.sum_of(position) is Sum.AXES
    cost = math.inf
    if position and hints.sum_of(position) is Sum.ALL:
        cost = SUMMED_COST
    if gradient is True and numberlike and not (of_layer or of_axes or word in argument_names.NUMBERS_OR_VECTORS):
        cost = min(cost, 0.3)
    if gradient is False and numberlike and name in hints.arrays:
        cost = COUNTER_COST
    return cost


def _add_complex(costs: _Costs, bonuses: Mapping[int, float], offset: float, *, is_said: bool) -> None:
    """Add complex tensors, each at a higher cost than the real one of its rank, or far below that if documented."""
    for rank in {2, 1, 3, *bonuses}:
        extra = (0.0 if rank == 2 else 0.3) - bonuses.get(rank, 0.0)
        real = costs.found.get(Choice(kind="float", rank=rank), 0.0)
        cost = real - 2 * SAID_BONUS if is_said else max(COMPLEX_COST + extra + offset, real + BEYOND_REAL)
        costs.put(cost, Choice(kind="complex", rank=rank))


def _with_vectors(ranks: dict[int, float], name: str, names: Sequence[str]) -> dict[int, float]:
    """The costs with a lower one of vectors for coefficients beside a matrix `X`, whose capital tells them apart."""
    if "X" not in names or argument_names.COEFFICIENTS.isdisjoint(names):
        return ranks
    if name in argument_names.COEFFICIENTS | {"y", "t"}:
        ranks[1] = min(ranks[1], ranks[2] - 0.5)
    ranks[1] += name == "X"
    return ranks


def _said_bonus(said: str | None, rank: int) -> float:
    """The reduction of the cost of a rank that can have what documentation says of an argument's values."""
    least = 2 if said in MATRICES else 1
    return SAID_BONUS if said in MATRICES | CLASSES and rank >= least else 0.0


def _real_kinds(word: str, name: str, gradient: bool | None, hints: SourceHints) -> dict[str, float]:
    """What a real tensor costs more, and one without a gradient where such a one may be meant: labels, buffers."""
    said = hints.values.domains.get(name)
    is_constant = name in hints.values.constants or (name in hints.values.fixed and name not in hints.numbers)
    is_label = said in (("simplex", *LABELS) if argument_names.PROBABILITY_NAMES.fullmatch(word) else LABELS)
    is_label = is_label or said == "boolean" or (said is None and argument_names.DATA_NAMES.fullmatch(word) is not None)
    is_buffer = name in hints.written
    if gradient is False and (is_label or is_constant or is_buffer or hints.refuses_gradient(name)):
        return {"float": 0.0, "label": -LABEL_BONUS}
    if said in INTEGRAL and gradient is not True:
        return {"float": SAID_BONUS}
    return {"float": 0.0, "label": UNSURE_LABEL_COST} if is_constant and gradient is None else {"float": 0.0}
