"""Tuning under limits: problems, methods and what is said of runs (`benchmarks/limits.py`)."""
