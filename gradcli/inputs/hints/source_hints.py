"""Hints from the source of forward and backward: ranks, indices, masks, and which arguments have a gradient."""

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from gradcli.frozen import dataclass
from gradcli.inputs.hints.argument_names import PARAMETER_NAMES, SMALL_NAMES, excludes_tensors
from gradcli.inputs.hints.conjugates import conjugated_names, conjugates_reals
from gradcli.inputs.hints.documented_order import Order
from gradcli.inputs.hints.documented_shapes import Axis
from gradcli.inputs.hints.documented_values import Documented
from gradcli.inputs.hints.suggested_constants import widens
from gradcli.inputs.hints.summed_gradients import Sum
from gradcli.sources import nodes_of, tree_of

_IMAGES = r"conv2d|pool2d|conv_transpose2d|interpolate|grid_sample|unfold\(|\b[bBnN], ?[cC], ?[hH], ?[wW]\b"
_SEQUENCES = r"conv1d|bmm\(|baddbmm|pool1d"
_LOOK_UPS = "gather|index_select|scatter\\w*|index_add\\w*|one_hot|embedding|take\\w*|eye|cross_entropy|nll_loss"
_INDEXING = rf"(?:{_LOOK_UPS})\([^)]*\b{{0}}\b"
_SUBSCRIPT = r"(?<=[\w)\]])\[[^\]:]*\b{0}\b[^\]:]*\]|\b{0}\.(?:long|astype\(int)"
_MASKING = r"(?:where|masked_fill\w*|masked_select)\(\s*~?{0}\b|~{0}\b|\b{0}\.bool\b|\[{0}\] ?="
_CONVERTED = r"(?<![\w.]){0}\.(?:to|type_as|astype)\(\s*(?!{0}\b)(\w+)(?:\.dtype)?\s*[,)]"
_CONJUGATES = r"(?:\b(?!self\b|cls\b)[a-z_]\w*|[\])])\.conj(?:ugate)?\(|(?<![\w.])conj\("
_COMPLEX = rf"{_CONJUGATES}|complex|\.imag\b|\.real\b|\.polar\(|\.angle\("
_REDUCED = r"\.(?:sum|mean|var|std|amax|norm)\((?:dim=|axis=)?[(\[]([\d, ]+)[)\]]"
_NUMBERS = {"Number": "float", "Real": "float", "Integral": "int", "Complex": "complex"}
_EQUALITIES = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_GROUPS = (ast.Tuple, ast.List, ast.Set)
DOCUMENTED_BONUS = 4.0
"""For the rank that documentation gives: more than any other hint, less than all costs of an unlikely kind."""
_UNBROADCAST = r"sum_to_size|unbroadcast|sum_to_shape|sum_to\("


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRange:
    """Whole numbers from `low` up to, not including, the size of an axis of `owner`, or that number, and `more`."""

    low: int
    owner: str
    axis: int | None
    more: int = 0


