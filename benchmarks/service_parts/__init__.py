"""What `benchmarks/service.py` is made of: servers and a client, and kills."""
