"""Where values came from: a leaf's way to a result, and the operation that made NaN or Inf."""
