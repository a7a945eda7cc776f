"""Which point of a domain has the best score."""
