"""Plain NumPy as a backend: a function and a derivative written by hand."""
