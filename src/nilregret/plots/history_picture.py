"""The picture of how a study went: every value, the best so far, and the gap to the best."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, many
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..domains.conditions import Mask
from ..errors import InvalidInput, TrialError
from ..storage.record import Trial
from ..study.best import meets, without_violation
from ..study.curves import running_mean
from ..study.direction import best_label, on_average, signs_of
from ..study.front import Front, believed_values, volumes
from ..study.function import expected_gain
from ..study.quantities import Quantity, quantity
from ..study.study import Study
from ..study.waiting import counted_trials
from .curves_picture import last_values, stopped_marks, stopped_of
from .drawing import draw
from .scene import Axis, Band, Line, Mark, Panel, Picture, Points, Words
from .source import (
    NO_SINGLE_BEST,
    Source,
    answered_of,
    are_clicks,
    best_of,
    has_single_best,
    is_noisy_study,
    numbers_drawn,
    standing,
)
from .ticks import beyond, fenced, log_ticks, padded, spread_evenly

EDGE = 0.18  # Room above and below the values, as a share: for the label of the best.
SHORTEST = 20  # Fewest values of a running mean.
MOST, COLUMNS = 800, 200  # Values that are drawn one by one. Of more, quantiles are drawn in so many columns.
GROWTH = 0.01  # Share of the volume that counts as progress.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # Quantiles of values that share a column.
MOST_FAILED = 500  # Failed trials that are drawn.


class Told(NamedTuple):
    """The answered trials that count, in their order, `(n,)` each, and those that do not count yet in words.

    Attributes:
        numbers: of the trials.
        plays: number of plays of each trial.
        values: told. That of a run is the mean of its plays.
        feasible: False where the trial violated a constraint.
        best_so_far: best feasible value since the last restart. NaN before the first.
        left_out: trials that do not count yet, or an empty text (`nilregret.study.waiting`).
    """

    numbers: IndexArray
    plays: Array
    values: Array
    feasible: Mask
    best_so_far: Array
    left_out: str


@final
class History:
    """The numbers of the picture, in the units told. `told` are those of the answered trials (`Told`).

    Args:
        study: with any policy.
        of: an objective, or None for the first one.

    Raises:
        InvalidInput: no trial has been answered.
    """

    def __init__(self, study: Study, of: Quantity | None = None) -> None:
        self.study, self.of = study, quantity(study, of)
        told = numbers_told(study, self.of)
        self.counted = bool(len(told.values))  # Of trials that do not count yet, all are drawn.
        told = told if self.counted else _numbers(self.of, answered_of(study), "")
        self.numbers, self.plays, self.values, self.feasible, self.best_so_far, self.left_out = told
        self.in_runs = bool((self.plays > 1.0).any())
        self.places = np.cumsum(self.plays) if self.in_runs else self.numbers.astype(np.float64)
        self.failed = [trial.number for trial in study.trials if trial.state == "failed"]
        self.stopped = stopped_of(self.of)
        self.upward, self.clicks = self.of.upward, are_clicks(study)
        self.noisy = self.clicks or is_noisy_study(study)
        self.length = max(SHORTEST, int(self.plays.sum()) // 10)  # Of a running mean, in plays.
        self.restarts = restarts_of(study)

    @property
    def window(self) -> int:
        """Length of a running mean that replaces the best so far, else 0 (see `history`)."""
        averaged = self.clicks or self.study.policy.context is not None or on_average(self.study.policy)
        return self.length if averaged else 0

    @cached_property
    def best(self) -> Trial | None:
        """The trial with the best value, the recommended one under noise, or None if none is feasible or best."""
        return best_of(self.study, self.of) if has_single_best(self.study) else None

    @property
    def best_value(self) -> float | None:
        """The value told of the best trial, or None."""
        return None if self.best is None else self.of.told(self.best)

    @property
    def words(self) -> str:
        """Standing of the best trial (see `standing`)."""
        if not has_single_best(self.study):
            return NO_SINGLE_BEST
        return "" if self.best is None else standing(self.study, self.best)

    @property
    def ended(self) -> int:
        """Number of trials that are not pending."""
        return sum(trial.state != "pending" for trial in self.study.trials)

    @property
    def since(self) -> int:
        """Number of trials that ended after the last improvement of the best so far."""
        now = self.feasible & (self.numbers >= max(self.study.restarts, default=0))
        at_best = np.flatnonzero((self.values == self.best_so_far[-1]) & now)
        later = self.study.trials[int(self.numbers[at_best[0]]) + 1 :] if len(at_best) else ()
        return sum(trial.state != "pending" for trial in later)

    @property
    def improved(self) -> bool:
        """True if a trial since the last restart was better than the first one."""
        best = self.best_so_far[self.numbers >= max(self.study.restarts, default=0)]
        return len(np.unique(best[~np.isnan(best)])) > 1

    @cached_property
    def gain(self) -> float | None:
        """Expected further gain over the recommended trial, or None if it is unknown."""
        return None if self.best is None else further_gain(self.study)

    @cached_property
    def spent(self) -> tuple[IndexArray, Array] | None:
        """Numbers of the trials with constraint values and their means so far, `(k,)` and `(k, m)`, or None."""
        told = [(trial.number, trial.constraints) for trial in self.study.trials if trial.constraints is not None]
        if not told or not on_average(self.study.policy):
            return None
        sums = np.cumsum([values for _, values in told], axis=0)
        return np.array([n for n, _ in told]), sums / np.arange(1, len(told) + 1)[:, None]

    @property
    def gaps(self) -> Array:
        """Distance of each value from the best one so far at the end, at least 0, `(n,)`."""
        return np.asarray(np.abs(self.values - self.best_so_far[-1]))

    @cached_property
    def running(self) -> Array:
        """Mean of the last `length` plays until each value, `(n,)`."""
        return running_mean(self.values, self.length, self.plays)

    @property
    def best_name(self) -> str:
        """Name of the line of the best values so far."""
        which = " mean of a run" * self.in_runs + " without a violation" * (not self.feasible.all())
        which += " since the last restart" * bool(self.restarts)
        return f"best so far ({best_label(self.of.goal)}{which})"

    @property
    def mean_name(self) -> str:
        """Name of the line of the running mean."""
        last = many(self.length, "play") if self.in_runs else f"{self.length:,}"
        return f"{'rate' if self.clicks else 'mean'} of the last {last}"


def history(
    source: Source,
    path: str | Path | None = None,
    *,
    of: str | int | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of how a study went: every value, the best so far, and the gap to the best on a log scale.

    The title names the best trial, says how long ago the best value improved, and how much more can be
    expected. Far outliers are arrows at the edge. Failed trials are ticks on the axis, and trials that violate
    constraints are crosses. Stopped trials are open marks at their last value. Where values would overlap, their
    quantiles are drawn. Dashed lines are restarts, after which the best so far begins anew.

    Several objectives have the volume of the front after each trial, and a panel each of their values. The means of now
    measure the volume, so that it never falls and noise does not count as progress.

    Noisy rewards have a running mean. For rewards of 0 or 1, under contexts, and under budgets on average, the running
    mean replaces best and gap. A budget has a panel of its mean constraint values so far.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 0.3) ** 2, nr.Space(x=nr.Float(0, 1)), trials=8, progress=False)
    >>> figure = nr.plots.history(result)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        of: name of an objective, number or text of a constraint, or name of a metric. Of the last two the picture has
            each value and the running mean. None for the reward, or all objectives.
        range: lowest and highest value that is possible or of interest. By default that of the values without far
            outliers.
        label: of the values. By default "reward", or "loss" if the goal is to minimise, or the name in `of`.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered.
    """
    check_picture(path, interactive=interactive)
    each = numbers_drawn(source, of, range, label)
    study: Study = each[0].of.study
    if len(each) == 1:
        panels = panels_of(*each[0])
        heights: Sequence[float] = (3.0, 2.0)[: len(panels)]
    else:
        answered_of(study)
        panels = [volume_panel(study, study.front_values()), *(panels_of(*one)[0] for one in each)]
        panels = [panel.at(row, 0) for row, panel in enumerate(panels)]
        heights = [3.0] * len(panels)
    picture = Picture(
        panels=panels, heights=heights, size=(7.2, 1.3 + 0.75 * sum(heights)), name=study.name, legend=True
    )
    return draw(picture, path, interactive=interactive)


