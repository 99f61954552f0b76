"""The verdicts, and the reasons a verdict may be withheld; each member carries its sentence."""

from enum import Enum


class Verdict(Enum):
    """What is concluded about a case or one check of it."""

    sentence: str

    PASSED = (
        "passed",
        "The claimed gradient lies inside the error bound of the numerical one, everywhere it was compared.",
    )
    FAILED = (
        "failed",
        "The claimed gradient lies outside the error bound, twice, or a rule that every backward must keep is broken.",
    )
    INCONCLUSIVE = ("inconclusive", "No bound could be had that decides; the reason says why and what to do about it.")
    ERROR = (
        "error",
        "The target's own code raised, crashed or ran over its time limit, so nothing could be concluded.",
    )
    SKIPPED = ("skipped", "The check was left out on request.")

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
        "The point lies where forward has no derivative: its one-sided slopes differ beyond their bounds.",
        "Give inputs away from the kink (for example -i x=4,domain=uniform), or list the point in a spec.",
    )
    NOISE = (
        "noisy-forward",
        "Forward is noisy or coarsely rounded, so that no step gives a bound fine enough to decide.",
        "Compute in float64 inside forward, tighten a solver's tolerance, or fix its random seed.",
    )
    DOMAIN = (
        "domain",
        "Forward is not finite around the point, so that no difference could be taken.",
        "Give inputs inside the domain, for example -i x=4,domain=positive.",
    )
    NO_SIGNAL = (
        "no-signal",
        "Nothing could be compared: the input is empty, or nothing differentiable reaches the output.",
        "Give a larger input, or let at least one input require a gradient.",
    )
    BUDGET = (
        "budget",
        "The evaluations allowed were used up before a bound was reached.",
        "Give a smaller input.",
    )

    def __new__(cls, value: str, sentence: str, remedy: str) -> "Reason":
        """Keep the name as the value and the texts as attributes."""
        member = object.__new__(cls)
        member._value_ = value
        member.sentence = sentence
        member.remedy = remedy
        return member
