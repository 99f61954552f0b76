"""Methods and operators of Tensor, as type checkers see them."""
