"""Backends turn a user's function at a point into maps that the numerics can differentiate."""
