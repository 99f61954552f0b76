"""A term that a Jacobian lacks, identified by the form of the difference: low rank in every slice, or off-diagonal.

If input and output have the same shape, the residual splits into slices: the entries that share their index along all
axes but some. A missing term q·sum(g·p) over a slice is an outer product q pᵀ there, with its own coefficient for each
slice (1/σ in a normalisation); the k² numbers of a slice then depend on one. Ranks and spans are decided with the error
bounds of the differences, so neither is an accident; both must hold at other inputs and at other sizes too.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gradcli.backends.base import FloatArray
from gradcli.diagnosis.slips.elsewhere import at_other_sizes
from gradcli.diagnosis.suspect import Named, Suspect
from gradcli.diagnosis.table import Table
from gradcli.findings import FindingKind
from gradcli.frozen import dataclass

_LEAST = 3
"""With fewer entries in a slice, a rank proves nothing."""
_SPAN = 1e-6
"""A vector counts as lying in a span if its part outside, relative to its length, is below this."""
_BOUNDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slices:
    """The residual and both Jacobians in slices along `axes`, shape (slices, outputs, entries); `error` bounds each."""

    axes: tuple[int, ...]
    lacking: FloatArray
    right: FloatArray
    claimed: FloatArray
    error: FloatArray

    @property
    def width(self) -> int:
        """How many outputs, and entries, a slice has."""
        return int(self.lacking.shape[1])

    def claims(self, terms: Sequence[tuple[FloatArray, FloatArray]]) -> bool:
        """Whether all that is claimed off the diagonal are these terms, each with some factor: none of them lacks.

        A term is given by its weights of grad_output and by what multiplies the sum, a row for each slice.
        """
        off = ~np.eye(self.width, dtype=bool)
        shares = np.stack([(q[:, :, None] * p[:, None, :])[:, off] for q, p in terms], axis=2)
        claimed = self.claimed[:, off]
        with np.errstate(all="ignore"):
            factors = np.linalg.pinv(shares) @ claimed[:, :, None]
        left = np.linalg.norm(claimed - (shares @ factors)[:, :, 0], axis=1)
        sizes = np.linalg.norm(shares * factors.transpose(0, 2, 1), axis=1)
        return bool((left <= _SPAN * np.linalg.norm(claimed, axis=1)).all() and (sizes > self.error[:, None]).all())

    def ranks(self, matrices: FloatArray) -> NDArray[np.intp]:
        """The rank of each slice, beyond what may be error."""
        values = np.linalg.svd(matrices, compute_uv=False)
        ranks: NDArray[np.intp] = (values > self.error[:, None]).sum(axis=1)
        return ranks


def lacking_form(suspect: Suspect) -> Named | None:
    """The gradient lacks one or two terms of low rank, or all contributions of other entries."""
    text = _term_of(suspect)
    if text is None:
        return None
    other = suspect.elsewhere
    if other is not None and other.table is not None and _term_of(other) != text:
        return None
    longer = None if suspect.facts.is_costly else suspect.at(at_other_sizes(suspect.facts))
    if longer is not None and _refutes(longer, text):
        return None
    return FindingKind.MISSING_TERM, f"{suspect.name}: {text}", {}


def _refutes(longer: Suspect, text: str) -> bool:
    """Whether inputs of other sizes lack another term; a gradient of one number may have another factor there too."""
    table = longer.table
    if table is None or not table.known.all() or not table.wrong.any():
        return False
    if longer.facts.subject.codomain.size > 1:
        return _term_of(longer) != text
    named = [v for name, v in _candidates(longer, 0, tuple(range(len(longer.shape)))) if _lacks(name) == text]
    both = np.concatenate([*named[:1], table.claimed]).T
    return bool(named) and not _spans(np.linalg.qr(both)[0][None], table.residual, _allowed(table))


def _term_of(suspect: Suspect) -> str | None:
    codomain, output = suspect.facts.subject.codomain, suspect.output
    table = None if output is None else suspect.table_of_output(output)
    if output is None or table is None or not table.known.all() or not np.any(table.claimed):
        return None
    if codomain.size == 1:
        return _of_one_output(suspect, table)
    if codomain.blocks[output].shape != suspect.shape:
        return None
    slices = _sliced(table, suspect.shape)
    return None if slices is None else _off_diagonal(slices) or _low_rank(suspect, output, slices)


def _sliced(table: Table, shape: tuple[int, ...]) -> _Slices | None:
    """The residual in slices along the axes on which a wrong entry's output and input differ; None without one."""
    lacking = np.where(table.wrong, table.residual, 0.0)
    places = np.indices(shape).reshape(len(shape), -1)
    rows, columns = np.nonzero(lacking)
    axes = tuple(axis for axis in range(len(shape)) if (places[axis][rows] != places[axis][columns]).any())
    if not axes:
        return None
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    order = np.arange(int(np.prod(shape))).reshape(shape).transpose(*rest, *axes)
    index = order.reshape(-1, int(np.prod([shape[axis] for axis in axes])))
    pick = (index[:, :, None], index[:, None, :])
    error = _BOUNDS * np.linalg.norm(table.floor[pick], axis=(1, 2))
    return _Slices(
        axes=axes,
        lacking=table.residual[pick],
        right=table.numeric[pick],
        claimed=table.claimed[pick],
        error=error,
    )


