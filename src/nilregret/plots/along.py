"""Parameters as axes of a panel, and trials seen along them."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any, NamedTuple, Protocol, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray
from .._utils.numerals import numeral
from ..domains.domain import Domain, space_of
from ..domains.options import option_key, worded
from ..domains.parameters import Choice, Int
from ..storage.record import Trial
from ..study.best import in_space
from ..study.formatting import figure
from ..study.function import Axis as ParameterAxis
from ..study.function import Function, axes, on_equalities, value_at
from ..study.study import Study
from .scene import Axis
from .ticks import log_ticks

MOST_OPTIONS = 12  # Options of a choice that are shown.
LONG = 24  # Letters of all options beyond which their words are turned.
MOST_LETTERS, MOST_IN_TITLE = 16, 40


def places(axis: ParameterAxis, values: Sequence[Any], options: Sequence[Any]) -> Array:
    """Returns where values are drawn, `(n,)`: numbers at themselves, options at their position, NaN if not shown."""
    if not isinstance(axis.parameter, Choice):
        return np.array(values, dtype=np.float64)
    place = {option_key(option): float(i) for i, option in enumerate(options)}
    return np.array([place.get(option_key(value), np.nan) for value in values])


def scale(axis: ParameterAxis, options: Sequence[Any], **more: Any) -> Axis:
    """Returns the axis of a parameter, with the ticks that a person would write."""
    parameter, name = axis.parameter, axis.name
    if isinstance(parameter, Choice):
        words = [option_word(option) for option in options]
        ticks = [(float(i), word) for i, word in enumerate(words)]
        steep = sum(map(len, words)) > LONG
        return Axis(label=name, limits=(-0.5, len(words) - 0.5), ticks=ticks, grid=False, steep=steep, **more)
    low, high = float(parameter.low), float(parameter.high)
    if low == high:
        return Axis(label=name, limits=(low - 0.5, high + 0.5), ticks=[(low, numeral(low))], **more)
    if parameter.log:
        half = (high / low) ** 0.02
        return Axis(label=name, limits=(low / half, high * half), log=True, ticks=log_ticks(low, high), **more)
    if isinstance(parameter, Int):
        return Axis(label=name, limits=(low - 0.5, high + 0.5), whole=True, **more)
    return Axis(label=name, limits=(low, high), **more)


def option_word(option: Any) -> str:
    """Returns an option in a few letters."""
    return shortened(worded(option))


def shortened(word: str) -> str:
    """Returns a word, or its beginning if it is long."""
    return word if len(word) <= MOST_LETTERS else f"{word[: MOST_LETTERS - 1]}…"


def edges(axis: ParameterAxis, values: Sequence[Any]) -> Array:
    """Returns the edges of cells around values, `(n + 1,)`, in the middle between neighbours."""
    at = places(axis, values, values)
    if isinstance(axis.parameter, Choice) or len(at) == 1:
        return np.append(at - 0.5, at[-1] + 0.5)
    at = np.log(at) if axis.parameter.log else at
    middle = 0.5 * (at[1:] + at[:-1])
    every = np.concatenate([[2.0 * at[0] - middle[0]], middle, [2.0 * at[-1] - middle[-1]]])
    return np.asarray(np.exp(every) if axis.parameter.log else every)


class Place(Protocol):
    """A point and its context where axes meet, such as a trial."""

    @property
    def point(self) -> Array:
        """The point, `(d,)`."""

    @property
    def context(self) -> Array | None:
        """The context, `(c,)`, or None."""


@final
class Seen(NamedTuple):
    """Trials, seen along axes through a place.

    Attributes:
        trials: the trials in which all axes are active.
        values: values of each axis, a list for each.
        close: prior correlation of each trial with its projection on the section, `(n,)`.
    """

    trials: Sequence[Trial]
    values: list[list[Any]]
    close: Array


def seen_along(
    study: Study,
    function: Function,
    through: Place,
    axes: Sequence[ParameterAxis],
    trials: Sequence[Trial] | None = None,
) -> Seen:
    """Returns trials along some axes through a place: these trials, or all that are answered."""
    domain = study.policy.domain
    trials = [trial for trial in study.trials if trial.reward is not None] if trials is None else trials
    trials = in_space(study.policy, trials)
    if trials:
        counting = active_at(domain, np.array([trial.point for trial in trials]), axes)
        trials = [trial for trial, counts in zip(trials, counting.tolist(), strict=True) if counts]
    values = [[value_at(domain, trial.point, axis) for trial in trials] for axis in axes]
    if not trials:
        return Seen([], values, np.zeros(0))
    points = np.array([trial.point for trial in trials])
    projected = np.repeat(through.point[None], len(trials), axis=0)
    for axis in axes:
        projected[:, axis.columns] = points[:, axis.columns]
    contexts = others = None
    if through.context is not None:
        contexts = np.array([trial.context for trial in trials])
        others = np.repeat(through.context[None], len(trials), axis=0)
    return Seen(
        trials, values, function.closeness((points, contexts), (on_equalities(domain, projected, axes), others))
    )


def active_at(domain: Domain, points: Array, axes: Sequence[ParameterAxis]) -> npt.NDArray[np.bool_]:
    """Returns whether all of some parameters count at points `(n, d)`, `(n,)`."""
    space = space_of(domain)
    counting = None if space is None else space.active(points)
    if counting is None:
        return np.ones(len(points), dtype=bool)
    return np.asarray(counting[:, [axis.columns.start for axis in axes]].all(axis=1))


def assumed(study: Study, through: Place, points: Array) -> list[str]:
    """Returns the values of parameters that are active at some points `(n, d)` but not at a place, a text or none."""
    domain = study.policy.domain
    known = {
        axis.name: active_at(domain, np.concatenate([through.point[None], points]), [axis]) for axis in axes(domain)
    }
    found = {
        axis.name: value_at(domain, points[known[axis.name][1:].argmax()], axis)
        for axis in axes(domain)
        if not known[axis.name][0] and known[axis.name].any()
    }
    return [fill(f"{figure(found)} where active", MOST_IN_TITLE)] if found else []


def tried_along(study: Study, axis: ParameterAxis) -> tuple[list[Any], IndexArray]:
    """Returns the values of a parameter that were asked for, and the number of trials of each, `(n,)`."""
    domain, trials = study.policy.domain, in_space(study.policy, study.trials)
    if not len(trials):
        return [], np.zeros(0, dtype=np.intp)
    points = np.array([trial.point for trial in trials])
    rows, counts = np.unique(points[active_at(domain, points, [axis])][:, axis.columns], axis=0, return_counts=True)
    if space_of(domain) is None:
        return rows[:, 0].tolist(), counts
    return [axis.parameter.decode(row) for row in rows], counts


def contexts_of(through: Place, count: int) -> Array | None:
    """Returns the context of a place, n times, `(n, c)`, or None."""
    return None if through.context is None else np.repeat(through.context[None], count, axis=0)


def faded(close: Array) -> Array:
    """Returns the opacity of trials, `(n,)`: 1 on the section, and never invisible."""
    return np.asarray(0.12 + 0.88 * close**2)
