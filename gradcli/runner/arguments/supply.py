"""Where the inputs of a case come from: flags, its spec, the target's own sample_inputs, or inference."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from gradcli.backends.attribution import user_code_error
from gradcli.backends.base import Backend
from gradcli.cases import Argument, InputsFrom, InputSpec
from gradcli.errors import InputsNotFoundError, UsageError, UserCodeError, is_interrupt
from gradcli.frozen import dataclass
from gradcli.inputs.builders import build
from gradcli.inputs.domains import parse_domain
from gradcli.inputs.hints.reading import read_hints
from gradcli.inputs.search.error_messages import complains_of_precision
from gradcli.runner.arguments.binding import in_order, missing, named, placed, require_parameters
from gradcli.runner.arguments.numbers import as_tensors, differentiated, note_on_constants
from gradcli.runner.arguments.searching import found_inputs, takes_dtype
from gradcli.runner.planning.plan import CheckCase
from gradcli.targets import TargetInfo

_UNUSED = "sample_inputs is not used where some inputs are given: give all of them, or none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """The inputs of a case: what they are, and how to make each sample of them.

    `held` are a module's own parameters.
    """

    specs: tuple[InputSpec, ...]
    source: InputsFrom
    samples: tuple[Callable[[], tuple[Argument, ...]], ...]
    alternatives: tuple[tuple[InputSpec, ...], ...] = ()
    notes: tuple[str, ...] = ()
    held: tuple[InputSpec, ...] = ()
    drawn_from: tuple[tuple[InputSpec, ...], ...] = ()
    """What the first samples are drawn from, one for each; none where the user gave them."""
    all_asked: bool = False
    """Whether the user gave every sample, so none may be left out to save time."""

    def call_of(self, number: int) -> str | None:
        """The flags of the inputs of a sample, where these are others than the first sample's."""
        if number >= len(self.drawn_from) or self.drawn_from[number] == self.drawn_from[0]:
            return None
        return " ".join(spec.as_flag() for spec in self.drawn_from[number])

    def with_shapes_of(self, arguments: Sequence[Argument]) -> "Supply":
        """The same supply, with shapes from the arguments for specs that give a value or a file in place of a shape."""
        shapes = {a.name: a.shape for a in arguments if a.is_tensor}
        specs = tuple(
            replace(spec, shape=shapes[spec.name]) if spec.shape is None and spec.name in shapes else spec
            for spec in self.specs
        )
        return replace(self, specs=specs)


def supply_inputs(backend: Backend, target: object, info: TargetInfo, case: CheckCase) -> Supply:
    """The inputs of `case`, from the first of flags, spec, sample_inputs and inference that has them.

    Raises:
        UsageError: an input is named that forward does not have, or a dtype that the framework does not have.
        UserCodeError: sample_inputs raised, or returned something else than arguments.
        InputsNotFoundError: none were given and none could be inferred.
    """
    given = case.spec.inputs
    for dtype in (case.settings.dtype, *(spec.dtype for spec in given or ())):
        if dtype in backend.lacks:
            raise UsageError(f"dtype {dtype}: the {backend.name} backend has no such type; use float16 or float32")
    if given is not None:
        require_parameters(given, info, case.spec.origin)
        absent = missing(given, info)
        if not absent or _is_enough(backend, target, info, case):
            specs, notes = _with_numbers(
                in_order(given, info), differentiated(backend, target, info, case, given), info, case
            )
            return replace(_drawn(specs, (), info, case, case.spec.inputs_from), notes=notes)
        try:
            supply = _inferred(backend, target, info, case, given)
        except InputsNotFoundError as error:
            if info.sample_inputs is None:
                raise
            raise InputsNotFoundError(f"{error}\n  {_UNUSED}") from error.__cause__
        note = f"inferred in addition to the inputs given: {', '.join(p.name for p in absent)}"
        return replace(supply, source=case.spec.inputs_from, notes=(note, *supply.notes))
    if info.sample_inputs is not None:
        return given_supply(backend, info, _samples_of(info.sample_inputs), InputsFrom.SAMPLE_INPUTS)
    return _inferred(backend, target, info, case, ())


