"""What the backends for functions of plain arrays (JAX, NumPy) share: calls, compiled programs, and derivatives."""
