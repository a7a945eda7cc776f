"""Errors, checks, serialisation, randomness and one BLAS thread: used by every room above."""
