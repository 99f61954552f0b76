"""The pictures of a trace: a tree, a table, drawings, and JSON."""
