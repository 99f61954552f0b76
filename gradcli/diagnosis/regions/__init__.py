"""Names for a gradient that is wrong in some entries only: the rule that these entries follow."""
