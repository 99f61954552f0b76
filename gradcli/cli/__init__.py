"""The command line: each command parses, calls one pipeline and leaves by one exit."""
