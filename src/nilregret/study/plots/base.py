"""Colours and figures that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._utils.errors import MissingExtra
from ..study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBSERVED, BEST, MODEL, FAILED = "#7a8793", "#d1495b", "#00798c", "#edae49"


def new_figure(width: float, height: float) -> Figure:
    """Returns a new figure, width and height in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(
            "Pictures need matplotlib, which is not installed: pip install 'nilregret[plot]'."
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def reward_label(study: Study, given: str | None) -> str:
    """Returns the given label of rewards, else "reward" or "loss"."""
    return ("reward" if study.goal == "maximize" else "loss") if given is None else given
