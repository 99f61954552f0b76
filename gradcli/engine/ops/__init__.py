"""Operations by family: a forward on NumPy arrays, and a backward rule (a `Node`) written with tensor operations.

A rule made of tensor operations can be recorded in its turn, so derivatives of every order follow from it. It returns
one cotangent for each input of its node. Axes that were broadcast may be left in: the backward pass sums a cotangent to
the shape of its input, and casts it to the input's element type.

Operations with a `dim` also take NumPy's names `axis` and `keepdims`. Unless a function says otherwise, its semantics,
its name of the node and its errors are those of the function of this name in `torch`.
"""