def _off_diagonal(slices: _Slices) -> str | None:
    """The returned Jacobian is the diagonal of the right one, and zero off the diagonal."""
    diagonal = np.eye(slices.claimed.shape[1], dtype=bool)
    if not np.array_equal(slices.claimed, np.where(diagonal, slices.claimed, 0.0)):
        return None
    met = np.abs(np.where(diagonal, slices.lacking, 0.0)).max(axis=(1, 2)) <= slices.error
    if not met.all() or not np.any(slices.claimed):
        return None
    where = f"ax{'es' if len(slices.axes) > 1 else 'is'} {', '.join(map(str, slices.axes))}"
    return (
        "backward uses only the diagonal of the Jacobian; the off-diagonal terms along "
        f"{where} are missing (as in a softmax treated as elementwise)"
    )


def _low_rank(suspect: Suspect, output: int, slices: _Slices) -> str | None:
    ranks = slices.ranks(slices.lacking)
    rank = int(ranks.max(initial=0))
    if rank not in (1, 2) or slices.width < _LEAST + rank - 1 or (ranks == 0).all():
        return None
    live = ranks == rank
    if not live.all() or (slices.ranks(slices.right) <= rank).any():
        return None
    left, values, right = np.linalg.svd(slices.lacking)
    allowed = np.maximum(_SPAN, slices.error / values[:, rank - 1])
    candidates = list(_candidates(suspect, output, slices.axes))
    inner = [c for c in candidates if _spans(left[:, :, :rank], c[1], allowed)]
    outer = [c for c in candidates if _spans(right[:, :rank].transpose(0, 2, 1), c[1], allowed)]
    axes = None if len(slices.axes) == len(suspect.shape) else slices.axes
    label = "grad_output" if len(suspect.facts.subject.codomain.blocks) == 1 else f"grad_output[{output}]"
    summed = _Sum(of=label, axes=axes)
    if rank == 2:
        return _two_terms(slices, inner, outer, summed)
    own = (left[:, :, 0], right[:, 0, :])
    is_there = any(slices.claims([own, *more]) for more in ([], *([(each, each)] for _, each in candidates)))
    return _one_term(inner, outer, summed, is_there=is_there)


