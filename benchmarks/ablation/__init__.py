"""Switching the mechanisms of the numerics off, one by one."""
