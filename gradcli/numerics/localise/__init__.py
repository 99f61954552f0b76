"""Finds the entries and rows in which a claimed gradient is wrong, and measures them for the report."""