_OF_SHARES = 3.0
"""What indices cost more for labels between 0 and 1: as much as where backward has a gradient for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceHints:
    """Hints read from source; they order the search and never decide it. Empty where there is no source.

    `conjugated` says that forward conjugates an argument itself, or takes its imaginary part; `names` are forward's
    global names, `documented` the shapes that docstrings and comments give for arguments, and `values` what they say of
    the values. `tensors` are annotated as such. `keys` are JAX's random keys, True for typed ones. `order` holds pairs
    of sizes of which the first is the larger one; `letters` are those of einsums, or the number of `*args`. Forward
    writes into `written`, of which `arrays` cannot be numbers, and takes the only entry of `single`. `numbers` may be
    such. `marks_dirty` says that forward calls `ctx.mark_dirty`. `ranges` are those of whole numbers. `helpers` is the
    source of the user's functions that forward passes arguments on to, in forward's names; one of these functions reads
    what only a tensor has of `read`. `defaults` are those of the parameters that arguments are passed to. `objects` are
    the values of number formats, devices and the like, `alike` sets of arguments that are used alike. `halves` says
    that the source calls two parts of an axis its halves. `guards` are numbers that only keep a quotient of backward's
    finite or end a loop, with a value for each; `counts` only say how often a loop of forward runs.
    """

    forward: str
    backward: str
    gradients: tuple[bool | None, ...]
    conjugated: bool = False
    sums: tuple[Sum | None, ...] = ()
    names: Mapping[str, Any] = field(default_factory=dict)
    documented: Mapping[str, tuple[Axis, ...]] = field(default_factory=dict)
    values: Documented = field(default_factory=Documented)
    tensors: frozenset[str] = frozenset()
    keys: Mapping[str, bool] = field(default_factory=dict)
    order: Order = ()
    letters: Mapping[str, tuple[Axis, ...]] = field(default_factory=dict)
    written: frozenset[str] = frozenset()
    arrays: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    marks_dirty: bool = False
    ranges: Mapping[str, IndexRange] = field(default_factory=dict)
    helpers: str = ""
    read: frozenset[str] = frozenset()
    defaults: Mapping[str, tuple[float]] = field(default_factory=dict)
    objects: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    alike: tuple[frozenset[str], ...] = ()
    halves: bool = False
    guards: Mapping[str, float] = field(default_factory=dict)
    counts: frozenset[str] = frozenset()

    @property
    def used(self) -> str:
        """The source of forward and of its helpers."""
        return f"{self.forward}\n{self.helpers}" if self.helpers else self.forward

    @property
    def _trees(self) -> list[ast.Module]:
        return [tree for tree in map(tree_of, (self.forward, self.helpers, self.backward)) if tree is not None]

    def sum_of(self, position: int) -> Sum | None:
        """The sum of the cotangent that is a factor of this argument's gradient."""
        return self.sums[position] if position < len(self.sums) else None

    def gradient_of(self, position: int) -> bool | None:
        """True where some return of backward has a gradient for this argument, False where all have None."""
        return self.gradients[position] if position < len(self.gradients) else None

    def is_input(self, position: int) -> bool:
        """Whether this is the first argument, unless backward has gradients for others and None for it."""
        return position == 0 and not (self.gradient_of(0) is False and True in self.gradients)

    def rank_bonuses(self, name: str, *, first: bool) -> dict[int, float]:
        """For each rank that occurs in the source, the reduction of its cost."""
        bonuses: dict[int, float] = {}
        escaped = re.escape(name)
        if re.search(_IMAGES, self.used) and (first or re.match(r"w|kernel|filter", name)):
            bonuses[4] = 1.7
        if re.search(_SEQUENCES, self.used):
            bonuses[3] = 1.1
        unpacked = rf"(?:^|[;:])[ \t]*\(?((?:\w+, ?)+\w+)\)? ?= ?{escaped}\.(?:shape|size\(\))(\[:\d)?"
        for match in re.finditer(unpacked, self.used, re.MULTILINE):  # and no `1, groups=x.shape[1]` in a call
            # What is cut from a shape, as in n, c = x.shape[:2], has axes behind it.
            bonuses[match[1].count(",") + (1 if match[2] is None else 2)] = 3.0
        if first and (last := max(self._reduced_axes, default=0)) > 1:
            bonuses.setdefault(last + 1, 2.0)
        if name in self.letters and "..." not in self.letters[name]:
            bonuses[len(self.letters[name])] = 2.5
        for match in re.finditer(rf"(?<![\w.]){escaped}\[((?:[:\w.]+, ?)*(?:[:\w.]+))\]", self.used):
            axes = [axis.strip() for axis in match[1].split(",")]
            kept = [axis for axis in axes if axis not in ("None", "np.newaxis")]
            if len(kept) < len(axes) and kept and "..." not in kept:
                # An axis put in last may stand before others that are not written: x[:, None] of points and of numbers.
                behind = axes[-1] not in kept and kept == [":"] and self._reduces_last and name not in PARAMETER_NAMES
                bonuses[len(kept) + behind] = 2.5
        if re.search(rf"(?<!def )\b(?:outer|ger)\([^)]*\b{escaped}\b|\b{escaped}\.(?:outer|ger)\(", self.used):
            bonuses[1] = 2.0
        if re.search(rf"(?<!def )\b(?:dot)\([^)]*\b{escaped}\b|\b{escaped}\.dot\(", self.used):
            bonuses[1] = max(bonuses.get(1, 0.0), 0.5)
        own = rf"{escaped}\.(?:shape\[(?:-1|0)\]|size\((?:-1|0)\)|numel\(\)|size)"
        if re.search(rf"reshape\(-1, ?{own}\)\.sum\((?:axis=|dim=)?0", self.backward):
            bonuses[1] = 2.5  # the gradient is summed over all axes but the last
        if name in self.single:
            bonuses[0] = DOCUMENTED_BONUS if first else 2.5
        if name in self.documented:
            bonuses[len(self.documented[name])] = DOCUMENTED_BONUS
        return bonuses

    def lacks_axes(self, name: str, rank: int) -> float:
        """1 where forward reads an axis that a tensor of this rank lacks, as in x.shape[2]; 0.5 where backward does."""
        pattern = rf"(?<![\w.]){re.escape(name)}\.(?:shape\[|size\()(-?\d+)[\])]"
        for code, share in ((self.used, 1.0), (self.backward, 0.5)):
            if any(not -rank <= int(axis) < rank for axis in re.findall(pattern, code)):
                return share
        return 0.0

    @property
    def _reduced_axes(self) -> set[int]:
        """The axes that forward or backward reduces together, as in g.sum((0, 2))."""
        return {
            int(axis)
            for match in re.finditer(_REDUCED, self.forward + self.backward)
            for axis in re.findall(r"\d+", match[1])
        }

    @property
    def _reduces_last(self) -> bool:
        """Whether forward sums over the last axis, or takes a norm along it."""
        return re.search(r"\b(?:sum|norm|mean|vector_norm)\([^()]*(?:-1|\b2)\b[^()]*\)", self.forward) is not None

    @property
    def axes(self) -> dict[str, tuple[Axis, ...]]:
        """The axes of arguments, by name, that documentation gives or else the letters of an einsum."""
        return {**self.letters, **self.documented}

    def compared_with(self, name: str) -> tuple[Any, ...]:
        """The strings and numbers that forward or backward compares an argument with, or looks up by it.

        As in `reduction == "sum"`, `ctx.kind in (1, 2)`, `match mode` and `{"sum": f, "mean": g}[reduction]`; a global
        name stands for its value.
        """
        found: list[ast.expr] = []
        for tree in self._trees:
            for node in nodes_of(tree):
                if isinstance(node, ast.Compare) and isinstance(node.ops[0], _EQUALITIES) and len(node.ops) == 1:
                    sides = node.left, node.comparators[0]
                    found += [one for one, other in (sides, sides[::-1]) if _stands_for(other, name)]
                elif isinstance(node, ast.Match) and _stands_for(node.subject, name):
                    found += [
                        each.value for case in node.cases for each in ast.walk(case) if isinstance(each, ast.MatchValue)
                    ]
                elif isinstance(node, ast.Subscript) and _stands_for(node.slice, name):
                    found += _keys(node.value, self.names)
        parts = [part for each in found for part in (each.elts if isinstance(each, _GROUPS) else [each])]
        values = [self._literal(part) for part in parts]
        return tuple(dict.fromkeys(value for value in values if type(value) in (str, int, float)))

    @property
    def branches_on_rank(self) -> frozenset[str]:
        """The variables on whose number of axes forward or backward branches, other than to raise an exception."""
        found: set[str] = set()
        for tree in filter(None, map(tree_of, (self.forward, self.backward))):
            for node in nodes_of(tree):
                if not isinstance(node, ast.If | ast.IfExp | ast.While):
                    continue
                if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
                    continue
                called = [each.func for each in ast.walk(node.test) if isinstance(each, ast.Call)]
                tested = [each for each in ast.walk(node.test) if each not in called]
                found.update(name for each in tested if (name := _whose_rank(each)) is not None)
        return frozenset(found)

    def demanded_type(self, name: str) -> str | None:
        """The plain types that forward demands of an argument, as in `assert isinstance(v, Number)`; else None."""
        tree = tree_of(self.forward)
        tests = [_demanded(node) for node in nodes_of(tree)] if tree is not None else []
        for test in tests:
            match test:
                case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=own), kinds]) if own == name:
                    parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
                    named = [_NUMBERS.get(each, each) for each in map(_last_name, parts)]
                    text = " | ".join(dict.fromkeys(named))
                    return text if excludes_tensors(text) else None
        return None

    def refuses_gradient(self, name: str) -> bool:
        """Whether forward demands that an argument requires no gradient, as in `assert not y.requires_grad`."""
        read = rf"(?<![\w.]){re.escape(name)}\.requires_grad\b"
        return (
            re.search(rf"assert not {read}|assert {read} (?:is|==) False|if {read}:\s*raise\b", self.forward)
            is not None
        )

    def is_condition(self, name: str) -> bool:
        """Whether forward or backward branches on the truth value of an argument, as in `if not training`."""
        tests = [n.test for tree in self._trees for n in nodes_of(tree) if isinstance(n, ast.If | ast.IfExp)]
        return any(_stands_for(part, name) for test in tests for part in _conditions(test))

    def is_flag(self, name: str) -> bool:
        """Whether forward and backward branch on an argument and do nothing else with it than to keep it."""
        if not self.is_condition(name):
            return False
        used = [
            node
            for tree in self._trees
            for node in nodes_of(tree)
            if isinstance(node, ast.BinOp | ast.Compare | ast.Call)
        ]
        parts = [part for node in used for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return not any(_stands_for(part, name) for part in parts)

    def _literal(self, node: ast.expr) -> object:
        """The value of a constant, also of a negative or infinite one, or of a global name; None for anything else."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value="inf")]) | ast.Attribute(attr="inf"):
                return math.inf
            case ast.Name(id=name):
                return self.names.get(name)
        return None

    def index_bonus(self, name: str) -> float:
        """The reduction of the cost of an index tensor for this argument; below 0 where it is `y` in `1 - y`."""
        is_share = re.search(rf"(?<![\w.])1(?:\.0?)? ?- ?{re.escape(name)}(?![\w.(\[])", self.used) is not None
        return self._bonus(name, (_INDEXING, _SUBSCRIPT)) or -_OF_SHARES * is_share

    def meant_by(self, name: str, word: str) -> str:
        """The usual name of what an argument is: a temperature, where it is called eps or so and no guard."""
        return "tau" if SMALL_NAMES.search(word) and widens(tree_of(self.forward), name) else word

    def is_table(self, name: str, names: Sequence[str]) -> bool:
        """Whether forward gives an argument the type of another, and backward has no gradient for what is treated so.

        Integers are. In mixed precision tensors with a gradient are too, and some other of them has it, or this one is
        called a weight: then a gradient was forgotten.
        """
        converted = {
            each
            for each in names
            if not set(names).isdisjoint(re.findall(_CONVERTED.format(re.escape(each)), self.forward))
        }
        has_gradient = any(self.gradient_of(names.index(each)) is not False for each in converted)
        return name in converted and not has_gradient and name.lower() not in PARAMETER_NAMES

    def mask_bonus(self, name: str) -> float:
        """The reduction of the cost of a boolean tensor for this argument."""
        return self._bonus(name, (_MASKING,))

    def complex_bonus(self) -> float:
        """The reduction of the cost of complex tensors."""
        return 2.6 if re.search(_COMPLEX, self.forward) else 0.0

    @property
    def undoes_broadcasting(self) -> bool:
        """Whether backward sums over broadcast axes, so that broadcasting is part of the contract."""
        return re.search(_UNBROADCAST, self.backward) is not None

    @property
    def minds_complex(self) -> bool:
        """Whether backward conjugates what is real at real inputs or takes its real part, or forward conjugates an
        argument: these may be complex."""
        tree = None if self.conjugated else tree_of(self.backward)
        return self.conjugated or (tree is not None and conjugates_reals(tree_of(self.forward), tree, self.names))

    def may_be_none(self, name: str) -> bool:
        """Whether forward or a helper that is given an argument asks whether that is None."""
        return re.search(rf"(?<![\w.]){re.escape(name)} is (?:not )?None\b", self.used) is not None

    @property
    def conjugates(self) -> frozenset[str]:
        """The variables that forward or backward conjugates themselves, most often with the names of arguments."""
        trees = (tree_of(self.forward), tree_of(self.backward))
        return frozenset().union(*(conjugated_names(tree, self.names) for tree in trees))

    def _bonus(self, name: str, patterns: tuple[str, ...]) -> float:
        escaped = re.escape(name)
        return 1.5 if any(re.search(pattern.format(escaped), self.used) for pattern in patterns) else 0.0


def _demanded(node: ast.AST) -> ast.expr | None:
    """The condition that holds where a statement raises no exception: an assertion, or `if not ...: raise`."""
    match node:
        case ast.Assert(test=test):
            return test
        case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test), body=[ast.Raise(), *_]):
            return test
    return None


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else "object"


def _stands_for(node: ast.expr, name: str) -> bool:
    """Whether an expression is an argument, or what ctx holds under its name."""
    return (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.Attribute) and node.attr == name)


def _conditions(test: ast.expr) -> list[ast.expr]:
    """The parts of a condition whose truth values decide it: those that `not`, `and` and `or` join."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _conditions(test.operand)
    if isinstance(test, ast.BoolOp):
        return [part for each in test.values for part in _conditions(each)]
    return [test]


def _whose_rank(node: ast.expr | ast.AST) -> str | None:
    """The variable in `x.dim()`, `x.ndim` and `len(x.shape)`; None for other expressions."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="dim" | "ndimension"), args=[]):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr="ndim"):
            return name
        case ast.Call(
            func=ast.Name(id="len"),
            args=[
                ast.Attribute(value=ast.Name(id=name), attr="shape")
                | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"))
            ],
        ):
            return name
        case ast.Call(func=ast.Attribute(attr="ndim"), args=[ast.Name(id=name)]):
            return name
    return None


def _keys(node: ast.expr, names: Mapping[str, Any]) -> list[ast.expr]:
    """The keys of a dict that is written out, as a display or as a call of `dict`, or has a global name."""
    if isinstance(node, ast.Name) and isinstance(known := names.get(node.id), dict):
        return [ast.Constant(key) for key in known if isinstance(key, str | int | float)]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [ast.Constant(each.arg) for each in node.keywords if each.arg is not None]
    return []
