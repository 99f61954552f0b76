"""What a run shares with the operating system and the target: signals, standard output, replaced functions."""
