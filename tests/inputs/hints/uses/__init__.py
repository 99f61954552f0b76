"""Tests for what forward does with its arguments."""
