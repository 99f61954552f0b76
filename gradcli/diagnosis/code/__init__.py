"""The user's source code: excerpts, the suspect line, slips that can be read, and writes that can be watched."""
