"""What was typed: the parameters of the commands, their completion, and the request that they make."""