_Candidate = tuple[str, FloatArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """The sum in a term: over `axes` (None for all), `of` something times some quantity."""

    of: str
    axes: tuple[int, ...] | None


def _one_term(inner: Sequence[_Candidate], outer: Sequence[_Candidate], summed: _Sum, *, is_there: bool) -> str:
    term = _product("c" if outer else "a", outer[0][0] if outer else "", inner[0][0] if inner else "b", summed)
    unknown = " and ".join(letter for letter, known in (("a", outer), ("b", inner)) if not known)
    where = f"where c is {_constant(summed)}" if outer else ""
    where += f"{', ' if outer and unknown else ''}{f'with some weights {unknown}' if unknown else ''}"
    if is_there:
        return f"the returned gradient has the term {term} with a wrong factor, {where}; with the right one it is right"
    return f"the returned gradient lacks the term {term}, {where}; with the term added, it is right"


def _product(constant: str, outer: str, inner: str, summed: _Sum) -> str:
    """A term as a formula, as in c·x·sum(grad_output·output, axis 1)."""
    over = "" if summed.axes is None else f", axis {', '.join(map(str, summed.axes))}"
    return "·".join((constant, *([outer] if outer else []), f"sum({summed.of}{'·' if inner else ''}{inner}{over})"))


def _constant(summed: _Sum) -> str:
    if summed.axes is None:
        return "the same in every entry"
    return f"constant along ax{'es' if len(summed.axes) > 1 else 'is'} {', '.join(map(str, summed.axes))}"


def _two_terms(slices: _Slices, inner: Sequence[_Candidate], outer: Sequence[_Candidate], summed: _Sum) -> str | None:
    """Two terms p·sum(g·q), in the first pairs of names for which the residual is diagonal."""
    for (p, ps), (q, qs) in itertools.permutations(outer, 2):
        for (a, as_), (b, bs) in itertools.permutations(inner, 2):
            outers, inners = np.stack([ps, qs], axis=2), np.stack([as_, bs], axis=2)
            core = np.linalg.pinv(inners) @ slices.lacking @ np.linalg.pinv(outers).transpose(0, 2, 1)
            if not np.isfinite(core).all():
                continue
            rebuilt = inners @ (core * np.eye(2)) @ outers.transpose(0, 2, 1)
            if (np.linalg.norm(rebuilt - slices.lacking, axis=(1, 2)) <= slices.error).all():
                terms = f"{_product('c', p, a, summed)} and {_product('d', q, b, summed)}"
                where = f"where c and d are {_constant(summed)}"
                if slices.claims([(as_, ps), (bs, qs)]):
                    return (
                        f"the returned gradient has the terms {terms} with wrong factors, {where}; with the right ones "
                        "it is right"
                    )
                return f"the returned gradient lacks the terms {terms}, {where}; with both added, it is right"
    return None


def _spans(span: FloatArray, vectors: FloatArray, allowed: FloatArray) -> bool:
    """Whether in every slice the vector (slices, k) lies in the span of orthonormal columns (slices, k, r)."""
    sizes = np.linalg.norm(vectors, axis=1)
    if not np.isfinite(sizes).all() or not (sizes > 0).all():
        return False
    inside = np.einsum("skr,sr->sk", span, np.einsum("skr,sk->sr", span, vectors))
    return bool((np.linalg.norm(vectors - inside, axis=1) <= allowed * sizes).all())


def _candidates(suspect: Suspect, place: int, axes: tuple[int, ...]) -> Iterator[_Candidate]:
    """Named vectors of every slice, shape (slices, k): 1, output, input, centred input, exp(output), times others."""
    subject, shape = suspect.facts.subject, suspect.shape
    own = subject.arguments[subject.active[suspect.block]]
    value, output = (
        np.asarray(own.value, dtype=np.float64),
        np.asarray(subject.call().outputs[subject.output_numbers[place]]),
    )
    centred = value - value.mean(axis=axes or None, keepdims=True)
    with np.errstate(all="ignore"):
        grown = np.exp(output)
    mean = f"mean({own.name})"
    named = [("", np.ones(shape)), ("output", output), (own.name, value), (f"({own.name} - {mean})", centred)]
    named.append(("exp(output)", grown))
    others = [("", np.ones(()))] + [
        (a.name, np.asarray(a.value))
        for a in subject.arguments
        if a.is_tensor and a is not own and a.sparsity is None and np.asarray(a.value).dtype.kind == "f"
    ]
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    for (text, one), (name, other) in itertools.product(named, others):
        try:
            product = np.broadcast_to(one * other, shape)
        except ValueError:  # shapes that do not broadcast
            continue
        joined = "·".join(part for part in (name, text) if part)
        vectors = product.transpose(*rest, *axes).reshape(-1, int(np.prod([shape[axis] for axis in axes])))
        yield joined, np.array(vectors, dtype=np.float64)


def _of_one_output(suspect: Suspect, table: Table) -> str | None:
    """The missing part of the gradient of a single number is proportional to a named vector."""
    count = table.claimed.shape[1]
    if count < _LEAST or not table.wrong.any():
        return None
    lacking = table.residual
    span, allowed = (lacking / np.linalg.norm(lacking))[:, :, None], _allowed(table)
    axes = tuple(range(len(suspect.shape)))
    for name, vectors in _candidates(suspect, 0, axes):
        if _spans(span, vectors, allowed) and not _spans(span, table.claimed, allowed):
            return _lacks(name)
    return None


def _lacks(name: str) -> str:
    """The sentence on a term of the gradient of one number, which is proportional to a named vector, or constant."""
    term = f"proportional to {name}" if name else "that is the same in every entry"
    return f"the returned gradient lacks a term {term}; with the term added, it is right"


def _allowed(table: Table) -> FloatArray:
    """How far the vector that a table of one output lacks may lie outside of a span, relative to its length."""
    return np.array([max(_SPAN, _BOUNDS * float(np.linalg.norm(table.floor) / np.linalg.norm(table.residual)))])
