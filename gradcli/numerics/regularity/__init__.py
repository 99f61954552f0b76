"""Detects what limits finite differences: noise, number formats, jumps, kinks, iterations, NaN and step functions."""
