"""The domains that are tried if forward rejects normally distributed numbers, or returns NaN or infinity for them."""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from gradcli.inputs.search.trials import DomainChoice, Shape

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
_MIXED = ((UNIT, POSITIVE), (POSITIVE, WITHIN_ONE), (SPD, POSITIVE), (POSITIVE, UNIT))


def domain_choices(
    slots: Sequence[int], shapes: Mapping[int, Shape], *, thorough: bool
) -> Iterator[dict[int, DomainChoice]]:
    """Domains for the float tensors in `slots`, the smallest change first: one slot, then all of them, then pairs."""
    for domain in ELEMENTWISE:
        for slot in slots:
            yield {slot: domain}
        if len(slots) > 1:
            yield dict.fromkeys(slots, domain)
    if not thorough and len(slots) == 1 and len(shapes[slots[0]]) < 2:
        return
    square = [slot for slot in slots if len(shapes[slot]) >= 2 and shapes[slot][-1] == shapes[slot][-2] >= 2]
    for domain in MATRICES:
        for slot in square:
            yield {slot: domain}
    for one, other in itertools.permutations(slots, 2):
        for first, second in _MIXED:
            if first is not SPD or one in square:
                yield {one: first, other: second}


def square_domain(forward: str) -> DomainChoice | None:
    """The domain of square matrices that the calls in the source of forward suggest; None where they suggest none."""
    called = set(re.findall(r"(?<![A-Za-z])(?<!def )([a-z_]+)\(", forward))
    if any(name.startswith(("cholesky", "eigh", "eigvalsh")) for name in called):
        return SPD
    if called & {"solve_triangular", "triangular_solve"}:
        return TRIANGULAR
    if "logdet" in called or called >= {"log", "det"}:
        return DOMINANT
    return None
