"""Whether a difference persists: over directions, steps, points, and steps as long as the input."""
