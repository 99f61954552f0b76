"""The domains of inferred inputs: those tried where forward rejects normal numbers, and those that it is meant for.

Forward may run on inputs that it is not meant for: `clamp(x, low, high)` with low above high is another function, and
`softmax(x) - p` is the gradient of a cross entropy only where p sums to 1.
"""

import ast
import itertools
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gradcli.inputs.domains import parse_domain
from gradcli.inputs.hints.argument_names import PROBABILITY_NAMES, SMALL_NAMES, limits_iterations
from gradcli.inputs.hints.source_hints import SourceHints
from gradcli.inputs.search.candidates import Choice
from gradcli.inputs.search.trials import MORE_SAMPLES, DomainChoice, Guess, Shape, Trials
from gradcli.sources import nodes_of, tree_of

Pair = tuple[str, str]
POSITIVE: DomainChoice = ("positive", ())
UNIT: DomainChoice = ("unit", ())
WITHIN_ONE: DomainChoice = ("open-interval", (("lo", -1.0), ("hi", 1.0)))
ABOVE_ONE: DomainChoice = ("open-interval", (("lo", 1.2), ("hi", 3.0)))
BELOW_ZERO: DomainChoice = ("open-interval", (("lo", -3.0), ("hi", -0.1)))
SPD: DomainChoice = ("spd", ())
TRIANGULAR: DomainChoice = ("triangular", ())
DOMINANT: DomainChoice = ("diagonally-dominant", ())
ORTHOGONAL: DomainChoice = ("orthogonal", ())
ELEMENTWISE = (POSITIVE, WITHIN_ONE, UNIT, ABOVE_ONE, BELOW_ZERO)
MATRICES = (SPD, TRIANGULAR, ORTHOGONAL)
LOWER: DomainChoice = ("open-interval", (("lo", -1.0), ("hi", 0.1)))
UPPER: DomainChoice = ("open-interval", (("lo", 0.3), ("hi", 1.0)))
BELOW_ONE: DomainChoice = ("open-interval", (("lo", 0.1), ("hi", 0.9)))
SMALL: DomainChoice = ("open-interval", (("lo", -0.25), ("hi", 0.25)))
"""A matrix W of such numbers with up to four columns is a contraction: an iteration z = f(W z + x) converges."""
BELOW_GUARD: DomainChoice = ("open-interval", (("lo", -0.3), ("hi", 0.3)))
"""The square of a vector of up to eleven such numbers is below 1, where 1 - |u|^2 is held above a small number."""
_STEPS = (16, 64, 256)
"""What forward may need to converge: 16 steps of Newton's, 256 where an error falls by an eighth in each."""
_GUARD = 0.01
"""A guard is smaller: what is added or held back does not show."""
ORDERED = ((LOWER, UPPER), (BELOW_ONE, ABOVE_ONE))
"""Domains of two inputs of which one is below the other: the lower one of either sign, then both positive."""
_MIXED = ((UNIT, POSITIVE), (POSITIVE, WITHIN_ONE), (SPD, POSITIVE), (POSITIVE, UNIT))
SIMPLEX: DomainChoice = ("simplex", ())
_NORMALISED = re.compile(r"softmax|logsumexp")
_LAST_AXIS = re.compile(r"(?:softmax|logsumexp)\([^()]*-1")
OTHER_AXIS = re.compile(r"(?:softmax|logsumexp)\([^()]*(?:, ?|=)(?:0|(?:\w+\.)?(?:dim|axis))\s*[,)]")
_PRODUCTS = r"\b(?:b?mm|matmul|baddbmm|addmm|dot|einsum)\(|(?<=[\w\])]) @ "
_QUANTITIES = frozenset(("x", "z", "input", "inputs", "value", "values", "data", "tensor"))
_CLAMPS = frozenset(("clamp", "clip", "clamp_", "clip_", "hardtanh"))
_LARGER = frozenset(("maximum", "max", "fmax"))
_SMALLER = frozenset(("minimum", "min", "fmin"))
_LOWEST = ("min", "a_min", "min_val", "min_value")
_HIGHEST = ("max", "a_max", "max_val", "max_value")
_WORDS = (("min", "max"), ("minimum", "maximum"), ("low", "high"), ("lower", "upper"), ("lo", "hi"), ("lb", "ub"))