def _is_enough(backend: Backend, target: object, info: TargetInfo, case: CheckCase) -> bool:
    """Whether forward runs with what is given although parameters are missing, which a decorator may supply."""
    if not info.outer:
        return False
    specs = in_order(case.spec.inputs or (), info)
    return backend.attempt(target, placed(build(specs, seed=case.seed, dtype=case.settings.dtype), info)).ok


def given_supply(
    backend: Backend, info: TargetInfo, samples: Sequence[tuple[object, ...]], source: InputsFrom
) -> Supply:
    """Inputs from tuples of values for forward, in the order of its parameters."""
    adopted = [placed(named(backend.adopt(values), info), info, all_fixed=True) for values in samples]
    return supply_of(adopted, source)


def supply_of(samples: Sequence[tuple[Argument, ...]], source: InputsFrom) -> Supply:
    """Inputs from arguments that exist already, one tuple a sample."""
    return Supply(
        specs=tuple(described(argument) for argument in samples[0]),
        source=source,
        samples=tuple(partial(tuple, arguments) for arguments in samples),
        all_asked=True,
    )


def described(argument: Argument) -> InputSpec:
    """The input spec that describes an existing argument."""
    if not argument.is_tensor:
        return InputSpec(name=argument.name, kind="value", value=argument.value)
    return InputSpec(
        name=argument.name,
        shape=argument.shape,
        dtype=argument.dtype_name,
        domain=argument.domain or "literal",
        layout=None if argument.sparsity is None else argument.sparsity.layout,
        requires_grad=argument.requires_grad,
    )


def _drawn(
    specs: tuple[InputSpec, ...],
    alternatives: Sequence[tuple[InputSpec, ...]],
    info: TargetInfo,
    case: CheckCase,
    source: InputsFrom,
) -> Supply:
    given = {spec.name for spec in case.spec.inputs or ()}

    def draw(chosen: tuple[InputSpec, ...], sample: int) -> tuple[Argument, ...]:
        return placed(build(chosen, seed=case.seed, dtype=case.settings.dtype, sample=sample), info, given)

    count = case.settings.samples if any(_is_random(spec) for spec in specs) else 1
    chosen = [(specs, sample) for sample in range(count)] + [(alternative, 0) for alternative in alternatives]
    modes = [each for each in alternatives if _other_constants(each) - _other_constants(specs)]
    chosen += [(mode, sample) for mode in modes for sample in range(1, count)]
    return Supply(
        specs=specs,
        source=source,
        samples=tuple(partial(draw, *each) for each in chosen),
        alternatives=tuple(alternatives),
        drawn_from=tuple(each for each, _ in chosen),
    )


def _other_constants(specs: Sequence[InputSpec]) -> set[tuple[str, str]]:
    """The constants among the inputs that choose a branch of forward, whose values may choose another one there."""
    return {(spec.name, repr(spec.value)) for spec in specs if spec.kind == "value" and spec.value is not None}


def _inferred(
    backend: Backend, target: object, info: TargetInfo, case: CheckCase, fixed: tuple[InputSpec, ...]
) -> Supply:
    """The inputs that the search finds in the run's precision, or in float32 if forward rejects float64.

    Where a decorator hides how many arguments forward takes, those of the wrapper are searched as well. A view as
    complex64 makes garbage of float64, which forward may accept.
    """
    if case.settings.dtype == "float64" and _views_as_complex64(info):
        with suppress(InputsNotFoundError), backend.session(lazy=False):
            supply = _searched(backend, target, info, case, fixed, "float32")
            note = "the inputs are float32, because forward views their memory as complex64"
            return replace(supply, notes=(note, *supply.notes))
    try:
        with backend.session(lazy=False):
            return _searched(backend, target, info, case, fixed, case.settings.dtype)
    except InputsNotFoundError as error:
        if info.outer:
            return _inferred(backend, target, replace(info, parameters=info.outer, outer=()), case, fixed)
        said = error.refuses_double or str(error.__cause__)
        refusal = f"forward raises with float64 inputs ({next(iter(said.splitlines()), '')})"
        if case.settings.dtype != "float64" or not (error.refuses_double or complains_of_precision(said)):
            raise
        try:
            with backend.session(lazy=False):
                supply = _searched(backend, target, info, case, fixed, "float32")
        except InputsNotFoundError as again:
            raise InputsNotFoundError(f"{again}\n  {refusal}, and those tried last are float32") from again.__cause__
    note = f"the inputs are float32, because {refusal}"
    return replace(supply, notes=(note, *supply.notes))


