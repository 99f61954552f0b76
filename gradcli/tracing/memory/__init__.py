"""The memory of one backward pass: what is saved for it, how much is in use at one time, and what stays afterwards."""
