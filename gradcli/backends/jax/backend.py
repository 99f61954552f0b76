"""JAX as a backend: the one file that names it."""

import contextlib
import inspect
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.arrays.caller import ArrayCaller
from gradcli.backends.arrays.programs import Program, Variant, compiled_variants, pulled
from gradcli.backends.arrays.subject import adopted, number
from gradcli.backends.arrays.transforms import Pull, TransformedSubject, Transforms
from gradcli.backends.arrays.trees import expanded, places_of
from gradcli.backends.attribution import users_frames
from gradcli.backends.base import Subject
from gradcli.backends.documentation import documentation_of
from gradcli.backends.guard import users_code
from gradcli.backends.jax.compilations import compilations_reused
from gradcli.backends.jax.configuration import in_64_bits, keys_from, known_files, whole_tracebacks
from gradcli.backends.jax.framework import JaxFramework, conjugate
from gradcli.backends.jax.iterations import trips_of
from gradcli.backends.jax.pairs import joined
from gradcli.backends.jax.rejected_gradients import is_of_a_number, lacks_a_sum
from gradcli.backends.jax.rules import (
    backward_of,
    fixed_positions,
    function_of,
    is_vjp,
    require_definition,
    rule_from,
    rule_is_defined,
    rule_of,
    rules_of,
    saving_of,
)
from gradcli.backends.jax.shared_loops import loops_compiled_once
from gradcli.backends.jax.steps import loops_of, roundoff_inside
from gradcli.backends.jax.tracing import vjp_trace
from gradcli.backends.tensor.pairs import Pair
from gradcli.backends.traced import TracedBackend, TracedCalls
from gradcli.cases import Argument
from gradcli.errors import TargetError, UsageError
from gradcli.targets import Parameter, TargetInfo, Trial, outer_parameters, parameters_of, takes_keywords
from gradcli.traces import TraceGraph
from gradcli.watchdog.case import Distance

_WIDE, _NARROW = ("float64", "complex128", "f64[", "c128["), ("float32", "complex64", "f32[", "c64[")


@final
class JaxTransforms(Transforms):
    """Pytrees, vjp and jvp."""

    def __init__(self) -> None:
        self.framework = JaxFramework()

    def leaves(self, value: object) -> list[tuple[str, Any]]:
        """The leaves with their key paths."""
        from jax import tree_util

        return [(tree_util.keystr(path), leaf) for path, leaf in tree_util.tree_flatten_with_path(value)[0]]

    def rebuilt(self, value: object, leaves: Sequence[Any]) -> Any:
        """The same pytree around other leaves."""
        from jax import tree_util

        return tree_util.tree_unflatten(tree_util.tree_structure(value), leaves)

    def adopted(self, name: str, leaf: object) -> Argument:
        """Arrays and numbers with a fraction are inputs."""
        array = self.framework.to_array(leaf) if self.framework.is_tensor(leaf) else leaf
        argument = adopted(name, array)
        return argument if argument.is_tensor else number(name, array)

    @contextlib.contextmanager
    def running(
        self, *, silent: bool, wide: bool = True, asked: bool = False, distance: Distance | None = None
    ) -> Iterator[None]:
        """Under the guard, in 64 bits unless in the precision that the user has set.

        The guard is the innermost: what restores JAX's settings must not be interrupted.
        """
        guard = users_code(self.framework, silent=silent, asked=asked, distance=distance)
        precision = in_64_bits() if wide else contextlib.nullcontext()
        with compilations_reused(), loops_compiled_once(), known_files(), precision, guard:
            yield

    def refuses_64_bits(self, error: BaseException) -> bool:
        """What JAX says of arrays of different precisions, where the user has not asked for 64 bits."""
        import jax

        text = str(error)
        mixed = any(name in text for name in _WIDE) and any(name in text for name in _NARROW)
        return not jax.config.jax_enable_x64 and isinstance(error, TypeError | ValueError) and mixed

    def adjoint(self, function: Callable[..., Any], *tensors: Any) -> tuple[tuple[Any, ...], Pull]:
        """jax.vjp but for the conjugation.

        JAX pulls back along the transpose. Conjugated before and after, that is the adjoint for the real pairing
        Re <a, b>, which the numerics, PyTorch and the engine all mean by a gradient.
        """
        import jax

        found, pull = jax.vjp(function, *tensors)

        def pull_back(cotangents: Sequence[Any]) -> tuple[Any, ...]:
            given = tuple(conjugate(c).astype(o.dtype) for c, o in zip(cotangents, found, strict=True))
            return tuple(map(conjugate, pull(given)))

        return found, pull_back

    def cotangent(self, output: Any, value: Any | None) -> Any:
        """Conjugated, in the output's dtype; float0 for an output without a gradient."""
        import jax

        if value is None:
            return np.zeros(np.shape(output), jax.dtypes.float0)
        return conjugate(value).astype(output.dtype)

    @contextlib.contextmanager
    def otherwise_compiled(self, target: Any, function: Callable[..., Any]) -> Iterator[Sequence[Variant]]:
        """jax.jit, or jax.disable_jit for a target that is jitted."""
        import jax

        if type(target).__name__ == "PjitFunction":
            with jax.disable_jit():
                yield (partial(pulled, self, function),)
            return
        yield compiled_variants(self, function)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """jax.jit."""
        import jax

        return jax.jit(function)  # type: ignore[no-any-return]  # JAX is not followed by the type checker

    def constant(self, array: NDArray[Any]) -> Any:
        """Made outside of any trace."""
        import jax

        with jax.ensure_compile_time_eval():
            return self.framework.from_array(array)

    def key(self, array: NDArray[Any], *, typed: bool) -> Any:
        """Made outside of any trace."""
        return keys_from(array, typed=typed)

    def loops_of(self, function: Callable[..., Any], *tensors: Any) -> list[int]:
        """From the function's jaxpr."""
        return loops_of(function, *tensors)

    def trips_of(self, function: Callable[..., Any], *tensors: Any) -> Callable[..., Any] | None:
        """From the function's jaxpr, compiled with a counter."""
        return trips_of(function, *tensors)

    def roundoff_inside(self, function: Callable[..., Any], *tensors: Any) -> float:
        """From the function's jaxpr."""
        return roundoff_inside(function, *tensors)

    def asks_for_values(self, error: BaseException) -> bool:
        """The errors of tracers that are treated as numbers."""
        import jax

        kinds = (
            jax.errors.ConcretizationTypeError,
            jax.errors.TracerArrayConversionError,
            jax.errors.TracerIntegerConversionError,
            jax.errors.NonConcreteBooleanIndexError,
        )
        return isinstance(error, kinds)

    def rehearse(self, function: Callable[..., Any], values: dict[int, Any]) -> bool:
        """jax.eval_shape: a new shape costs JAX a compilation, this costs none."""
        import jax

        try:
            jax.eval_shape(function, values)
        except Exception as error:
            if not self.asks_for_values(error):
                raise
            return False
        return True


