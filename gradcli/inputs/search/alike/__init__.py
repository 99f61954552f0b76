"""Inputs of equal sizes, for backward or because forward uses arguments alike; and outputs that are equal."""
