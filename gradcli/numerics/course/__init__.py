"""The course of one verification: screen, confirm, look at other points, conclude."""
