"""What a planted mistake is: how to build it, and what must be said about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradcli.findings import FindingKind as K


@dataclass(frozen=True)
class Mistake:
    """A builder of a wrong Function, its inputs, and what must be said; the suspect line ends in `# here`."""

    name: str
    build: Callable[[Any], type]
    inputs: dict[str, Any]
    kinds: set[K]
    wrong: set[str | None]
    says: str
    order: int = 1
