"""What the whole numbers of an input stand for."""
