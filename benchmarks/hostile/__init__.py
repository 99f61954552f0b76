"""Programs, specs and surroundings that attack a run."""
