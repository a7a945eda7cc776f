"""The choice of a renderer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._utils.checks import flag
from .._utils.files import PAGE
from .scene import Picture


def draw(picture: Picture, path: str | Path | None, *, interactive: bool) -> Any:
    """Returns the figure of a picture, and saves it if there is a path.

    Args:
        picture: to draw.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None to save nothing.
        interactive: True for a figure of plotly, False for one of matplotlib unless the path ends in .html.
    """
    if flag("interactive", interactive) or Path("" if path is None else path).suffix.lower() == PAGE:
        from .interactive import interactive_figure

        return interactive_figure(picture, path)
    from .static import static_figure

    return static_figure(picture, path)