def domain_choices(
    slots: Sequence[int], shapes: Mapping[int, Shape], *, thorough: bool, of_matrices: bool = False
) -> Iterator[dict[int, DomainChoice]]:
    """Domains for the float tensors in `slots`, the smallest change first: one slot, then all of them, then pairs.

    Where forward computes a function of a matrix (`of_matrices`), such a matrix is tried as positive definite first.
    """
    square = [slot for slot in slots if len(shapes[slot]) >= 2 and shapes[slot][-1] == shapes[slot][-2] >= 2]
    yield from ({slot: SPD} for slot in square if of_matrices)
    for domain in ELEMENTWISE:
        for slot in slots:
            yield {slot: domain}
        if len(slots) > 1:
            yield dict.fromkeys(slots, domain)
    if not thorough and len(slots) == 1 and len(shapes[slots[0]]) < 2:
        return
    for domain in MATRICES:
        for slot in square:
            yield {slot: domain}
    for one, other in itertools.permutations(slots, 2):
        for first, second in (*_MIXED, *ORDERED):
            if first is not SPD or one in square:
                yield {one: first, other: second}


def domain_choice(text: str) -> DomainChoice:
    """The domain that a text names as `parse_domain` takes it, with the parameters inside."""
    domain, parameters = parse_domain(text)
    return domain.name, tuple(parameters.items())


def square_domain(source: str, names: Mapping[str, object] = MappingProxyType({})) -> DomainChoice | None:
    """The domain of square matrices that the calls in a source suggest; None where they suggest none.

    Args:
        source: of forward and of its helpers.
        names: those that they may use, of which some stand for a framework's functions.
    """
    called = set(re.findall(r"(?<![A-Za-z])(?<!def )([a-z_]+)\(", source))
    called |= {str(getattr(names.get(name), "__name__", name)).removeprefix("linalg_") for name in called}
    if any(name.startswith(("cholesky", "eigh", "eigvalsh", "symeig")) for name in called):
        return SPD
    if called & {"solve_triangular", "triangular_solve"}:
        return TRIANGULAR
    if "logdet" in called or called >= {"log", "det"}:
        return DOMINANT
    return None


def computes_of_matrices(forward: str) -> bool:
    """Whether the source of forward suggests a function of matrices: products of them beside the unit matrix.

    The iteration for a square root is one. It converges for positive definite matrices, and may for positive entries.
    """
    return re.search(r"\beye\(", forward) is not None and re.search(_PRODUCTS, forward) is not None


def with_ordered_limits(trials: Trials, hints: SourceHints, guess: Guess) -> Guess:
    """The same inputs with each lower limit drawn from numbers below its upper limit, where forward accepts that."""
    places = {slot.name: index for index, slot in enumerate(trials.slots)}
    for low, high in pairs_of(hints.forward, tuple(places)):
        for domains in ORDERED:
            chosen = {places[n]: d for n, d in zip((low, high), domains, strict=True) if _is_free(guess, places[n])}
            if not chosen or not _fits(guess, places[low], LOWER) or not _fits(guess, places[high], UPPER):
                break
            ordered = replace(guess, domains={**guess.domains, **chosen})
            failure = trials.judge(ordered)
            if failure is None or failure.idle in chosen:  # a limit that no entry reaches is one nevertheless
                guess = ordered
                break
    return guess


def with_probabilities(
    trials: Trials, hints: SourceHints, guess: Guess, runs_backward: Callable[[Guess], bool]
) -> Guess:
    """The same inputs with targets as probabilities of the input's shape, where forward computes a softmax.

    A target for which backward returns None requires none; the search took it for class numbers. Probabilities sum to 1
    along the last axis: nothing changes where the softmax may be along another one. What documentation calls
    non-negative, and not probabilities, may have any sum.
    """
    floats = [slot for slot, choice in enumerate(guess.skeleton) if choice.kind == "float" and guess.shapes[slot]]
    if not floats or _NORMALISED.search(hints.forward) is None or OTHER_AXIS.search(hints.forward) is not None:
        return guess
    shape = guess.shapes[floats[0]]
    if len(shape) > 2 and _LAST_AXIS.search(hints.forward) is None:
        return guess
    for slot, choice in enumerate(guess.skeleton):
        name = trials.slots[slot].name
        if slot == floats[0] or not PROBABILITY_NAMES.fullmatch(name.lower()):
            continue
        if (
            hints.index_bonus(name) > 0
            or hints.compared_with(name)
            or not (choice.kind == "index" or _is_free(guess, slot))
        ):
            continue
        kind = "label" if hints.gradient_of(slot) is False else "float"
        is_positive = hints.values.domains.get(name) == "positive"
        skeleton = tuple(
            Choice(kind=kind, rank=len(shape)) if place == slot else each for place, each in enumerate(guess.skeleton)
        )
        changed = replace(
            guess,
            skeleton=skeleton,
            shapes={**guess.shapes, slot: shape},
            domains={**guess.domains, slot: POSITIVE if is_positive else SIMPLEX},
        )
        if trials.judge(changed) is None and runs_backward(changed):
            guess = changed
    return guess


