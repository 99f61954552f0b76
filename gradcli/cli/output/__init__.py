"""What a command writes while it runs and at its end: results, progress, and where they go."""
