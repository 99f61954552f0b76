"""Edits of a backward: its source as a tree, what it can use, changes that undo common slips, and their text."""
