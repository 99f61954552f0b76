"""Tests for inputs of equal sizes."""
