"""Chooses where a map is evaluated: scales, directions, cotangents, and points along a line."""
