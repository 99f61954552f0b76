"""Where values came from: the path from a leaf to a result, and the operation that produced NaN or Inf."""
