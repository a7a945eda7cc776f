"""Worlds to simulate decisions in: a reward function and what stands between it and the decision maker."""

from .environment import Environment

__all__ = ["Environment"]
