"""Batches: whether the leading axis of an input is one, and the same inputs with another batch size."""
