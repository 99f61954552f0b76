"""The module name that printed forms carry.

Tensors, dtypes and errors print as they do in the programs that this engine runs unchanged, so that recorded
outputs and doctests agree and a message leads to the same search results.
"""

PRINTED_MODULE = "torch"