def panels_of(of: Quantity, limits: tuple[float, float] | None, label: str) -> list[Panel]:
    """Returns the panels of an objective (`history_panels`), or the panel of another number that trials told."""
    study, values = of.study, of.values
    if of.objective:
        return history_panels(History(study, of), limits, label)
    if not len(values):
        raise InvalidInput(f"No trial has told {of.name}, so there is nothing to draw.")
    end = float(max(len(study.trials), SHORTEST))
    ends = (-0.5 - 0.01 * end, 1.01 * end - 0.5)
    low, high = float(values.min()), float(values.max())
    room = limits or ((min(low, 0.0), max(high, 0.0)) if of.limited else (low, high))
    limit = [Line(ends, [0.0, 0.0], "text", "the limit", 1.0, dashed=True)] if of.limited else []
    title = f"told by {many(len(values), 'trial')}, from {numeral(low)} to {numeral(high)}"
    x, y = Axis(label="trial", limits=ends, whole=True), Axis(label=label, limits=padded(room, EDGE))
    return [Panel(marks=[*limit, *_each_told(of), *_star_of(of)], x=x, y=y, title=title)]


def volume_panel(study: Study, found: Front) -> Panel:
    """Returns the panel of the volume of the front after each trial, by the posterior means of now.

    Args:
        study: with several objectives.
        found: its front, which has the reference point.
    """
    values, signs = believed_values(study), signs_of(study.goals)
    curve = volumes(values, signs * found.reference) if found.trials else np.zeros(len(values))
    grown = np.flatnonzero(np.diff(curve, prepend=0.0) > GROWTH * curve.max(initial=0.0))
    later = study.trials[int(grown[-1]) + 1 :] if len(grown) else ()
    last = sum(trial.state != "pending" for trial in later)
    said = (
        f"it last grew by more than {GROWTH:.0%}: {many(last, 'trial')} ago" if last else "the last trial made it grow"
    )
    said = said if len(grown) else ""
    end = max((trial.number for trial in study.trials if trial.state != "pending"), default=0) + 0.5
    line = _steps(np.arange(float(len(curve))), curve, end, "volume of the front, by the means of now")
    x = Axis(label="trial", limits=(-0.5 - 0.01 * end, 1.01 * end), whole=True)
    return Panel(
        marks=[line, *restart_rules(restarts_of(study), (0.0, float(curve.max(initial=0.0))))], x=x,
        y=Axis(label="volume"), title=f"volume {numeral(float(curve[-1]))}\n{said}".strip(),
    )  # fmt: skip


