"""Figures of matplotlib that a notebook shows."""

from __future__ import annotations

from io import BytesIO
from typing import final

from matplotlib.figure import Figure


@final
class ShownFigure(Figure):
    """A figure that shows itself at the end of a cell, without pyplot or its inline mode."""

    def _repr_png_(self) -> bytes:
        drawn = BytesIO()
        self.savefig(drawn, format="png", facecolor=self.get_facecolor())
        return drawn.getvalue()
