"""Forwards in few digits."""
