"""`Module`: parameters, buffers, children, state, and calls with hooks."""
