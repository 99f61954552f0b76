"""What a failing case costs, and what is said of it."""
