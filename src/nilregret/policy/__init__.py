"""Policies, and the states that run them: trials that count, models of all outputs, and decisions."""

from .policy import Decision, Policy

__all__ = ["Decision", "Policy"]
