"""The whole battery on a Function of a million entries."""
