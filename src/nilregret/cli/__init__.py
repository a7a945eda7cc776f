"""Studies from the command line: looked at, and driven by shell scripts or programs in other languages."""
