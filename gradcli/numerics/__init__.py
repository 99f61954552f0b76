"""Numerical derivatives of black-box maps, with error bounds, and whether a claimed gradient agrees. NumPy only."""