def _each_told(of: Quantity) -> list[Mark]:
    """Returns each value that trials told, and the running mean."""
    kept = spread_evenly(len(of.trials), MOST)
    trials, values = [of.trials[i] for i in kept.tolist()], of.values[kept]
    numbers = np.array([trial.number for trial in trials], dtype=np.float64)
    feasible = {trial.number for trial in without_violation(of.study.policy, trials)}
    inside = np.array([trial.number in feasible for trial in trials], dtype=bool)
    hover = [f"trial {trial.number}: {numeral(value)}" for trial, value in zip(trials, values.tolist(), strict=True)]
    marks: list[Mark] = []
    for chosen, name, shape, size in ((inside, "observed", "o", 4.0), (~inside, "not feasible", "x", 6.0)):
        if chosen.any():
            words = [hover[i] for i in np.flatnonzero(chosen).tolist()]
            marks.append(Points(numbers[chosen], values[chosen], "observed", name, shape, size, hover=words))
    length = max(SHORTEST, len(of.trials) // 10)
    return [*marks, Line(numbers, running_mean(of.values, length)[kept], "model", f"mean of the last {length:,}")]


def _star_of(of: Quantity) -> list[Mark]:
    """Returns the mark of the best trial, if there is one and it told the number."""
    study = of.study
    best = best_of(study) if has_single_best(study) else None
    told = None if best is None else of.told(best)
    if best is None or told is None:
        return []
    called = standing(study, best)
    return [Points([best.number], [told], "best", called, "*", 11.0, hover=[f"trial {best.number}: {numeral(told)}"])]


def numbers_told(study: Study, of: Quantity | None = None) -> Told:
    """Returns the numbers of the answered trials that count (`nilregret.study.waiting`), or of none.

    Args:
        study: with any policy.
        of: an objective, or None for the first one.
    """
    known = counted_trials(study, valued=True)
    return _numbers(quantity(study, of), known.answered, known.left_out)


def _numbers(of: Quantity, answered: Sequence[Trial], left_out: str) -> Told:
    study = of.study
    values = np.array([of.told(trial) for trial in answered], dtype=np.float64)
    numbers = np.array([trial.number for trial in answered], dtype=np.intp)
    plays = np.array([1.0 if trial.plays is None else trial.plays.times for trial in answered])
    by_round = not on_average(study.policy)  # On average, no single round violates a constraint.
    feasible = np.array([not (by_round and trial.feasible is False) for trial in answered], dtype=bool)
    better = np.fmax if of.upward else np.fmin
    known = [meets(study.policy, trial) for trial in answered]
    parts = np.split(np.where(known, values, np.nan), np.searchsorted(numbers, study.restarts))
    return Told(numbers, plays, values, feasible, np.concatenate([better.accumulate(part) for part in parts]), left_out)


def history_panels(
    found: History,
    limits: tuple[float, float] | None,
    label: str,
    *,
    between: tuple[float, float] | None = None,
    titled: bool = True,
) -> list[Panel]:
    """Returns the panel of values, and that of gaps unless all values are one, or that of a budget.

    Args:
        found: the numbers.
        limits: lowest and highest value, or None for those without far outliers.
        label: of the values.
        between: places of the axis that are shown, or None for all.
        titled: False for no title, which may take a search.
    """
    stopped = _places(found, [trial.number for trial in found.stopped])
    end = max(float(found.places[-1]), *_failed(found), *stopped.tolist(), 0.0) + 0.5
    ends = (-0.5 - 0.01 * end, end + 0.01 * end)
    shown = np.arange(len(found.places))
    if between is not None:
        inside = np.flatnonzero((found.places >= between[0]) & (found.places <= between[1]))
        shown, ends = (inside, between) if len(inside) else (shown, ends)
    x = Axis(label="play" if found.in_runs else "trial", limits=ends, whole=True, places=_runs(found, shown))
    columns = COLUMNS if len(shown) > MOST else 0
    below = _spending(found, x) if found.window else _gaps(found, x, shown, end, columns=columns)
    above = x if below is None else Axis(limits=x.limits, whole=True, places=x.places)
    limits = limits or fenced(np.append(found.values, last_values(found.stopped)), upward=found.upward)
    marks = _dense(found, limits, shown) if columns else _values(found, limits, shown)
    marks += _lines(found, shown, end, columns=columns)
    marks += stopped_marks(found.stopped, stopped, limits=limits, ends=padded(limits, EDGE))
    marks += _of_trials(found, padded(limits, EDGE), end)
    values = Panel(
        marks=marks, x=above, y=Axis(label=label, limits=padded(limits, EDGE)), title=said(found) if titled else ""
    )
    return [values] if below is None else [values, below.at(1, 0)]


def _runs(found: History, shown: IndexArray) -> list[tuple[float, str]]:
    """Returns the words of places if some trials are runs of plays."""
    if not found.in_runs:
        return []
    return [(float(found.places[i]), f"{int(found.places[i]):,}, trial {found.numbers[i]}") for i in shown.tolist()]


def _failed(found: History) -> list[float]:
    """Returns the places of the failed trials, at most 500 of them."""
    failed = np.array(found.failed, dtype=np.float64)
    return _places(found, failed[spread_evenly(len(failed), MOST_FAILED)]).tolist()  # type: ignore[no-any-return]


def _places(found: History, numbers: npt.ArrayLike) -> Array:
    """Returns the places of trials without an answer, by their numbers `(n,)`."""
    at = np.asarray(numbers, dtype=np.float64)
    return np.append(0.0, found.places)[np.searchsorted(found.numbers, at)] if found.in_runs else at


def said(found: History) -> str:
    """Returns where the study stands, in two lines."""
    step = _step(found)
    when = f"last improved {many(found.since, 'trial')} ago" if found.since else "last improved by the last trial"
    when = when if found.improved or not found.since else "no later trial was better than the first"
    if found.window:
        total = float(found.values @ found.plays) / float(found.plays.sum())
        mean, last = (numeral(float(value), step=step) for value in (total, found.running[-1]))
        when = f"mean {mean}, of the last {min(found.window, int(found.plays.sum()))}: {last}"
        when += f"; not counted yet: {found.left_out}" * bool(found.left_out)
    best = found.best_value
    if found.best is None or best is None:
        if found.words:
            return f"{found.words}\n{when}"
        return f"nothing feasible in {many(found.ended, 'trial')}\nexpected further gain: unknown"
    value = "" if found.clicks else f" with {numeral(best, step=step)}"
    said = f"{found.words}: trial {found.best.number}{value}\n{when}"
    if len(found.study.goals) > 1:  # Gains of one objective do not say what a front gains.
        return said
    return f"{said}; expected further gain: {'unknown' if found.gain is None else numeral(found.gain, 2)}"


def _step(found: History) -> float:
    """Returns the difference of values that matters, a hundredth of their range."""
    low, high = fenced(found.values, upward=found.upward)
    return 0.01 * (high - low)


def _values(found: History, limits: tuple[float, float], shown: IndexArray) -> list[Mark]:
    """Returns a mark for each value. Far ones are arrows at the edge."""
    low, high = limits
    values = found.values[shown]
    inside, feasible = (values >= low) & (values <= high), found.feasible[shown]
    marks: list[Mark] = []
    for chosen, label, shape in ((inside & feasible, "observed", "o"), (inside & ~feasible, "not feasible", "x")):
        if chosen.any():
            marks.append(_told(found, shown[chosen], label, shape))
    return marks + _outside(found, limits, shown)


def _outside(found: History, limits: tuple[float, float], shown: IndexArray) -> list[Mark]:
    ends = dict(zip("v^", padded(limits, EDGE), strict=True))
    return [
        _told(found, shown[chosen], f"{chosen.sum()} {name}", shape, at=ends[shape])
        for chosen, shape, name in beyond(found.values[shown], limits)
    ]


def _told(found: History, chosen: IndexArray, label: str, shape: str, *, at: float | None = None) -> Points:
    values = found.values[chosen]
    far = at is not None
    hover = [f"trial {n}: {numeral(v)}" for n, v in zip(found.numbers[chosen], values, strict=True)] if far else ()
    size = 4.0 if shape == "o" else 6.0
    heights = values if at is None else np.full(len(values), at)
    return Points(found.places[chosen], heights, "observed", label, shape, size, hover=hover)


def _dense(found: History, limits: tuple[float, float], shown: IndexArray) -> list[Mark]:
    """Returns the quantiles of as many values as share a column, and the lowest and the highest value of each."""
    size, larger = divmod(len(shown), COLUMNS)  # The first columns have one value more.
    cut = larger * (size + 1)
    parts = [part for part in (shown[:cut].reshape(larger, size + 1), shown[cut:].reshape(-1, size)) if len(part)]
    values = [found.values[part] for part in parts]
    low, quarter, half, three, high = np.hstack([np.quantile(part, LEVELS, axis=1) for part in values])
    x = found.places[np.concatenate([part[:, part.shape[1] // 2] for part in parts])]
    each = many(parts[0].shape[1], "value")
    ends = [
        part[np.arange(len(part)), pick(told, axis=1)]
        for part, told in zip(parts, values, strict=True)
        for pick in (np.argmin, np.argmax)
    ]
    outer = np.unique(np.concatenate(ends))
    within = outer[(found.values[outer] >= limits[0]) & (found.values[outer] <= limits[1])]
    return [
        Band(x, low, high, "observed", f"9 in 10 of {each}", 0.25),
        Band(x, quarter, three, "observed", "the middle half", 0.35),
        Line(x, half, "third", f"median of {each}", 1.2),
        Points(found.places[within], found.values[within], "observed", f"lowest and highest of {each}", size=2.0),
        *_outside(found, limits, outer),
    ]


def _lines(found: History, shown: IndexArray, end: float, *, columns: int) -> list[Mark]:
    """Returns the running mean and the best so far, which is drawn to the end so that a last value is visible."""
    marks: list[Mark] = []
    ends = np.array([part[-1] for part in np.array_split(shown, columns)]) if columns else shown
    if found.window or found.noisy:
        color = "best" if found.window else "model"
        marks.append(Line(found.places[ends], found.running[ends], color, found.mean_name))
    if not found.window:
        marks.append(_steps(found.places[shown], found.best_so_far[shown], end, found.best_name))
    return marks


def _steps(x: Array, y: Array, end: float, name: str = "") -> Line:
    """Returns a line of steps to the end, so that a last value is visible, through the places where it changes."""
    moves = np.flatnonzero(np.append(True, ~((y[1:] == y[:-1]) | (np.isnan(y[1:]) & np.isnan(y[:-1])))))
    return Line(np.append(x[moves], end), np.append(y[moves], y[-1]), "best", name, steps=True)


def restart_rules(restarts: Sequence[tuple[int, str]], limits: tuple[float, float]) -> list[Mark]:
    """Returns a dashed line between two heights before the first trial of each restart, with its reason."""
    return [
        Line([at - 0.5] * 2, limits, "third", "started anew" * (not i), 1.2, dashed=True, hover=f"started anew: {why}")
        for i, (at, why) in enumerate(restarts)
    ]


def restarts_of(study: Study) -> list[tuple[int, str]]:
    """Returns the number of the first trial and the reason of each restart."""
    return list(zip(study.restarts, study.restart_reasons, strict=True))


def further_gain(study: Study) -> float | None:
    """Returns the gain to expect over the recommended trial, or None if none is recommended or no gain is computed."""
    try:
        best = study.best()
    except TrialError:
        return None
    return study.replica.query(partial(expected_gain, best=best))


def _of_trials(found: History, limits: tuple[float, float], end: float) -> list[Mark]:
    """Returns the restarts, the failed trials, which stay readable however many there are, and the best trial."""
    marks = restart_rules(found.restarts, limits)
    failed = _failed(found)
    if failed:
        marks.append(
            Points(
                failed, np.full(len(failed), limits[0]), "failed", "failed", "|", 10.0, hover=["failed"] * len(failed)
            )
        )
    value = found.best_value
    if found.best is None or value is None or found.clicks:
        return marks
    place = float(found.places[np.searchsorted(found.numbers, found.best.number).clip(max=len(found.places) - 1)])
    words = f"trial {found.best.number}: {numeral(value, step=_step(found))}"
    right, above = place <= 0.6 * end, found.upward == bool(value == found.best_so_far[-1])  # Beyond the line.
    marks.append(Points([place], [value], "best", shape="*", size=11.0))
    return [*marks, Words(place, value, words, "best", right=right, above=above)]


def _spending(found: History, x: Axis) -> Panel | None:
    """Returns the panel of mean constraint values so far, or None if there is no budget on average."""
    if found.spent is None or x.limits is None:
        return None
    numbers, means = found.spent
    places = found.places[np.searchsorted(found.numbers, numbers)] if found.in_runs else numbers
    kept = spread_evenly(len(places), MOST)
    lines = [
        Line(places[kept], mean[kept], "model", "mean constraint value so far" * (not j))
        for j, mean in enumerate(means.T)
    ]
    budget = Line(x.limits, [0.0, 0.0], "text", "budget: at most 0 on average", 1.0, dashed=True)
    return Panel(marks=[*lines, budget], x=x, y=Axis(label="constraint"))


def _gaps(found: History, x: Axis, shown: IndexArray, end: float, *, columns: int) -> Panel | None:
    """Returns the panel of gaps to the best value, on a logarithmic axis, or None if all values are one."""
    gaps, line = found.gaps, np.abs(found.best_so_far - found.best_so_far[-1])
    shown = shown[found.feasible[shown]]
    if columns:  # The smallest gap of each column is drawn.
        shown = np.array([part[gaps[part].argmin()] for part in np.array_split(shown, columns) if len(part)])
    apart = shown[gaps[shown] > 0.0]
    if not len(apart) or found.restarts:  # After a restart, older values are no gap.
        return None
    low, high = float(gaps[apart].min()), float(gaps[apart].max())
    limits = (low / 2.0, 1.5 * high)
    marks: list[Mark] = [
        Points(found.places[apart], gaps[apart], "observed", "gap to best", opacity=0.8),
        _steps(found.places[shown], np.maximum(line[shown], limits[0]), end),
    ]
    return Panel(marks=marks, x=x, y=Axis(label="gap to best", log=True, limits=limits, ticks=log_ticks(*limits)))
