"""Inputs other than those given: larger, smaller and special values, other constants, and calls in between."""
