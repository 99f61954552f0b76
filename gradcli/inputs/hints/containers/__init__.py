"""Arguments that are dicts, lists or tuples of tensors: how forward reads them, and what they then are."""
