"""Maximisation of an acquisition function over a domain."""
