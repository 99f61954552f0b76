"""Layers and losses, by kind: each a Module around a function."""
