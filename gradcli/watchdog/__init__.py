"""Time: how long a call of the user's code may take, and how much optional work a case may do."""
