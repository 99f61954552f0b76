"""The battery: one property of a Function a file, each a Check that yields Evidence."""
