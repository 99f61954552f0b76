"""The puzzles together have many causes."""

from tests.tracing import (
    test_puzzles_of_hooks,
    test_puzzles_of_missing_gradients,
    test_puzzles_of_nonfinite_values,
    test_puzzles_of_zero_gradients,
)

GRADIENTS = (*test_puzzles_of_missing_gradients.PUZZLES, *test_puzzles_of_zero_gradients.PUZZLES)


def answers(puzzles):
    """Their answers without places, each once."""
    return {answer.replace("{here}", "") for _, answer in puzzles}


def test_the_programs_have_many_causes():
    """At least 14 causes of a missing or zero gradient, 12 sources of NaN or Inf, 8 effects of hooks, all different."""
    groups = GRADIENTS, test_puzzles_of_nonfinite_values.PUZZLES, test_puzzles_of_hooks.PUZZLES
    for group, least in zip(groups, (14, 12, 8), strict=True):
        assert len(answers(group)) >= least
    assert sum(map(len, groups)) >= 92
