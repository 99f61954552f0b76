"""Patches for wrong backwards: candidate edits of the source, screened by probes and proven by the whole check."""
