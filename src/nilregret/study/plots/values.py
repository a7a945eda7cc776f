"""Picture of estimates of the value of a policy, beside that of the log's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._utils.numerals import numeral
from .base import BEST, MODEL, OBSERVED, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"snips": "self-normalised IPS", "dr": "doubly robust", "ips": "IPS", "switch": "switch"}


def values(
    estimates: Mapping[str, float],
    interval: tuple[float, float],
    *,
    chosen: str,
    logged: float,
    logged_interval: tuple[float, float],
    delta: float,
    path: str | Path | None = None,
) -> Figure:
    """Returns a picture of estimates, one a line, with the interval of the policy's value and that of the log's.

    Args:
        estimates: value by name of the estimator.
        interval: of the policy's value.
        chosen: name of the estimate that is the value.
        logged: mean reward of the log.
        logged_interval: its interval.
        delta: probability with which an interval may miss.
        path: of the picture, or None to save nothing.
    """
    figure = new_figure(6.8, 2.9)
    ax = figure.subplots()
    ax.axvspan(*logged_interval, color=OBSERVED, alpha=0.2, lw=0)
    ax.axvline(logged, color=OBSERVED, lw=1.2, label="the log's own policy")
    rows = np.arange(len(estimates))[::-1]
    named = [f"{NAMES.get(name, name)}{' (value)' if name == chosen else ''}" for name in estimates]
    first = list(estimates).index(chosen)
    ax.plot(interval, [rows[first]] * 2, color=MODEL, lw=3, alpha=0.55, solid_capstyle="butt", label="the policy")
    ax.plot(interval, [rows[first]] * 2, "|", color=MODEL, ms=10)
    colors = [BEST if name == chosen else MODEL for name in estimates]
    ax.scatter(list(estimates.values()), rows, c=colors, zorder=3, s=34)
    ax.set_yticks(rows, named)
    ax.set_ylim(-0.6, len(estimates) - 0.4)
    ax.set(xlabel="mean reward of a decision")
    ax.set_title(f"Value on the log, with {numeral(100 * (1 - delta))}% intervals", fontsize=10)
    ax.grid(axis="x", alpha=0.25, lw=0.6)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
