"""Words the sizes of errors, and what several messages share, alike in all messages."""

OPEN = "no step size gives an error bound small enough to decide"
STOPS_EARLY = "the number of iterations that forward runs depends on its input"


def of_largest(error: float, what: str = "gradient") -> str:
    """Word an error relative to the largest entry of a gradient, as in "30 % of the gradient's largest entry".

    From 0.1 % to 1000 % it is a percentage, below that a number with an exponent, above that a multiple.
    """
    decade = f"{error:.1e}".partition("e")[2]
    if not decade or int(decade) > 0:
        size = f"{error:.2g} times"
    elif int(decade) < -3:
        size = f"{error:.1e} of"
    else:
        size = f"{float(f'{error:.2g}'):.4%}".rstrip("0%").rstrip(".") + " % of"
    return f"{size} the {what}'s largest entry"


def accepted(error: float, allowed: float) -> str:
    """Word the note that a difference of this size is not counted as an error."""
    return f"differs by {of_largest(error)}, which is not counted as an error (up to {allowed:.0e} is allowed)"


def joined(*notes: str | None) -> str | None:
    """Several notes as one; None if there are none."""
    return "; ".join(filter(None, notes)) or None
