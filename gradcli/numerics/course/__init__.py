"""The protocol of one verification: judge every pair, confirm differences, try other points, give the outcomes."""
