"""What `benchmarks/tuning.py` is made of: problems, methods, the cache of runs, and what is said about them."""
