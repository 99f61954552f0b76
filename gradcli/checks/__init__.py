"""The battery of checks: each file holds one Check, which tests one property of a Function and yields Evidence."""