def with_convergence(trials: Trials, hints: SourceHints, guess: Guess) -> Guess:
    """The same inputs at which forward's iteration converges: with more steps, or small numbers in tensors.

    An iteration that has not converged gives other outputs if it takes twice as many steps. An implicit gradient is
    right at its limit alone. A scheme of so many steps, as of an integral, comes to no limit within rounding.
    """
    for index, (slot, choice) in enumerate(zip(trials.slots, guess.skeleton, strict=True)):
        steps = slot.parameter.default if choice.kind == "omitted" else choice.value
        is_limit, is_free = limits_iterations(slot.name), slot.name in hints.counts and choice.kind == "value"
        if type(steps) is not int or not (is_limit or is_free) or _has_converged(trials, guess, index, steps):
            continue
        for more in _STEPS if is_free else ():
            longer = with_value(guess, index, more)
            if trials.judge(longer) is None and _has_converged(trials, longer, index, more):
                return longer if not trials.is_flat(longer) else guess
        floats = [each for each in guess.shapes if is_limit and _is_free(guess, each)]
        for slots in (*([each] for each in reversed(floats)), floats):
            small = replace(guess, domains={**guess.domains, **dict.fromkeys(slots, SMALL)})
            if trials.judge(small) is None and _has_converged(trials, small, index, steps):
                return small
    return guess


def with_guards_at_rest(trials: Trials, hints: SourceHints, guess: Guess, fits: Callable[[Guess], bool]) -> Guess:
    """The same inputs with smaller numbers where forward holds an intermediate result at a guard for larger ones.

    `clamp(|u|^2, max=1 - eps)` is for rounding at the edge of the ball. Where it holds nothing, another eps changes no
    bit of the outputs; an eps that is added to something changes them everywhere.
    """
    for index, (slot, choice) in enumerate(zip(trials.slots, guess.skeleton, strict=True)):
        value = slot.parameter.default if choice.kind == "omitted" else choice.value
        if type(value) is not float or not 0 < value < _GUARD or not SMALL_NAMES.search(slot.name.lower().strip("_")):
            continue
        if slot.name in hints.guards or _same(trials, guess, with_value(guess, index, 2 * value)):
            continue
        floats = [each for each in guess.shapes if _is_free(guess, each) and each not in guess.domains]
        small = replace(guess, domains={**guess.domains, **dict.fromkeys(floats, BELOW_GUARD)})
        if trials.judge(small) is None and _same(trials, small, with_value(small, index, 2 * value)) and fits(small):
            return small
    return guess


def _same(trials: Trials, guess: Guess, other: Guess) -> bool:
    """Whether two guesses that forward accepts give the same bits on all samples."""
    return all(trials.run(guess, sample).equals(trials.run(other, sample)) for sample in (0, *MORE_SAMPLES))


def _has_converged(trials: Trials, guess: Guess, index: int, steps: int) -> bool:
    # An odd number more: the iteration may go back and forth between two values.
    return trials.agree(guess, with_value(guess, index, 2 * steps + 1))


def with_value(guess: Guess, index: int, value: object) -> Guess:
    """The guess with a constant for the argument `index`."""
    skeleton = (*guess.skeleton[:index], Choice.of_value(value), *guess.skeleton[index + 1 :])
    return replace(guess, skeleton=skeleton, shapes={slot: s for slot, s in guess.shapes.items() if slot != index})


