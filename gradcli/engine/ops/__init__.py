"""Operations by family. Each has a forward on arrays and a rule on Tensors, so that every order of derivative follows.

A rule returns one cotangent for each edge of its node. It may leave axes that were broadcast: the backward pass sums a
cotangent down to the shape of what it belongs to, and casts it to its type.
"""
