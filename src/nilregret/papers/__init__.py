"""Reproduction of the figures of papers, each by one command (`nilregret papers NAME`), with verdicts.

A paper is a module whose `PAPER` declares its figures (see `figure.py`). `MODULES` lists all papers.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from ..errors import InvalidInput
from .figure import Figure, Job, Paper, Result, Statement

__all__ = ["Figure", "Job", "Paper", "Result", "Statement", "find", "papers"]

MODULES = ("srinivas", "chowdhury", "avanesov", "verma", "shi")


def papers() -> list[Paper]:
    """Returns all papers with their figures."""
    return [import_module(f".{name}", __name__).PAPER for name in MODULES]


def find(name: str) -> Figure:
    """Returns the figure of a name, in any case.

    Raises:
        InvalidInput: no figure has this name. The message lists similar names.
    """
    known = {figure.name: figure for paper in papers() for figure in paper.figures}
    lower = name.lower()
    if lower in known:
        return known[lower]
    similar = get_close_matches(lower, known, n=3) or [each for each in known if lower in each][:3]
    hint = f"Did you mean {' or '.join(similar)}?" if similar else "`nilregret papers` lists them."
    raise InvalidInput(f"There is no figure {name!r}. {hint}")
