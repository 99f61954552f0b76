"""What is differentiated: a map between two spaces of named blocks, on flat vectors."""
