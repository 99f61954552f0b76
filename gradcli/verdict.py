"""The verdicts, and the reasons a verdict may be withheld; each member carries its sentence.

Also when a comparison allows a sentence to call something right.
"""

from enum import Enum


class Verdict(Enum):
    """What is concluded about a case or one check of it."""

    sentence: str

    PASSED = (
        "passed",
        "Wherever they were compared, the gradient that backward returns agrees with finite differences of forward: "
        "to nine digits, to within their error bound, or up to a difference too small to count as an error. No other "
        "check failed.",
    )
    FAILED = (
        "failed",
        "The gradient that backward returns differs from finite differences of forward by more than three times "
        "their error bound, or from autodiff of its body where that agrees with them, and a second measurement "
        "confirms it; or forward, backward, jvp or the batching rule breaks one of the properties that gradcli checks; "
        "or --require-resolution was not met.",
    )
    INCONCLUSIVE = (
        "inconclusive",
        "There is no derivative to compare with, or its error bound is too wide to decide. The reason says "
        "why, and what to do.",
    )
    ERROR = (
        "error",
        "The target's own code raised an exception, crashed or ran over its time limit, or gradcli found no inputs "
        "that forward accepts, so there is no verdict.",
    )
    SKIPPED = ("skipped", "The case or the check was not run; its note says why.")

    def __new__(cls, value: str, sentence: str) -> "Verdict":
        """Keep the name as the value and the texts as attributes."""
        member = object.__new__(cls)
        member._value_ = value
        member.sentence = sentence
        return member


class Reason(Enum):
    """Why a verdict is INCONCLUSIVE."""

    sentence: str
    remedy: str

    KINK = (
        "kink",
        "forward has a kink at this point: its slopes on the two sides differ, so there is no derivative to "
        "compare with.",
        "Give inputs away from the kink: random ones if the values are given, or values of the range that forward is "
        "meant for.",
    )
    NOISE = (
        "noisy-forward",
        "forward's values are noisy or coarsely rounded, so no step size gives an error bound small enough to decide.",
        "Compute in float64 inside forward, tighten a solver's tolerance, or fix its random seed.",
    )
    DOMAIN = (
        "domain",
        "forward is NaN or infinite at or around this point, so no finite difference can be computed.",
        "Give inputs inside the domain: -i NAME=SHAPE,domain=positive, for example, draws positive numbers.",
    )
    NO_SIGNAL = (
        "no-signal",
        "There is nothing to compare: the input is empty, the output does not depend on it differentiably, "
        "the derivative is below rounding errors, or the check that compares it was left out.",
        "Give inputs that are not empty and on which the output depends differentiably, and let at least one of them "
        "require a gradient.",
    )
    BUDGET = (
        "budget",
        "gradcli used up its limit on evaluations of forward before the error bound was small enough to decide.",
        "Give an input with fewer entries.",
    )

    def __new__(cls, value: str, sentence: str, remedy: str) -> "Reason":
        """Keep the name as the value and the texts as attributes."""
        member = object.__new__(cls)
        member._value_ = value
        member.sentence = sentence
        member.remedy = remedy
        return member


class Fault(Enum):
    """Why a case could not be checked: gradcli failed, or the import of the target, or usage; or there was no case."""

    INTERNAL = "internal"
    IMPORT = "import"
    USAGE = "usage"
    NOTHING = "nothing"

    @property
    def exit_code(self) -> int:
        """The exit code that it stands for."""
        return {Fault.INTERNAL: 70, Fault.NOTHING: 5}.get(self, 2)


CLEARLY = 16.0
"""An error is clearly seen by a comparison that would show one this many times smaller."""


def tells_apart(error: float | None, resolution: float) -> bool:
    """Whether a comparison that found nothing wrong may be worded as "the gradient is right there".

    An error of the size found elsewhere must have shown in it clearly. Rounding to float32 gives errors near the
    resolution, which are above it at one place and below it at another.

    Args:
        error: the size of the error found elsewhere, relative to a scale; None if it is not known.
        resolution: the largest error, relative to the same scale, that the comparison may have missed.
    """
    return error is not None and error >= CLEARLY * resolution
