"""How values are drawn from each domain."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import drawing_problem, reach_of
from gradcli.errors import UsageError

Shape = tuple[int, ...]
Parameters = Mapping[str, Any]
Drawing = Callable[[np.random.Generator, Shape, Parameters], NDArray[Any]]
DECIMALS = 6
KINK_RADIUS = 1e-3
_FARTHEST_OUT = 0.85
"""The largest norm in a unit ball; checks change entries by up to an eighth."""
_MAGIC = (b"\x93NUMPY", b"PK")
"""What the files of numpy.save and numpy.savez begin with."""
MOST_DECIMALS = 300
"""Beyond so many more decimals the power of ten that rounding multiplies by would overflow."""


def _normal(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    drawn = np.round(generator.standard_normal(shape), DECIMALS)
    while (near := np.abs(drawn) < KINK_RADIUS).any():
        drawn = np.where(near, np.round(generator.standard_normal(shape), DECIMALS), drawn)
    return np.asarray(drawn)


def _between(generator: np.random.Generator, shape: Shape, low: float, high: float) -> NDArray[Any]:
    drawn = low + (high - low) * generator.random(shape)
    rounded = np.round(drawn, _decimals(high - low))
    return np.where((rounded > low) & (rounded < high), rounded, drawn)


def _decimals(width: float) -> int:
    """The number of decimals for the values of an interval: six, and more if the interval is narrow."""
    return DECIMALS + min(MOST_DECIMALS, max(0, -math.floor(math.log10(width))))


def _uniform(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    return _between(generator, shape, _number(parameters, "lo", -1.0), _number(parameters, "hi", 1.0))


def _positive(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    return _between(generator, shape, 0.3, 2.0)


def _unit(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    return _between(generator, shape, 0.05, 0.95)


def _drawn_from(low: float, high: float) -> tuple[float, float]:
    """The ends between which numbers are drawn; on a half-line up to twice as far from its end as that is from zero."""
    if math.isfinite(low) and high == math.inf:
        return low, low + 2 * max(1.0, abs(low))
    if low == -math.inf and math.isfinite(high):
        return high - 2 * max(1.0, abs(high)), high
    return low, high


def _open_interval(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    low, high = _drawn_from(_number(parameters, "lo", -1.0), _number(parameters, "hi", 1.0))
    margin = 0.05 * (high - low)
    return _between(generator, shape, low + margin, high - margin)


def _distinct(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    # Half a spacing off the integers keeps 0 out; a jitter of a quarter spacing keeps neighbours half a spacing apart.
    count = math.prod(shape)
    spacing = max(0.01, min(0.5, 4.0 / max(count, 1)))
    ranks = generator.permutation(count) - count // 2 + 0.5
    jitter = generator.uniform(-0.25, 0.25, count)
    return np.round((ranks + jitter) * spacing, DECIMALS).reshape(shape)


def _ascending(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    # Of n equal parts of the interval each has an entry in its middle half, so that neighbours are half a part apart.
    count = shape[-1] if shape else 1
    reach = reach_of("ascending", count)
    low, high = _drawn_from(_number(parameters, "lo", -reach), _number(parameters, "hi", reach))
    parts = np.arange(count) + 0.5 if shape else np.float64(0.5)
    drawn = (parts + generator.uniform(-0.25, 0.25, shape)) / max(count, 1)
    return np.asarray(np.round(low + (high - low) * drawn, _decimals(high - low) + len(str(count))))


def _descending(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    return _ascending(generator, shape, parameters)[..., ::-1] if shape else _ascending(generator, shape, parameters)


def _spd(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    size = shape[-1]
    factor = generator.standard_normal(shape)
    product = factor @ np.swapaxes(factor, -1, -2) / max(size, 1) + np.eye(size)
    return np.round((product + np.swapaxes(product, -1, -2)) / 2, DECIMALS)


def _triangular(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    size = shape[-1]
    below = np.tril(generator.standard_normal(shape), -1) / 2
    diagonal = 1 + generator.random((*shape[:-1], 1))
    return np.round(below + diagonal * np.eye(size), DECIMALS)


def _diagonally_dominant(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    # Of positive determinant (Gershgorin: every eigenvalue has a positive real part), and not symmetric.
    size = shape[-1]
    beside = generator.standard_normal(shape) * (1 - np.eye(size))
    diagonal = 1 + generator.random((*shape[:-1], 1))
    sums = np.abs(beside).sum(-1, keepdims=True)
    return np.round(beside * (0.8 * diagonal / np.where(sums > 0, sums, 1.0)) + diagonal * np.eye(size), DECIMALS)


def _orthogonal(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    tall = shape[-2] >= shape[-1]
    drawn = generator.standard_normal(shape if tall else (*shape[:-2], shape[-1], shape[-2]))
    basis = np.linalg.qr(drawn)[0]
    return np.asarray(basis if tall else np.swapaxes(basis, -1, -2))


def _key(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    return generator.integers(0, 2**32, shape, dtype=np.int64)


def _typed_key(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    return generator.integers(0, 2**32, (*shape, 2), dtype=np.int64)


def _indices(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    low, high = _integer(parameters, "low", 0), _integer(parameters, "high", 2)
    return generator.integers(low, high, shape, dtype=np.int64)


def _permutation(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    high = _integer(parameters, "high", shape[-1])
    return generator.permuted(np.broadcast_to(np.arange(high), (*shape[:-1], high)), axis=-1)[..., : shape[-1]].copy()


def _pointers(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    high = _integer(parameters, "high", shape[-1])
    drawn = np.sort(generator.integers(0, high, shape, dtype=np.int64, endpoint=True))
    drawn[..., 0], drawn[..., -1] = 0, high
    counts = np.diff(drawn)
    for row in counts.reshape(-1, shape[-1] - 1):
        _make_unequal(row)
    drawn[..., 1:] = np.cumsum(counts, axis=-1)
    return drawn


def _make_unequal(counts: NDArray[Any]) -> None:
    """Move an entry between parts of equal size, empty ones aside: a factor that depends on a part's size shows there.

    Fewer than three entries, or a single part, cannot be shared out so.
    """
    filled = np.flatnonzero(counts)
    if counts.size > 1 and counts.sum() > 2 and len(set(counts[filled])) == 1:
        counts[filled[-1]] -= 1
        counts[filled[0] if filled.size > 1 else filled[0] - 1] += 1


def _simplex(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    drawn = 0.2 + generator.random(shape)
    return np.asarray(drawn / drawn.sum(-1, keepdims=True))


def _unit_vectors(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    drawn = 0.2 + np.abs(generator.standard_normal(shape))
    signed = np.where(generator.random(shape) < 0.5, drawn, -drawn)
    return np.asarray(signed / np.sqrt((signed * signed).sum(-1, keepdims=True)))


def _unit_ball(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    norms = generator.uniform(0.05, _FARTHEST_OUT, (*shape[:-1], 1))
    return np.asarray(np.round(norms * _unit_vectors(generator, shape, parameters), DECIMALS))


def _one_hot(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    return np.eye(shape[-1])[generator.integers(0, shape[-1], shape[:-1])]


_LONG_ROW = 3
"""A row of two entries with both values has one of each, always."""


def _boolean(generator: np.random.Generator, shape: Shape, _: Parameters) -> NDArray[Any]:
    # Two of each where there is room: a softmax, a variance or a difference of the one entry that a mask leaves is
    # constant, and no gradient shows. Which of the two values leaves an entry out, masks do not agree on.
    drawn = np.asarray(generator.random(shape) < 0.6)
    for value, room in ((True, (drawn.size + 1) // 2), (False, drawn.size // 2)) if drawn.size >= 2 else ():
        lacking = min(2, room) - int((drawn == value).sum())
        if lacking > 0:
            drawn.flat[generator.permutation(np.flatnonzero(drawn != value))[:lacking]] = value
    if drawn.ndim >= 2 and shape[-1] >= _LONG_ROW:  # the softmax or mean of an empty row is NaN
        rows = drawn.reshape(-1, shape[-1])
        alike = np.flatnonzero((rows == rows[:, :1]).all(1))
        places = generator.integers(0, shape[-1], alike.size)
        rows[alike, places] = ~rows[alike, places]
    return drawn


def _binary(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    return _boolean(generator, shape, parameters).astype(np.float64)


def _signs(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    return np.where(_boolean(generator, shape, parameters), 1.0, -1.0)


def _literal(_: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
    raise UsageError(f"domain literal needs value=..., got shape {list(shape)} and parameters {dict(parameters)}")


def _npz(_: np.random.Generator, __: Shape, parameters: Parameters) -> NDArray[Any]:
    path, key = str(parameters["path"]), parameters.get("key")
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded as archive:
            names = list(archive.keys())
            chosen = names[0] if key is None and len(names) == 1 else key
            if chosen in names:
                return np.asarray(archive[str(chosen)])
    except (OSError, ValueError, EOFError) as error:
        raise UsageError(f"{path}: cannot be read as .npz or .npy: {_why(path, error)}") from error
    raise UsageError(f"{path} holds the arrays {', '.join(names)}; name one by key=..., got key={key!r}")


def _why(path: str, error: Exception) -> str:
    """What is wrong with a file; NumPy takes any other file for pickled objects, and advises to load them."""
    if "pickle" not in str(error):
        return str(error)
    with open(path, "rb") as file:
        is_numpys = file.read(len(_MAGIC[0])).startswith(_MAGIC)
    return "it holds Python objects, not numbers" if is_numpys else "it is a file of another kind"


def _number(parameters: Parameters, key: str, default: float) -> float:
    value = parameters.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{key} must be a number, got {value!r}")
    return float(value)


def _integer(parameters: Parameters, key: str, default: int) -> int:
    value = parameters.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{key} must be a whole number, got {value!r}")
    return value


def in_order(value: NDArray[Any], domain: str | None) -> NDArray[Any]:
    """The entries in the order of a domain, as `parse_domain` takes it, along the last axis; as they are for others.

    Those of a permutation become their ranks, as some may be missing, or equal. Vectors that would leave the unit ball
    become shorter.
    """
    name = (domain or "").partition("(")[0]
    if name == "unit-ball" and value.ndim:
        norms = np.sqrt((np.abs(value) ** 2).sum(-1, keepdims=True))
        return np.asarray(value * np.where(norms >= 1, _FARTHEST_OUT / np.maximum(norms, 1), 1), value.dtype)
    if name == "permutation":
        return np.argsort(np.argsort(value, -1, kind="stable"), -1, kind="stable")
    if name not in ORDERS or not value.ndim:
        return value
    ordered = np.sort(value, -1)
    return np.ascontiguousarray(ordered if name == "ascending" else ordered[..., ::-1])


def is_given_distinct(value: NDArray[Any], domain: str | None) -> bool:
    """Whether whole numbers were given, not drawn, and no two of them are equal: they may select something each."""
    given = (domain or "literal").partition("(")[0].partition(":")[0] in ("literal", "npz")
    return given and value.dtype.kind in "iu" and value.size > 1 and np.unique(value).size == value.size


def with_distinct(longer: NDArray[Any], given: NDArray[Any], largest: int | None = None) -> NDArray[Any] | None:
    """Copies of distinct whole numbers, of which all but the first of each get a value that none has.

    These are values between the given ones, then others from 0 on, up to the largest of them or `largest`; None where
    there are too few, as there may be with indices from the end. Numbers given in order stay so.
    """
    flat = longer.ravel().copy()
    again = np.ones(flat.shape, np.bool_)
    again[np.unique(flat, return_index=True)[1]] = False
    low, high, lacking = int(given.min()), int(given.max()), int(again.sum())
    last = high if low < 0 else high + lacking if largest is None else largest
    taken = set(flat.tolist())
    free = (n for n in itertools.chain(range(low, high + 1), range(low), range(high + 1, last + 1)) if n not in taken)
    found = list(itertools.islice(free, lacking))
    if len(found) < lacking:
        return None
    flat[again] = found
    steps = np.diff(given.ravel().astype(np.int64))
    if (steps > 0).all() or (steps < 0).all():
        flat = np.sort(flat)[:: 1 if steps[0] > 0 else -1]
    return np.ascontiguousarray(flat.reshape(longer.shape))


ORDERS = ("ascending", "descending")
"""The domains of numbers in order."""
_DRAWING: Mapping[str, Drawing] = {
    "normal": _normal,
    "uniform": _uniform,
    "positive": _positive,
    "unit": _unit,
    "open-interval": _open_interval,
    "distinct": _distinct,
    "ascending": _ascending,
    "descending": _descending,
    "spd": _spd,
    "triangular": _triangular,
    "diagonally-dominant": _diagonally_dominant,
    "orthogonal": _orthogonal,
    "indices": _indices,
    "permutation": _permutation,
    "pointers": _pointers,
    "simplex": _simplex,
    "unit-vectors": _unit_vectors,
    "unit-ball": _unit_ball,
    "one-hot": _one_hot,
    "signs": _signs,
    "binary": _binary,
    "boolean": _boolean,
    "key": _key,
    "typed-key": _typed_key,
    "literal": _literal,
    "npz": _npz,
}


def _refusing(name: str, drawing: Drawing) -> Drawing:
    def draw(generator: np.random.Generator, shape: Shape, parameters: Parameters) -> NDArray[Any]:
        problem = drawing_problem(name, shape, parameters)
        if problem is not None:
            raise UsageError(problem[1])
        return drawing(generator, shape, parameters)

    return draw


DRAWING: Mapping[str, Drawing] = {name: _refusing(name, drawing) for name, drawing in _DRAWING.items()}
"""The function that draws from each domain. It raises UsageError for a shape or parameters that this does not have."""
