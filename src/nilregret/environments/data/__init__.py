"""Loaders of the real data sets that the papers' figures read."""
