"""From the evidence on a case to its result: what failed, what was allowed or expected, notes, the smallest input."""
