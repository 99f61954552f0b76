"""Where the inputs of a check come from: flags, random domains, inference, and the shrinking of a failure."""
