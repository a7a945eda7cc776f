"""What `benchmarks/deployment.py` is made of: databases that go away, and a proxy."""
