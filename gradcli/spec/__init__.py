"""Specs and targets at the edge: YAML read into cases, and target names resolved to objects."""
