"""A study, and where its record lives between runs."""

from .study import Study

__all__ = ["Study"]
