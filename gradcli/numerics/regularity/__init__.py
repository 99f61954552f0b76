"""How rough a function is: noise, formats, jumps, kinks, iterations that stop early, and where no derivative exists."""
