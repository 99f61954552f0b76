"""A wrong gradient explained by one expression of backward that has to be another, found by a search and proven."""
