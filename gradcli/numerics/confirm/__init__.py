"""Confirms a difference: along other directions, with other steps, at other points, and over large steps."""
