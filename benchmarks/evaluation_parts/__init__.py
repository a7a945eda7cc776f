"""Parts of `benchmarks/evaluation.py`."""
