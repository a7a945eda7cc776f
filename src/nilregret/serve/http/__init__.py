"""Server processes that answer HTTP."""