def limit_of(domain: DomainChoice) -> str | None:
    """Which limit a domain is for, "lower" or "upper"; None if it may have been chosen for another reason."""
    return {LOWER: "lower", BELOW_ONE: "lower", UPPER: "upper"}.get(domain)


def _is_free(guess: Guess, slot: int) -> bool:
    """Whether an argument is a real tensor whose entries do not have to form a matrix of some kind."""
    elementwise = guess.domains.get(slot, ("normal", ()))[0] in ("normal", "positive", "unit", "open-interval")
    return guess.skeleton[slot].kind in ("float", "label") and elementwise


def _fits(guess: Guess, slot: int, domain: DomainChoice) -> bool:
    """Whether an argument is free to be drawn from the domain of a limit, or is a number beyond the other limit."""
    choice, ends = guess.skeleton[slot], dict(domain[1])
    if choice.kind == "value" and isinstance(choice.value, int | float):
        return bool(choice.value <= ends["hi"] if domain == LOWER else choice.value >= ends["lo"])
    return choice.kind == "omitted" or _is_free(guess, slot)


def pairs_of(forward: str, parameters: Sequence[str]) -> list[Pair]:
    """The pairs of a lower and an upper limit among forward's parameters, from its source and from their names.

    Args:
        forward: its source.
        parameters: the names of its arguments.
    """
    found: list[tuple[str | None, str | None]] = []
    tree = tree_of(forward)
    if tree is not None:
        values = {
            node.targets[0].id: node.value
            for node in nodes_of(tree)
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        }
        for node in nodes_of(tree):
            if isinstance(node, ast.Call):
                limits = _limits_of_clamp(node, {*values, *parameters})
                low, high = (_parameter(limit, parameters) for limit in limits)
                found += [(low, high), _limits_of_extremes(node, values, parameters)]
    found += [(name, other) for name in parameters for other in parameters if _are_named_limits(name, other)]
    return list(dict.fromkeys((low, high) for low, high in found if low and high and low != high))


def _limits_of_clamp(call: ast.Call, variables: Container[str]) -> tuple[ast.expr | None, ast.expr | None]:
    """The limits in `torch.clamp(x, low, high)`, `x.clip(low, high)` and the like; None for what is not there."""
    if _name_of(call.func) not in _CLAMPS:
        return None, None
    root = call.func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_method = len(call.args) < 3 and (not isinstance(root, ast.Name) or root.id in variables)
    limits: list[ast.expr | None] = [*(call.args if is_method else call.args[1:]), None, None]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    low = next((keywords[name] for name in _LOWEST if name in keywords), limits[0])
    high = next((keywords[name] for name in _HIGHEST if name in keywords), limits[1])
    return low, high


def _limits_of_extremes(
    call: ast.Call, values: Mapping[str, ast.expr], parameters: Sequence[str]
) -> tuple[str | None, str | None]:
    """The limits in `minimum(maximum(x, low), high)`, or with the two exchanged; the inner result may be a variable."""
    outer = _name_of(call.func)
    if outer not in _LARGER | _SMALLER or len(call.args) != 2:
        return None, None
    others = _LARGER if outer in _SMALLER else _SMALLER
    for inner, limit in (call.args, call.args[::-1]):
        within = values.get(inner.id, inner) if isinstance(inner, ast.Name) else inner
        if isinstance(within, ast.Call) and _name_of(within.func) in others and len(within.args) == 2:
            own = _parameter(limit, parameters)
            inside = [name for each in within.args if (name := _parameter(each, parameters)) is not None]
            limits = [name for name in inside if name not in _QUANTITIES and (len(inside) > 1 or name != parameters[0])]
            other = limits[-1] if limits else None
            return (other, own) if outer in _SMALLER else (own, other)
    return None, None


def _are_named_limits(low: str, high: str) -> bool:
    """Whether two names are the same but for a word such as "min" in one and "max" in the other."""
    for lower, upper in _WORDS:
        pattern = rf"(?<![a-z]){lower}(?![a-z])" if lower != "min" else rf"(?<![a-z])[a-z]?{lower}(?![a-z])"
        words = re.search(pattern, low.lower())
        if words is not None and high.lower() == low.lower().replace(lower, upper, 1):
            return True
    return False


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _parameter(node: ast.expr | None, parameters: Sequence[str]) -> str | None:
    return node.id if isinstance(node, ast.Name) and node.id in parameters else None
