"""Directional derivatives by finite differences, with error bounds."""
