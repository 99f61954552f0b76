"""The search for inputs that forward accepts, where none were given."""
