"""Arguments drawn from input specs: the same numbers on every backend, from one seed."""

import copy
import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradcli.cases import DTYPES, LAYOUTS, Argument, InputSpec, Sparsity, layout_problem, shape_problem
from gradcli.errors import UsageError
from gradcli.inputs.domains import Domain, parse_domain


def build(specs: Sequence[InputSpec], *, seed: int, dtype: str = "float64", sample: int = 0) -> tuple[Argument, ...]:
    """Draw one argument for each spec.

    Args:
        specs: what to draw, in the order of forward's parameters.
        seed: any whole number; with `sample` and the input's name it fixes every number drawn.
        dtype: the dtype of floating inputs whose spec gives none.
        sample: the number of the random sample, from 0.

    Returns:
        One argument a spec; tensors are NumPy arrays (bfloat16, which NumPy lacks, is rounded and held as float32).

    Raises:
        UsageError: where a spec cannot be drawn: an unknown domain or dtype, a shape that its domain refuses.
    """
    return tuple(_argument(spec, seed=seed, dtype=dtype, sample=sample) for spec in specs)


def _argument(spec: InputSpec, *, seed: int, dtype: str, sample: int) -> Argument:
    if spec.kind == "value":
        return Argument(name=spec.name, value=copy.deepcopy(spec.value), is_tensor=False)
    try:
        return _tensor(spec, seed=seed, dtype=dtype, sample=sample)
    except UsageError as error:
        raise UsageError(f"input {spec.name}: {error}") from error


def _tensor(spec: InputSpec, *, seed: int, dtype: str, sample: int) -> Argument:
    domain, inside = parse_domain(spec.domain)
    parameters = {**inside, **dict(spec.parameters)}
    if spec.value is not None:
        parameters["value"] = spec.value
    generator = generator_for(spec.name, seed=seed, sample=sample)
    array = _array(spec, domain, parameters, dtype, generator)
    sparsity = None if spec.layout is None else _sparsity(spec, domain, array, generator)
    floating = array.dtype.kind in "fc"
    if spec.requires_grad and not floating:
        raise UsageError(f"grad=true needs a float or complex dtype, got {array.dtype}")
    return Argument(
        name=spec.name,
        value=array if sparsity is None else sparsity.entries_of(array),
        is_tensor=True,
        requires_grad=floating if spec.requires_grad is None else spec.requires_grad,
        domain=_domain_text(domain, parameters),
        dtype="bfloat16" if floating and (spec.dtype or dtype) == "bfloat16" else None,
        sparsity=sparsity,
    )


def _sparsity(spec: InputSpec, domain: Domain, array: NDArray[Any], generator: np.random.Generator) -> Sparsity:
    """The entries of a sparse input: those of given values that are not zero, else about half of them, at least one."""
    if spec.layout not in LAYOUTS:
        raise UsageError(f"unknown layout {spec.layout!r}; expected one of {', '.join(LAYOUTS)}")
    if (problem := layout_problem(spec.layout, array.shape)) is not None:
        raise UsageError(problem)
    kept = generator.random(array.shape) < 0.5 if domain.random else array != 0
    if array.size and not kept.any():
        kept.flat[0] = True
    indices = tuple(tuple(int(i) for i in place) for place in np.argwhere(kept))
    return Sparsity(layout=spec.layout, shape=tuple(array.shape), indices=indices)


def _domain_text(domain: Domain, parameters: dict[str, Any]) -> str:
    """The domain with the ends of its interval, so that changed values can be kept inside it."""
    if "lo" in parameters and "hi" in parameters:
        return f"{domain.name}({parameters['lo']}, {parameters['hi']})"
    return domain.name


