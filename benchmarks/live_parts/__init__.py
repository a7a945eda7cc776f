"""The parts of `benchmarks/live.py`: problems, peers, plays, and the table."""
