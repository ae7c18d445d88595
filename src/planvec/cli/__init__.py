"""The command line: each command is one call into the library."""
