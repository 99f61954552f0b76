"""The maps that are differentiated: between two spaces of named blocks, on flat vectors."""
