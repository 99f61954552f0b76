"""Functions that are right, and as awkward as honest code gets: what a gradient checker must not complain about."""
