"""Where the inputs of a case come from, and how they are bound to forward's parameters."""
