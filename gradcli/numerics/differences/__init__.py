"""A directional derivative from values alone, with a bound on its error."""
