"""Forward mode and batched derivatives: the other ways in which a framework asks a function for its derivative."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from gradcli.backends.base import FloatArray
from gradcli.checks.gradient import evidence_of
from gradcli.numerics.maps.floats import Matrix
from gradcli.numerics.maps.vector_map import VectorMap
from gradcli.numerics.verify import verify
from gradcli.results import Evidence, Mismatch
from gradcli.tolerance.bounded import SEED, GradcheckWarning
from gradcli.tolerance.claim import Claim, claims_of
from gradcli.tolerance.options import Options
from gradcli.tolerance.problem import Problem, array_of, as_tuple
from gradcli.verdict import Verdict

BATCH = 4
_BATCH_FAILED = "gradcheck or gradgradcheck failed while testing batched gradient computation: "
_BATCH_TOLERANCE = 4e6
"""In units of the precision's rounding, relative to the largest entry: a batch reorders sums at most."""


@final
class ForwardModeMap(VectorMap):
    """A function whose claimed derivative is what forward mode gives; J^T u is taken from its columns."""

    def __init__(self, inner: VectorMap, columns: Callable[[FloatArray], Matrix]) -> None:
        self.domain = inner.domain
        self.codomain = inner.codomain
        self._inner = inner
        self._columns = columns
        self._point: bytes = b""
        self._jacobian: Matrix = np.zeros((0, 0))

    def value(self, x: FloatArray) -> FloatArray:
        """The function's own value."""
        return self._inner.value(x)

    def value_noise(self, x: FloatArray) -> FloatArray | None:
        """The function's own noise."""
        return self._inner.value_noise(x)

    def vjp(self, x: FloatArray, cotangent: FloatArray) -> FloatArray:
        """J^T u from the columns of J, kept for the last point."""
        if x.tobytes() != self._point:
            self._jacobian, self._point = self._columns(x), x.tobytes()
        pulled: FloatArray = self._jacobian.T @ cotangent
        return pulled


def check_forward_mode(problem: Problem, options: Options, significance: float) -> None:
    """Compare every column that forward mode gives with differences and their error bound; batches too, if asked for.

    Raises:
        GradcheckError: forward mode is wrong.
        UserCodeError: the function raised in the numerics.
    """
    claim = next(claims_of(problem))
    evidence = _evidence(problem, claim, significance)
    wrong = [e for e in evidence if e.mismatch is not None]
    if wrong:
        raise problem.error("\n".join(_described(e, e.mismatch) for e in wrong if e.mismatch is not None))
    undecided = [e for e in evidence if e.verdict is Verdict.INCONCLUSIVE]
    if undecided:
        reasons = ", ".join(sorted({e.reason.value for e in undecided if e.reason is not None}))
        text = (
            f"forward mode of {claim.name} was accepted without being checked, because no error bound is "
            f"available ({reasons})"
        )
        warnings.warn(text, GradcheckWarning, stacklevel=5)
    if options.check_batched_forward_grad:
        check_batched_forward_mode(problem)


def _described(evidence: Evidence, seen: Mismatch) -> str:
    """A wrong column of forward mode in words, with its worst entry."""
    row, column = np.unravel_index(np.argmax(np.abs(seen.claimed - seen.numeric)), seen.claimed.shape)
    return (
        f"Jacobian mismatch for output {evidence.output} with respect to input {seen.input},\njvp-mismatch: forward "
        f"mode is wrong for {evidence.input}: the derivative of output entry {seen.rows[row]} with respect to input "
        f"entry {seen.columns[column]} is {seen.numeric[row, column]:.9g} ± {seen.bound[row, column]:.1g} by finite "
        f"differences, and {seen.claimed[row, column]:.9g} by forward mode"
    )


def _evidence(problem: Problem, claim: Claim, significance: float) -> tuple[Evidence, ...]:
    subject = claim.bound()
    inner = subject.derivative_map(1)

    def columns(x: FloatArray) -> Matrix:
        point = inner.domain.unflatten(x)
        pushed = [_pushed(problem, inner, point, row) for row in np.eye(inner.domain.size)]
        return np.array(pushed).reshape(inner.domain.size, inner.codomain.size).T

    with subject.session():
        map_ = ForwardModeMap(inner, columns)
        found = verify(map_, subject.point, seed=SEED, significance=significance)
        return tuple(evidence_of("forward-mode", 1, map_, found, subject.output_numbers))


