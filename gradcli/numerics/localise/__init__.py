"""Which entries and rows of a claimed gradient are wrong."""
