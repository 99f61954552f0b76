"""Sizes that decide in several places: parts of a value, of a slope, or of the largest entry of a gradient."""

ROUNDING = 2.0**-47
"""Rounding errors of a value, or of a sum of values, are below this part of it: 64 unit roundoffs."""
NOTHING = 1e-290
"""Numbers below this count as zero. Over the shortest step, 2^-44, the rounding of values near the smallest normal
number makes a slope of 6e-294."""
FINEST = 1e-14
"""Some hundred unit roundoffs: no resolution below this is reported, and where a function is zero at all points, a
smaller slope is not judged, because rounding may hide its values (in float64, 1 - tanh(20) is 0)."""
COMPUTED = 1e-12
"""Gradients are computed to this part of the largest entry: some ten thousand roundings. A smaller entry, compared with
the outputs, counts as zero."""
MEASURABLE = 1e-11
"""Slopes below this part of the values cannot be measured. Gradients that differ by less are equal, errors below it are
not searched for, and noise below it is not measured."""
WANTED = 1e-10
"""No estimate is improved beyond this part of the slope, and no smaller difference of two derivatives counts."""
CERTIFIED = 1e-9
"""Three pairs of values certify a claim if their slope agrees with it to within this part of the largest entry. Nine
digits do not agree by accident, so no truncation bound is needed."""
FINE = 1e-8
"""A tenth of `SIGNIFICANT`: what is known to this part shows every significant error."""
SIGNIFICANT = 1e-7
"""Errors below this part of the largest entry do not matter."""
COARSE = 1e-3
"""A slope that is known to a thousandth of itself tells a right entry from a wrong one: mistakes in a formula change an
entry by more."""
ROUGHLY = 1e-2
"""Two digits of a slope are enough where claim and reference agree in many more; with fewer, nothing is known."""
UNBALANCED = 1e4
"""Outputs whose slopes differ by more than this factor are weighted before they are added up. If they differ by less,
an error of a thousandth in the smallest is at least 1e-7 of the largest, the significance, and shows anyway."""
