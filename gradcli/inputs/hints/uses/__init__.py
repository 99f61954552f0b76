"""What forward does with its arguments, itself and in the functions that it passes them on to."""