def generator_for(name: str, *, seed: int, sample: int = 0) -> np.random.Generator:
    """The random generator of the input `name`: independent of the order and number of the other inputs."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return np.random.default_rng([seed % 2**64, sample, int.from_bytes(digest, "big")])


def _array(
    spec: InputSpec, domain: Domain, parameters: dict[str, Any], dtype: str, generator: np.random.Generator
) -> NDArray[Any]:
    if domain.name == "literal":
        return _literal(spec, parameters, dtype)
    if spec.shape is None and domain.random:
        raise UsageError(f"a shape is needed, as in -i {spec.name}=3x4; domain {domain.name} has none of its own")
    shape = spec.shape or ()
    if (problem := shape_problem(shape)) is not None:
        raise UsageError(problem)
    wanted = known_dtype(spec.dtype or _natural_dtype(domain, dtype))
    if domain.name == "npz":
        return _stored(spec, domain.draw(generator, shape, parameters), wanted if spec.dtype else None, dtype)
    if wanted.kind == "b":
        return parse_domain("boolean")[0].draw(generator, shape, parameters)
    if wanted.kind in "iu" and not (domain.integral or domain.name in ("one-hot", "signs", "binary")):
        low = 0 if wanted.kind == "u" else -4
        return generator.integers(low, 5, shape).astype(wanted)
    real = domain.draw(generator, shape, parameters)
    if wanted.kind == "c":
        real = real + 1j * _imaginary(domain, generator, shape)
    return rounded(np.asarray(real).astype(wanted), spec.dtype or dtype)


def _imaginary(domain: Domain, generator: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    # Antisymmetric for spd, so that the matrix stays Hermitian; half as large elsewhere, so that the real part's
    # domain (such as the right half-plane) still tells what the function needs.
    drawn = np.round(generator.standard_normal(shape), 6)
    if domain.name == "spd":
        return 0.05 * (drawn - np.swapaxes(drawn, -1, -2))
    if domain.name == "triangular":
        return np.tril(drawn, -1) / 2
    if domain.name == "diagonally-dominant":
        return 0.05 * drawn
    if (
        domain.name in ("orthogonal", "simplex", "unit-vectors", "unit-ball", "one-hot", "signs", "binary")
        or domain.integral
    ):
        return np.zeros(shape)
    return drawn if domain.name == "normal" else drawn / 2


def _natural_dtype(domain: Domain, dtype: str) -> str:
    if domain.boolean:
        return "bool"
    return "int64" if domain.integral else dtype


def known_dtype(name: str) -> np.dtype[Any]:
    """The NumPy dtype called `name`. Raises UsageError for one that gradcli does not know."""
    if name not in DTYPES:
        raise UsageError(f"unknown dtype {name!r}; expected one of {', '.join(DTYPES)}")
    return np.dtype("float32" if name == "bfloat16" else name)


def rounded(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """The numbers that bfloat16 has, held in float32, where `dtype` is that; else the array itself."""
    if dtype != "bfloat16":
        return array
    # bfloat16 keeps the upper half of a float32; adding half a unit first rounds to nearest.
    bits = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32).reshape(array.shape) + np.uint32(0x8000)
    return np.asarray((bits & np.uint32(0xFFFF0000)).view(np.float32))


def _literal(spec: InputSpec, parameters: dict[str, Any], dtype: str) -> NDArray[Any]:
    if "value" not in parameters:
        raise UsageError("domain literal needs value=..., a number or nested lists of numbers")
    try:
        array = np.array(parameters["value"])
    except ValueError as error:
        raise UsageError(
            f"value must be a number, or nested lists of numbers of equal lengths, got {parameters['value']!r}"
        ) from error
    if array.size == 0 and spec.shape is not None and math.prod(spec.shape) == 0:
        array = np.zeros(spec.shape)
    if array.dtype.kind not in "biufc":
        raise UsageError(f"value must hold numbers only, got {parameters['value']!r}")
    return _stored(spec, array, known_dtype(spec.dtype) if spec.dtype else None, dtype)


def _stored(spec: InputSpec, array: NDArray[Any], wanted: np.dtype[Any] | None, dtype: str) -> NDArray[Any]:
    if spec.shape is not None and tuple(array.shape) != spec.shape:
        raise UsageError(f"the values have shape {list(array.shape)}, but shape {list(spec.shape)} was given")
    if wanted is not None:
        if array.dtype.kind == "c" and wanted.kind != "c":
            raise UsageError(f"the values are complex and do not fit dtype {wanted}")
        return rounded(array.astype(wanted), spec.dtype or dtype)
    if array.dtype.kind == "f":
        return rounded(array.astype(known_dtype(dtype)), dtype)
    return array
