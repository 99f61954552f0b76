"""Names for what went wrong, from the evidence: kinds of wrong gradient, and symptoms in a trace."""