@final
class JaxBackend(TracedBackend):
    """custom_vjp and custom_jvp functions, jitted or not, and callables on jax arrays."""

    name = "jax"

    def __init__(self) -> None:
        self.transforms = JaxTransforms()
        self.framework = self.transforms.framework
        self._programs: tuple[object, dict[Hashable, Program]] = (None, {})

    def claims(self, target: object) -> bool:
        """Whether the target is an object of JAX's own that can be called; told by its type alone."""
        return callable(target) and type(target).__module__.split(".")[0] in ("jax", "jaxlib")

    def joined(self, pair: Pair) -> object:
        """A custom_vjp function of both."""
        return joined(pair)

    def is_complete(self, target: object) -> bool:
        """Whether the target is a custom_vjp or custom_jvp function whose rule is defined."""
        rule = rule_of(target)
        return rule is not None and rule_is_defined(rule)

    def describe(self, target: object) -> TargetInfo:
        """Parameters of the function, and its own source and that of its backward rule."""
        rule = rule_of(target)
        if rule is not None:
            require_definition(rule, _name(target))
        primal: Any = target if rule is None else function_of(rule)
        if not callable(primal):
            raise TargetError(f"expected a function of jax arrays, got {type(primal).__name__}")
        try:
            parameters = parameters_of(primal, skip=0)
        except (TypeError, ValueError):
            parameters = (Parameter(name="inputs", variadic=True),)
        fixed = fixed_positions(rule)
        parameters = tuple(replace(each, static=place in fixed) for place, each in enumerate(parameters))
        sample_inputs = getattr(target, "sample_inputs", None)
        return TargetInfo(
            name=_name(target if rule is None else primal),
            backend=self.name,
            parameters=parameters,
            forward=inspect.unwrap(primal),
            backward=backward_of(rule),
            setup_context=saving_of(rule),
            inner=rule is not None and not is_vjp(rule),
            rules=rules_of(rule),
            sample_inputs=sample_inputs if callable(sample_inputs) else None,
            has_jvp=rule is not None and not is_vjp(rule),
            outer=outer_parameters(primal),
            takes_keywords=rule is None and takes_keywords(primal),
            differentiates_numbers=rule is not None,
            documentation=documentation_of(inspect.unwrap(primal)),
        )

    def attempt(self, target: object, arguments: Sequence[Argument], *, gradients: bool = False) -> Trial:
        """Run the function once, silently; abstractly first, since a new shape costs JAX a compilation."""
        with whole_tracebacks():
            return self._attempted(target, arguments, gradients=gradients)

    def _attempted(self, target: object, arguments: Sequence[Argument], *, gradients: bool) -> Trial:
        given = self._expanded(target, arguments)
        constants = places_of(given, fixed_positions(rule_of(target)), self.transforms)
        caller = ArrayCaller(self.transforms, target, given, constants=constants)
        values = {i: np.array(a.value) for i, a in enumerate(given) if a.is_tensor}
        try:
            outputs, wide, rehearsed = self._outputs(caller, values)
        except (Exception, SystemExit) as error:
            return Trial(error=error)
        differentiable = tuple(output.dtype.kind in "fc" for output in outputs)
        tracked = [i for i, a in enumerate(given) if a.is_tensor and a.requires_grad]
        if not gradients or not any(differentiable) or not tracked:
            return Trial(outputs=outputs, differentiable=differentiable)
        try:
            with self.transforms.running(silent=True, wide=wide):
                found = caller.gradients_of_sum(values, tracked)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            # JAX refuses what the rule returned: for the checks to tell
            refused = not users_frames(error.__traceback__)
            if refused and lacks_a_sum(str(error)) and not is_of_a_number(str(error), given):
                return Trial(outputs=outputs, differentiable=differentiable, lacks_a_sum=True)
            return Trial(outputs=outputs, differentiable=differentiable, backward_error=error)
        if any(
            g is not None and g.dtype.kind == "c" != values[i].dtype.kind for i, g in zip(tracked, found, strict=True)
        ):
            complex_one = TypeError("expected a real gradient for a real input, got a complex one")
            return Trial(outputs=outputs, differentiable=differentiable, backward_error=complex_one)
        return Trial(outputs=outputs, differentiable=differentiable, gradients=found, needs_values=not rehearsed)

    def _outputs(
        self, caller: ArrayCaller, values: dict[int, NDArray[Any]], *, wide: bool = True
    ) -> tuple[tuple[NDArray[Any], ...], bool, bool]:
        """What the function returns, whether in 64 bits, and whether it runs on shapes alone."""
        try:
            with self.transforms.running(silent=True, wide=wide):
                rehearsed = caller.rehearse(values)
                self._require_indices_in_bounds(caller, values)
                found = caller.run(values)
                return tuple(self.framework.to_array(o) for o in found if self.framework.is_tensor(o)), wide, rehearsed
        except Exception as error:
            if not wide or not self.transforms.refuses_64_bits(error):
                raise
        return self._outputs(caller, values, wide=False)

    def bind(self, target: object, arguments: Sequence[Argument], *, info: TargetInfo | None = None) -> Subject:
        """The target at these arguments. Raises UserCodeError."""
        known, rule = info or self.describe(target), rule_of(target)
        given, own = self._expanded(target, arguments), None if rule is None else rule_from(rule)
        if self._programs[0] is not target:  # those of one target are kept, for all its samples
            self._programs = (target, {})
        return TransformedSubject(self.transforms, known, target, own, given, programs=self._programs[1])

    def traced(
        self,
        target: object,
        arguments: Sequence[Argument],
        cotangent: Callable[[Any], Any],
        calls: TracedCalls | None = None,
    ) -> TraceGraph:
        """The graph of the target's vjp. Raises TargetError, UserCodeError."""
        given = self._expanded(target, arguments)
        return vjp_trace(self.transforms, target, given, cotangent, self.transforms.asks_for_values, calls)

    def adopt(self, values: Sequence[object]) -> tuple[Argument, ...]:
        """Arguments from jax and NumPy arrays and Python values; a pytree of them is taken apart when it is bound."""
        arrays = [self.framework.to_array(v) if self.framework.is_tensor(v) else v for v in values]
        return tuple(adopted(f"arg{n}", value) for n, value in enumerate(arrays))

    def _require_indices_in_bounds(self, caller: ArrayCaller, values: dict[int, NDArray[Any]]) -> None:
        """Refuse indices that JAX would silently clamp, if the function can be traced. Raises IndexError."""
        if not any(value.dtype.kind in "iu" for value in values.values()):
            return
        from jax.experimental import checkify

        checked = checkify.checkify(lambda given: caller.run({**values, **given}), errors=checkify.index_checks)
        try:
            error, _ = checked(caller.traced(values))
        except (Exception, SystemExit):  # it cannot be traced; whether it runs is seen next
            return
        if (text := error.get()) is not None:
            raise IndexError(text)

    def _expanded(self, target: object, arguments: Sequence[Argument]) -> tuple[Argument, ...]:
        fixed = fixed_positions(rule_of(target))
        given = [replace(a, requires_grad=False) if n in fixed else a for n, a in enumerate(arguments)]
        return expanded(given, self.transforms, fixed=fixed)


def _name(target: object) -> str:
    return str(getattr(target, "__qualname__", type(target).__name__))
