"""Colours, styles and figures that all pictures share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from .._utils.checks import one_of, shown
from ..errors import InvalidInput, needs, printable
from ..study.quantities import objectives
from ..study.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Hues of Okabe and Ito (2008), which colour-blind people tell apart. Roles differ in shape too, for print in grey.
OBSERVED, BEST, MODEL, FAILED, THIRD = "#7f8c99", "#d55e00", "#0072b2", "#cc79a7", "#009e73"
BAND_LABELS = {"proved": "confidence bounds", "policy": "bounds of the policy", "deviations": "mean ± 2 std"}


class Theme(NamedTuple):
    """The colours of a style.

    Attributes:
        text: of words and axes.
        faint: of grids.
        surface: of the background, or "none".
        model: of the posterior.
        ramp: name of the map of colours of a value.
    """

    text: str
    faint: str
    surface: str
    model: str = MODEL
    ramp: str = "viridis"

    def color(self, role: str) -> str:
        """Returns the colour of a role."""
        roles = {
            "observed": OBSERVED, "best": BEST, "model": self.model, "failed": FAILED, "text": self.text,
            "faint": self.faint, "third": THIRD,
        }  # fmt: skip
        return roles.get(role, role)


THEMES = {
    "light": Theme("#1f2429", "#d9dee3", "#ffffff"),
    "dark": Theme("#dfe3e8", "#3a4046", "#131416", model="#3d9bd6"),
    "transparent": Theme("#7d8590", "#8b949e50", "none", model="#2b8cc9"),
}
_THEME: ContextVar[Theme | None] = ContextVar("theme", default=None)


@contextmanager
def style(name: str) -> Iterator[None]:
    """Sets the style of all pictures inside a `with` block: light, dark or transparent.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: x**2, nr.Box([-1], [1]), trials=4, progress=False)
    >>> with nr.plots.style("dark"):
    ...     figure = nr.plots.history(result)

    Args:
        name: "light", "dark", or "transparent", whose words are grey and readable on either background.
    """
    import matplotlib as mpl

    theme = THEMES[one_of("name", name, list(THEMES))]
    named = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor")
    rc: dict[Any, Any] = dict.fromkeys(named, theme.text) | dict.fromkeys(
        ("figure.facecolor", "savefig.facecolor"), theme.surface
    )
    token = _THEME.set(theme)
    try:
        with mpl.rc_context(rc | {"axes.facecolor": theme.surface, "grid.color": theme.faint}):
            yield
    finally:
        _THEME.reset(token)


def theme() -> Theme:
    """Returns the style in force, light by default."""
    return _THEME.get() or THEMES["light"]


def new_figure(width: float, height: float) -> Figure:
    """Returns a new figure, width and height in inches."""
    with needs("A picture", "matplotlib", "plot"):
        import matplotlib.figure  # noqa: F401 - `shown` may have been imported before it went missing

        from .shown import ShownFigure
    return ShownFigure(figsize=(width, height), layout="constrained")


def plain(name: str) -> str:
    """Returns a name as matplotlib shows it: a dollar begins no formula, and an underscore hides no label."""
    return " " * name.startswith("_") + printable(name).replace("$", r"\$")


def labelled(given: str | None, default: str) -> str:
    """Returns the given label, or the default.

    Raises:
        InvalidInput: the label is no text.
    """
    if not isinstance(given, str | None):
        raise InvalidInput(f"`label` is {shown(given)}: it must be a text, such as 'accuracy'.")
    return default if given is None else given


def reward_label(study: Study, given: str | None = None) -> str:
    """Returns the given label of rewards, else "reward" or "loss", or the name of the first of several objectives."""
    return labelled(given, objectives(study)[0].name)
