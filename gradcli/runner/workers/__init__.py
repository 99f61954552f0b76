"""Worker processes: the user's code is imported and run in them, never in the command's own process."""
