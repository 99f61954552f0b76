"""Module: parameters, buffers, children, state, and calls with their hooks."""
