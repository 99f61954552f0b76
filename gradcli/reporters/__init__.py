"""Pure functions from results to text: for a terminal, for a log, for a program."""