def _views_as_complex64(info: TargetInfo) -> bool:
    code = _code(info)
    if "complex64" not in code and "cfloat" not in code:
        return False
    from gradcli.inputs.hints.uses.memory import precision_viewed

    return precision_viewed(code) == "float32"


def _code(info: TargetInfo) -> str:
    """The source of forward and of the functions that it passes its arguments on to."""
    return read_hints(info, [parameter.name for parameter in info.parameters]).used


def _searched(
    backend: Backend, target: object, info: TargetInfo, case: CheckCase, fixed: tuple[InputSpec, ...], dtype: str
) -> Supply:
    held = {name for name, _ in info.held}
    own = tuple(spec for spec in fixed if spec.name in held)
    fixed = tuple(spec for spec in fixed if spec.name not in held)
    found = found_inputs(backend, target, info, case, fixed, dtype)
    specs, alternatives = (*found.specs, *own), found.alternatives
    if dtype != case.settings.dtype:
        specs, alternatives = _of_dtype(specs, dtype), tuple(_of_dtype(each, dtype) for each in alternatives)
    numbers = differentiated(backend, target, info, case, specs)
    notes: tuple[str, ...] = ()
    if info.differentiates_numbers:
        alternatives = tuple(_with_numbers(each, numbers, info, case)[0] for each in alternatives)
        specs, notes = _with_numbers(specs, numbers, info, case)
    elif numbers:
        alternatives += (as_tensors(specs, numbers, info),)
    supply = _drawn(specs, alternatives, info, case, InputsFrom.INFERRED)
    return replace(supply, notes=(*found.notes, *notes))


def _with_numbers(
    specs: tuple[InputSpec, ...], numbers: Mapping[str, float], info: TargetInfo, case: CheckCase
) -> tuple[tuple[InputSpec, ...], tuple[str, ...]]:
    """The inputs with the numbers that have a gradient as tensors; and notes on those that the user gave."""
    given = {spec.name for spec in case.spec.inputs or ()}
    chosen = {name: value for name, value in numbers.items() if name not in given}
    return as_tensors(specs, chosen, info) if chosen else specs, note_on_constants(numbers, given)


def _of_dtype(specs: tuple[InputSpec, ...], dtype: str) -> tuple[InputSpec, ...]:
    """The specs, the floating tensors of the run's precision among them in `dtype`."""
    return tuple(replace(spec, dtype=dtype) if takes_dtype(spec) else spec for spec in specs)


def _samples_of(sample_inputs: Callable[[], object]) -> list[tuple[object, ...]]:
    try:
        returned = sample_inputs()
    except BaseException as error:
        if is_interrupt(error):
            raise
        raise user_code_error(error, "sample_inputs") from error
    if isinstance(returned, tuple) and returned and not all(isinstance(part, tuple) for part in returned):
        return [returned]
    if isinstance(returned, tuple | list) and returned and all(isinstance(part, tuple) for part in returned):
        return list(returned)
    raise UserCodeError(
        f"sample_inputs returned {type(returned).__name__}; expected a tuple of forward's arguments, or several in a "
        "list",
        phase="sample_inputs",
    )


def _is_random(spec: InputSpec) -> bool:
    return spec.kind == "tensor" and parse_domain(spec.domain)[0].random
