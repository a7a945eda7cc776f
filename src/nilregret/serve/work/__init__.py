"""Studies of one server process: their workers, threads, deadlines, commands and events."""
