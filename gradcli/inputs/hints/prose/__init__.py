"""Reading sentences: where they describe arguments, what intervals they give, and when they tell cases apart."""
