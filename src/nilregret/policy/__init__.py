"""A policy, and the machine that runs it: what counts, as what, and which point is next."""

from .policy import Decision, Policy

__all__ = ["Decision", "Policy"]
