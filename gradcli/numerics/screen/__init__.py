"""What one point says about every pair of blocks, at the least cost that settles each."""
