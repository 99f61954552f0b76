"""Why no inputs can be found."""
