"""Pictures of several studies of one problem: the best value or the volume so far, and the distribution of values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._utils.checks import Array, shown
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..errors import InvalidInput
from ..study.best import meets
from ..study.curves import half_interval
from ..study.direction import signs_of
from ..study.front import believed_values, own_volumes, volumes
from ..study.quantities import drawn, objectives, quantity
from ..study.study import Study
from ..theory.fronts import non_dominated, reference_point
from .base import BEST, MODEL, OBSERVED, labelled, new_figure, plain
from .lines import Line, draw_lines, inches, name_lines, paper_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST = 8  # Contenders that colours and dashes tell apart.
CRUSHED = 2.5  # The first tenth may stretch the axis by this factor.
OUTLIERS = 0.05  # Share of the values at either end that the axis of a distribution may leave out.
MARGIN = 0.35  # Share of the axis above the values that count.


def compare(
    studies: Any,
    path: str | Path | None = None,
    *,
    of: str | int | None = None,
    reference: Sequence[float] | None = None,
    width: str | float = 5.0,
    height: float | None = None,
    label: str | None = None,
) -> Figure:
    """Returns a picture of the best value so far of several studies of one problem.

    Of several objectives, it is the volume of the front so far, by the posterior means of now and from one reference
    point. That point follows from the trials of all studies unless `reference` gives it.

    A contender is a study, or several studies with different seeds. Of several, the line is the mean with its 95%
    interval (Student's t). If all contenders have the same seeds, a second panel shows the mean paired difference to
    the first contender. An interval that leaves 0 out speaks for a difference.

    Trials that failed or violated constraints count as trials and never as the best. The axis leaves out far worse
    values of the first tenth of the trials.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1))
    >>> results = [nr.minimize(lambda x: x**2, space, trials=6, seed=seed, progress=False) for seed in (0, 1)]
    >>> figure = nr.plots.compare(results)

    Args:
        studies: two to eight studies or results, by name or in a list. In place of a study, a list of studies.
        path: path of the picture, or None to save nothing. The ending names the format: .pdf, .svg or .png.
        of: name or number of one of several objectives, whose best value is drawn. None for the volume.
        reference: the worst value of each objective that counts, in the units told.
        width: inches, or "column" or "page" of a paper.
        height: inches. The default fits the panels.
        label: label of the values. The default is "best value so far", or "volume so far".

    Raises:
        InvalidInput: the goals differ, a study has no answer, or the names are not clear.
    """
    check_picture(path)
    groups = _named(studies)
    measure = _measure(groups, of, reference)
    best = {name: _aligned([measure.so_far(study) for study in group]) for name, group in groups.items()}
    paired = len(groups) > 1 and _paired(groups)
    with paper_style():
        wide = inches(width)
        figure = new_figure(wide, inches(height) if height is not None else (1.55 if paired else 1.0) * 0.6 * wide)
        shares = [1.6, 1.0][: 1 + paired]
        axes: Any = figure.subplots(1 + paired, 1, squeeze=False, sharex=True, height_ratios=shares)[:, 0]
        place = {name: i for i, name in enumerate(groups)}
        lines = [_line(name, values) for name, values in best.items()]
        panels = [(axes[0], draw_lines(axes[0], lines, place, step=True))]
        axes[0].set(ylabel=labelled(label, f"{measure.word} so far"))
        _limit(axes[0], lines)
        if paired:
            first, *others = best
            differences = [_line(name, _difference(best[name], best[first])) for name in others]
            panels.append((axes[1], draw_lines(axes[1], differences, place, step=True)))
            axes[1].axhline(0.0, color="0.5", lw=0.8)
            axes[1].set(ylabel=f"minus {plain(first)}")
            _limit(axes[1], differences)
        for ax in axes:
            ax.grid(alpha=0.25, lw=0.5)
        last = max(line.x[-1] for line in lines)
        axes[-1].set(xlabel="trials", xlim=(1.0, last) if last > 1.0 else (0.5, 1.5))
        axes[-1].xaxis.get_major_locator().set_params(nbins=6, integer=True)
        name_lines(figure, panels, direct=True)
        save(figure, path)
    return figure


def edf(
    studies: Any,
    path: str | Path | None = None,
    *,
    of: str | int | None = None,
    reference: Sequence[float] | None = None,
    width: str | float = 5.0,
    height: float | None = None,
    label: str | None = None,
) -> Figure:
    """Returns a picture of the empirical distribution of the values of one or more studies.

    The height of a line at v is the share of the trials whose value is at most v. If the goal is to minimise, the
    better line is above, and if it is to maximise, below. Failed and stopped trials count as trials, so that a line
    ends below 1, or begins above 0 if the goal is to maximise. The axis leaves out far outliers.

    Of several objectives, the value of a trial is the volume that the trial alone dominates, by the posterior means of
    now. It is 0 for trials that violate constraints.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1))
    >>> results = [nr.minimize(lambda x: x**2, space, trials=6, seed=seed, progress=False) for seed in (0, 1)]
    >>> figure = nr.plots.edf(results)

    Args:
        studies: up to eight studies or results, by name or in a list. In place of a study, a list of studies.
        path: path of the picture, or None to save nothing. The ending names the format: .pdf, .svg or .png.
        of: name or number of one of several objectives. None for the volume.
        reference: the worst value of each objective that counts, in the units told.
        width: inches, or "column" or "page" of a paper.
        height: inches. The default is 0.6 times the width.
        label: label of the values. The default is "value", or "volume of a trial".

    Raises:
        InvalidInput: the goals differ, a study has no answer, or the names are not clear.
    """
    check_picture(path)
    groups = _named(studies)
    measure = _measure(groups, of, reference)
    told = {name: np.sort(np.concatenate([measure.told(study) for study in group])) for name, group in groups.items()}
    ended = {name: sum(_ended(study) for study in group) for name, group in groups.items()}
    upward = measure.upward
    everything = np.concatenate(list(told.values()))
    low, high = float(everything.min()), float(everything.max())
    lines = []
    for name, values in told.items():
        failed = (ended[name] - len(values)) * upward
        share = (failed + np.arange(len(values) + 1)) / ended[name]
        lines.append(Line(name, np.array([low, *values, high]), np.array([*share, share[-1]])))
    with paper_style():
        wide = inches(width)
        figure = new_figure(wide, 0.6 * wide if height is None else inches(height))
        ax: Axes = figure.subplots()
        drawn = draw_lines(ax, lines, {name: i for i, name in enumerate(groups)}, step=True)
        ax.set(xlabel=labelled(label, measure.name), ylabel="share of trials at most this", ylim=(0.0, 1.02))
        ax.grid(alpha=0.25, lw=0.5)
        low, high = np.quantile(everything, [OUTLIERS, 1.0 - OUTLIERS])
        spread = MARGIN * (high - low)
        if float(np.ptp(everything)) > CRUSHED * (high - low) > 0.0:
            ax.set_xlim(max(low - spread, everything.min()), min(high + spread, everything.max()))
        name_lines(figure, [(ax, drawn)], direct=False)
        save(figure, path)
    return figure


def _named(studies: Any) -> dict[str, list[Study]]:
    """Returns the studies of each contender by name, after checks."""
    if isinstance(_study(studies), Study):
        studies = [studies]
    if isinstance(studies, Sequence) and not isinstance(studies, str):
        names = [
            _study(each).name if isinstance(_study(each), Study) else f"study {i + 1}" for i, each in enumerate(studies)
        ]
        if len(set(names)) < len(names):
            names = [f"study {i + 1}" for i in range(len(names))]
        studies = dict(zip(names, studies, strict=True))
    if not isinstance(studies, Mapping) or not studies or len(studies) > MOST:
        raise InvalidInput(f"`studies` is {shown(studies)}: it must be one to {MOST} studies, by name or in a list.")
    groups = {}
    for name, given in studies.items():
        group = [_study(each) for each in (given if isinstance(given, list | tuple) else [given])]
        if not group or not all(isinstance(each, Study) for each in group):
            raise InvalidInput(
                f"`studies` has {shown(given)} under {name!r}: it must be a study, a result, or a list of them."
            )
        groups[str(name)] = group
    _check_alike([study for group in groups.values() for study in group])
    for name, group in groups.items():
        if any(not len(objectives(study)[0].values) for study in group):
            raise InvalidInput(f"{name!r} has a study without an answer, so that there is nothing to draw.")
    return groups


def _check_alike(studies: Sequence[Study]) -> None:
    """Raises `InvalidInput` unless studies have the same goals and, if these are several, names of objectives."""
    goals = {study.goals for study in studies}
    names = {study.policy.objective_names for study in studies if len(study.goals) > 1}
    if len(names) > 1 or len(set(map(len, goals))) > 1:
        raise InvalidInput("Some studies have other objectives than others, so that they cannot be compared.")
    if len(goals) > 1:
        raise InvalidInput("Some studies maximise and others minimise, so that their values cannot be compared.")


def _study(given: Any) -> Any:
    """Returns the study of a result, and anything else as it is."""
    return getattr(given, "study", given)


class _Measure(NamedTuple):
    """The number by which studies are compared.

    Attributes:
        so_far: returns the best one up to each trial of a study, `(trials,)`. NaN before the first.
        told: returns the numbers of the answered trials of a study, `(n,)`.
        upward: True if more is better.
        word: name of the best one.
        name: name of a number.
    """

    so_far: Callable[[Study], Array]
    told: Callable[[Study], Array]
    upward: bool
    word: str = "best value"
    name: str = "value"


def _measure(groups: Mapping[str, list[Study]], of: str | int | None, reference: Sequence[float] | None) -> _Measure:
    """Returns an objective as a number to compare, or the volume of several objectives."""
    every = [study for group in groups.values() for study in group]
    numbers = drawn(every[0], of)
    if not all(each.objective for each in numbers):
        raise InvalidInput(f"`of` is {shown(of)}: studies are compared by an objective.")
    if len(numbers) == 1:
        if reference is not None:
            raise InvalidInput("`reference` is for the volume of several objectives, and one is drawn: leave it out.")
        (number,) = numbers
        of, named = number.channel, len(every[0].goals) > 1
        return _Measure(
            lambda study: best_so_far(study, of), lambda study: quantity(study, of).values, number.upward,
            *((f"best {number.name}", number.name) if named else ()),
        )  # fmt: skip
    believed = [believed_values(study) for study in every]
    corner = _corner(every[0], np.concatenate(believed), reference)
    known = {id(study): values for study, values in zip(every, believed, strict=True)}

    def told(study: Study) -> Array:
        answered = np.array([trial.reward is not None for trial in study.trials], dtype=bool)
        return np.nan_to_num(own_volumes(known[id(study)][answered], corner))

    return _Measure(lambda study: volumes(known[id(study)], corner), told, True, "volume", "volume of a trial")


def _corner(study: Study, values: Array, reference: Sequence[float] | None) -> Array:
    """Returns the reference point of the volumes, all objectives maximised, `(k,)`."""
    if reference is not None:
        return signs_of(study.goals) * study.front_values(reference).reference
    known = values[np.isfinite(values).all(axis=1)]
    return reference_point(known, known[non_dominated(known)])


def _ended(study: Study) -> int:
    return sum(trial.state in ("observed", "failed", "stopped") for trial in study.trials)


def best_so_far(study: Study, of: str | int | None = None) -> Array:
    """Returns the best feasible value of an objective up to each trial, `(trials,)`. NaN before the first."""
    number = quantity(study, of)
    values = [
        number.told(trial) if trial.reward is not None and meets(study.policy, trial) else np.nan
        for trial in study.trials
    ]
    better = np.fmax if number.upward else np.fmin
    return np.asarray(better.accumulate(np.array(values, dtype=np.float64)))


def _aligned(curves: list[Array]) -> Array:
    """Returns curves of the same length, that of the shortest, `(studies, n)`."""
    shortest = min(len(curve) for curve in curves)
    return np.stack([curve[:shortest] for curve in curves])


def _paired(groups: Mapping[str, list[Study]]) -> bool:
    """Returns whether all contenders have several studies with the same seeds, in the same order."""
    seeds = [[study.seed for study in group] for group in groups.values()]
    return len(seeds[0]) > 1 and all(each == seeds[0] for each in seeds) and len(set(seeds[0])) == len(seeds[0])


def _difference(values: Array, first: Array) -> Array:
    shortest = min(values.shape[1], first.shape[1])
    return np.asarray(values[:, :shortest] - first[:, :shortest])


def _line(name: str, values: Array) -> Line:
    """Returns the mean with its interval, where all studies have a value."""
    mean = np.asarray(values.mean(axis=0))
    if len(values) == 1:
        return Line(name, np.arange(1.0, len(mean) + 1.0), mean)
    half = half_interval(values)
    return Line(name, np.arange(1.0, len(mean) + 1.0), mean, (np.asarray(mean - half), np.asarray(mean + half)))


def _limit(ax: Axes, lines: Sequence[Line]) -> None:
    """Cuts the axis at what happens after the first tenth of the trials, if that would be crushed."""
    shown = [part for line in lines for part in (line.y, *(line.band or ()))]
    late, every = np.concatenate([part[len(part) // 10 :] for part in shown]), np.concatenate(shown)
    late, every = late[np.isfinite(late)], every[np.isfinite(every)]
    if not len(late):
        return
    spread = float(np.ptp(late))
    if spread > 0.0 and float(np.ptp(every)) > CRUSHED * spread:
        ax.set_ylim(float(late.min()) - MARGIN * spread, float(late.max()) + MARGIN * spread)


NAMES = {
    "snips": "self-normalised IPS",
    "dr": "doubly robust",
    "ips": "IPS",
    "switch": "switch",
    "model": "model",
}


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
    check_picture(path)
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
    save(figure, path, dpi=150)
    return figure
