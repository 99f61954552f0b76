"""Derivatives of black-box maps with error bounds, and the verdict they give on a claimed gradient. NumPy only."""