def _pushed(problem: Problem, map_: VectorMap, point: Sequence[Any], tangent: FloatArray) -> FloatArray:
    """J v by dual numbers, flat; an output without a tangent counts as constant."""
    forward_ad = problem.torch.autograd.forward_ad
    inputs = list(problem.inputs)
    with forward_ad.dual_level():
        for place, primal, part in zip(problem.places, point, map_.domain.unflatten(tangent), strict=True):
            like = problem.inputs[place]
            inputs[place] = forward_ad.make_dual(problem.tensor(primal, like), problem.tensor(part, like))
        found = _tangents(problem, forward_ad, inputs)
        parts = [array_of(tangent) for tangent in found]
    return map_.codomain.flatten(parts)


def _tangents(problem: Problem, forward_ad: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """The tangents of the outputs that have a gradient, zeros where there is none."""
    outputs = as_tuple(problem.function(*inputs))
    unpacked = [forward_ad.unpack_dual(outputs[number]) for number in problem.output_positions]
    return tuple(problem.torch.zeros_like(dual.primal) if dual.tangent is None else dual.tangent for dual in unpacked)


def check_batched_gradients(problem: Problem) -> None:
    """Backward over a batch of cotangents must agree with backward for each of them.

    Raises:
        GradcheckError: it does not, or the batch cannot be computed.
    """
    for number, output in enumerate(problem.outputs()):
        if not output.requires_grad:
            continue
        source = np.random.default_rng([0, number])
        seeds = [problem.tensor(_drawn(source, array_of(output)), output) for _ in range(BATCH)]
        single = [problem.gradients([output], [seed]) for seed in seeds]
        try:
            batch = problem.gradients([output], [problem.torch.stack(seeds)], is_grads_batched=True)
        except RuntimeError as error:
            raise problem.error(f"{_BATCH_FAILED}output {number}: {error}") from error
        names = [f"the gradient of output {number} for input {place}" for place in problem.places]
        _compare(problem, batch, list(zip(*single, strict=True)), names)


def check_batched_forward_mode(problem: Problem) -> None:
    """Forward mode over a batch of tangents must agree with forward mode for each of them.

    Raises:
        GradcheckError: it does not, or the batch cannot be computed.
        ValueError: the framework has no vmap.
    """
    internals = vars(problem.torch).get("_vmap_internals")
    if internals is None:
        raise ValueError(f"check_batched_forward_grad=True needs vmap, which {problem.torch.__name__} does not have")
    forward_ad = problem.torch.autograd.forward_ad
    for number, tensor in enumerate(problem.tracked()):
        source = np.random.default_rng([1, number])
        tangents = [_drawn(source, array_of(tensor)) for _ in range(BATCH)]

        def along(tangent: Any, place: int = problem.places[number]) -> tuple[Any, ...]:
            inputs = [v.detach() if i in problem.places else v for i, v in enumerate(problem.inputs)]
            with forward_ad.dual_level():
                inputs[place] = forward_ad.make_dual(inputs[place], tangent)
                return _tangents(problem, forward_ad, inputs)

        stacked = problem.torch.stack([problem.tensor(tangent, tensor) for tangent in tangents])
        single = [along(row) for row in stacked]
        try:
            batch = internals._vmap(along)(stacked)
        except RuntimeError as error:
            raise problem.error(
                f"gradcheck failed while testing batched gradient computation in forward mode: input {number}: {error}"
            ) from error
        names = [
            f"the tangent of output {out} along input {problem.places[number]}" for out in problem.output_positions
        ]
        _compare(problem, batch, list(zip(*single, strict=True)), names)


def _drawn(source: np.random.Generator, like: Any) -> Any:
    values = source.standard_normal(like.shape)
    return values + 1j * source.standard_normal(like.shape) if like.dtype.kind == "c" else values


def _compare(problem: Problem, batch: Sequence[Any], single: Sequence[Sequence[Any]], names: Sequence[str]) -> None:
    for name, together, alone in zip(names, batch, single, strict=True):
        if together is None or any(part is None for part in alone):
            continue
        found, wanted = array_of(together), np.stack([array_of(part) for part in alone])
        scale = float(np.max(np.abs(wanted), initial=0.0))
        room = _BATCH_TOLERANCE * float(np.finfo(wanted.dtype).eps) * scale
        if found.shape != wanted.shape or float(np.max(np.abs(found - wanted), initial=0.0)) > room:
            raise problem.error(
                f"{_BATCH_FAILED}{name} differs between one call on a batch of {BATCH} and {BATCH} "
                f"single calls:\n{found}\n{wanted}"
            )
