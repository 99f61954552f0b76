"""The puzzles together have many causes."""

from tests.tracing.puzzles import test_hooks, test_missing_gradients, test_nonfinite_values, test_zero_gradients

GRADIENTS = (*test_missing_gradients.PUZZLES, *test_zero_gradients.PUZZLES)


def answers(puzzles):
    """Their answers without places, each once."""
    return {answer.replace("{here}", "") for _, answer in puzzles}


def test_the_programs_have_many_causes():
    """At least 14 causes of a missing or zero gradient, 12 sources of NaN or Inf, 8 effects of hooks, all different."""
    groups = GRADIENTS, test_nonfinite_values.PUZZLES, test_hooks.PUZZLES
    for group, least in zip(groups, (14, 12, 8), strict=True):
        assert len(answers(group)) >= least
    assert sum(map(len, groups)) >= 92
