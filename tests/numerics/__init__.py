"""Properties of the numerics."""
