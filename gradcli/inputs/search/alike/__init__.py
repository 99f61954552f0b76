"""Inputs of equal sizes: where backward needs them, and where forward uses several arguments alike."""
