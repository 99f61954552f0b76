"""A wrong gradient explained by one wrong expression of backward, found by a search and proven."""
