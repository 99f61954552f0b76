"""What calls beside those at the given arguments were like: at others, and after their result was released."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lingering:
    """A graph that was there still when its result was gone.

    `attribute` is the one of ctx through which the graph holds an output of its own, None where none does; `collected`
    says that the garbage collector freed it. Where it did not, something outside the call holds it.
    """

    attribute: str | None
    collected: bool
