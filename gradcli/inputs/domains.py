"""The domains that random inputs are drawn from: each with a description, its parameters and how to draw from it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from gradcli.errors import UsageError
from gradcli.frozen import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MATRICES = frozenset(("spd", "triangular", "orthogonal"))
"""The domains of square matrices."""
CLASSES = frozenset(("one-hot", "simplex", "unit-vectors", "unit-ball"))
"""The domains of what has a last axis of classes or components."""
LABELS = frozenset(("one-hot", "signs", "binary"))
"""The domains of what a loss compares its input with."""
INTEGRAL = ("indices", "permutation")
"""The domains of whole numbers that choose entries."""
WITH_AXES = ("boolean", *INTEGRAL, "binary")
"""The domains of what has axes; of a single number, the words say its type."""
_CALL = re.compile(r"^\s*([a-z][a-z-]*)\s*(?:\(([^()]*)\)|:(.*))?\s*$", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A set that inputs are drawn from; `parameters` are the keys it understands.

    `integral` and `boolean` say which dtype a draw has where none is asked for. `random` is False where every
    sample is the same.
    """

    name: str
    sentence: str
    parameters: tuple[str, ...] = ()
    integral: bool = False
    boolean: bool = False
    random: bool = True

    def draw(
        self, generator: np.random.Generator, shape: tuple[int, ...], parameters: Mapping[str, Any]
    ) -> NDArray[Any]:
        """An array drawn from the domain. Raises UsageError for a shape or parameters that it does not have."""
        from gradcli.inputs.drawing import DRAWING  # it imports NumPy, without which a command line is read

        return DRAWING[self.name](generator, shape, parameters)


DOMAINS: Mapping[str, Domain] = {
    domain.name: domain
    for domain in (
        Domain(name="normal", sentence="Standard normal numbers, none within 0.001 of zero."),
        Domain(name="uniform", sentence="Numbers between lo (default -1) and hi (default 1).", parameters=("lo", "hi")),
        Domain(name="positive", sentence="Numbers between 0.3 and 2."),
        Domain(name="unit", sentence="Numbers between 0.05 and 0.95."),
        Domain(
            name="open-interval",
            sentence="Numbers between lo and hi, at least 5 % of the interval's length from either end.",
            parameters=("lo", "hi"),
        ),
        Domain(name="distinct", sentence="Numbers far from each other, in random order."),
        Domain(
            name="ascending",
            sentence="Numbers in ascending order along the last axis, far from each other, between lo and hi if given.",
            parameters=("lo", "hi"),
        ),
        Domain(name="descending", sentence="The same in descending order.", parameters=("lo", "hi")),
        Domain(name="spd", sentence="Symmetric positive definite matrices, well conditioned."),
        Domain(name="triangular", sentence="Lower triangular matrices, diagonal from 1 to 2."),
        Domain(
            name="diagonally-dominant",
            sentence="Square, not symmetric: each diagonal entry, 1 to 2, exceeds the sum of |others| in its row.",
        ),
        Domain(name="orthogonal", sentence="Matrices with orthonormal columns, or rows if wide."),
        Domain(
            name="indices",
            sentence="Whole numbers from low (default 0) up to, not including, high (default 2).",
            parameters=("low", "high"),
            integral=True,
        ),
        Domain(
            name="permutation",
            sentence="Different whole numbers along the last axis, from 0 up to, not including, high (default: how "
            "many there are).",
            parameters=("high",),
            integral=True,
        ),
        Domain(
            name="pointers",
            sentence="Whole numbers that do not decrease, from 0 up to high (default: how many there are), as the row "
            "pointers of a CSR matrix.",
            parameters=("high",),
            integral=True,
        ),
        Domain(name="simplex", sentence="Positive numbers that sum to 1 along the last axis, as probabilities do."),
        Domain(name="unit-vectors", sentence="Vectors of norm 1 along the last axis, as normals and directions are."),
        Domain(name="unit-ball", sentence="Vectors of norm below 1 along the last axis."),
        Domain(name="one-hot", sentence="A single 1 along the last axis, else 0."),
        Domain(name="signs", sentence="-1 and 1, both present, as the labels of two classes."),
        Domain(name="binary", sentence="0 and 1, both present, as the labels of two classes."),
        Domain(name="boolean", sentence="True and False, both present.", boolean=True),
        Domain(name="key", sentence="Random keys of JAX's, as jax.random.PRNGKey makes them.", integral=True),
        Domain(name="typed-key", sentence="Random keys of JAX's, as jax.random.key makes them.", integral=True),
        Domain(
            name="literal",
            sentence="The numbers of the key 'value', the same in every sample.",
            parameters=("value",),
            random=False,
        ),
        Domain(
            name="npz",
            sentence="An array from a .npz or .npy file: npz:PATH, with key=NAME if the file holds several arrays.",
            parameters=("path", "key"),
            random=False,
        ),
    )
}


def parse_domain(text: str) -> tuple[Domain, dict[str, Any]]:
    """The domain that `text` names and the parameters it carries.

    Args:
        text: `normal`, `open-interval(-1, 1)`, `npz:data.npz`, ...

    Returns:
        The domain, and its parameters as given inside the text.

    Raises:
        UsageError: for an unknown domain, or parameters that it does not take.
    """
    match = _CALL.match(text)
    if match is None or match[1] not in DOMAINS:
        close = get_close_matches(re.split("[(:]", text, maxsplit=1)[0].strip(), list(DOMAINS), 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UsageError(f"unknown domain {text!r}{hint}; expected one of {', '.join(DOMAINS)}")
    domain = DOMAINS[match[1]]
    if match[3] is not None:
        if domain.name != "npz" or not match[3]:
            raise UsageError(f"domain {text!r}: only npz takes a path after a colon, as in npz:data.npz")
        return domain, {"path": match[3]}
    if match[2] is None:
        return domain, {}
    return domain, _interval(text, domain, match[2])


def interval_of(text: str) -> tuple[float, float]:
    """The open interval that the values of a domain lie in, infinite at the ends where it has none.

    Args:
        text: as `parse_domain` takes it.

    Raises:
        UsageError: for an unknown domain, or parameters that it does not take.
    """
    domain, inside = parse_domain(text)
    if "lo" in inside:
        return inside["lo"], inside["hi"]
    return _INTERVALS.get(domain.name, (-math.inf, math.inf))


_INTERVALS = {
    "positive": (0.0, math.inf),
    "unit": (0.0, 1.0),
    "uniform": (-1.0, 1.0),
    "open-interval": (-1.0, 1.0),
    "unit-ball": (-1.0, 1.0),
}


def _interval(text: str, domain: Domain, inside: str) -> dict[str, Any]:
    keys = [key for key in domain.parameters if key in ("lo", "hi", "low", "high")]
    parts = [part.strip() for part in inside.split(",")]
    if not keys or len(parts) != len(keys):
        wanted = "one bound, as in permutation(5)" if len(keys) == 1 else "two bounds, as in open-interval(-1, 1)"
        raise UsageError(f"domain {text!r}: expected {wanted}, or none")
    try:
        bounds = [int(part) if domain.integral else float(part) for part in parts]
    except ValueError:
        raise UsageError(f"domain {text!r}: the bounds must be numbers, as in open-interval(-1, 1)") from None
    return dict(zip(keys, bounds, strict=True))
