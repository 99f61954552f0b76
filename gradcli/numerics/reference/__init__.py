"""Compares the claim with the reference, autodiff of forward's body; finite differences decide between the two."""
