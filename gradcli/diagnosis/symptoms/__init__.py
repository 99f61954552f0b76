"""What a trace means: why a `.grad` is None or zero, what hooks changed, where NaN came from."""
