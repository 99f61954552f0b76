"""Judges every pair of blocks at one point, with as few evaluations as possible."""
