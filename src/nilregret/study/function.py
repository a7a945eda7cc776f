"""The objective as the posterior of a study knows it, in the units told: medians, quantiles and draws of f."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.numerals import exact
from .._utils.randomness import Draws
from ..domains.domain import Arms, Box, Domain, Space, sides, space_of
from ..domains.options import json_of
from ..domains.parameters import Choice, Float, Parameter, option_place, option_texts
from ..errors import InvalidInput, NoRegretError, printable
from ..policy import function_values
from ..policy.state import State
from ..storage.record import Trial
from ..storage.visit import Facts
from .direction import AnyState, Goal, on_average

FAR = 0.3  # Distance, as a share of the sides, at which arms off the table are hardly close.
MOST_ROWS = 4096  # Points that are predicted at once, against memory.


@final
class Function:
    """The posterior of a study at one moment. Its numbers are in the units told, of rewards or of losses.

    Args:
        state: of the study, after all trials. It is copied.
        goal: of the objective, or "maximize" for a constraint.
        seed: of the study. Equal studies have equal draws.
        channel: number of the output: objectives first, then constraints.

    Raises:
        InvalidInput: the policy is a script, which has no posterior, or its model has not learned the units of rewards.
    """

    def __init__(self, state: AnyState, goal: Goal, seed: int, *, channel: int = 0) -> None:
        if not isinstance(state, State):
            raise InvalidInput(
                f"{state.policy.algorithm} has no posterior, so there is no model of the objective to show.",
                advice="`nr.plots.history` and `nr.plots.parallel` draw the trials alone.",
            )
        if answers := state.outputs.each[channel].answers_for_units:
            raise InvalidInput(
                f"The model has no units yet: it learns them from the first {answers} rewards.",
                advice="`nr.plots.history` and `nr.plots.parallel` draw the trials alone.",
            )
        self._state, self._seed, self._channel = state.copy(), seed, channel
        self._sign = 1.0 if goal == "maximize" else -1.0

    def median(self, points: Array, contexts: Array | None = None) -> Array:
        """Returns posterior medians at points `(n, d)`, each under its context `(n, c)`, `(n,)`."""
        return self._sign * self._by_rows(
            partial(function_values.medians, self._state, self._channel), points, contexts
        )

    @cached_property
    def _plausible(self) -> function_values.Beliefs:
        return function_values.plausible(self._state, self._channel)

    def quantiles(self, levels: Sequence[float], points: Array, contexts: Array | None = None) -> Array:
        """Returns quantiles of these levels at points, `(levels, n)`, over plausible kernels and noises of a fit."""
        asked = levels if self._sign > 0.0 else [1.0 - level for level in levels]
        cells_of, read = self._state.outputs.engine.cells_of, function_values.quantiles
        return self._sign * self._by_rows(lambda *at: read(self._plausible, cells_of(*at), asked), points, contexts)

    def draws(self, points: Array, contexts: Array | None = None, *, size: int) -> Array:
        """Returns functions drawn from the posterior at points, `(size, n)`. They are the same each time."""
        rng = Draws(f"function {self._seed}")
        cells = self._state.outputs.engine.cells_of(points, contexts)
        return self._sign * function_values.draws(self._plausible, cells, rng, size)

    def closeness(self, left: function_values.Cells, right: function_values.Cells) -> Array:
        """Returns prior correlations between n pairs of points, from 0 to 1, `(n,)`.

        Arms off the table have no correlation in the model, and count by their distance.
        """
        try:
            found = function_values.correlations(self._state, self._channel, left, right)
        except InvalidInput:
            unit = sides(self._state.policy.domain)
            found = np.exp(-np.square((left[0] - right[0]) / unit).sum(axis=1) / FAR**2)
        return np.clip(found, 0.0, 1.0)

    @staticmethod
    def _by_rows(read: Any, points: Array, contexts: Array | None) -> Array:
        parts = range(0, len(points), MOST_ROWS)
        found = [
            read(points[i : i + MOST_ROWS], None if contexts is None else contexts[i : i + MOST_ROWS]) for i in parts
        ]
        return np.concatenate(found, axis=-1)


def answers_for_units(state: AnyState) -> int:
    """Returns the number of rewards from which a model has learned their units, or 0 if it knows them."""
    return state.reward.answers_for_units if isinstance(state, State) else 0


def expected_gain(state: AnyState, best: Trial, *, per_cost: bool = False) -> float | None:
    """Returns the gain to expect over the recommended trial, in the units told, at least 0.

    It is the largest mean of max(f(x) - f(b), 0) over points x, with b the recommended one: how far x is expected to
    beat it. The joint posterior counts. If f(b) is known and answers are exact, one more trial gains this much. Under
    noise many do. If constraints have posteriors, the gain counts with the probability of feasibility.

    Args:
        state: of the study, after all trials. It is copied.
        best: the recommended trial. Points are compared under its context.
        per_cost: True for the largest gain per unit of cost, if the policy has costs (`nilregret.slots.PerCost`).

    Returns:
        None if there is no such number, since the policy has no posterior, prices violations, or may play nothing.
    """
    if not isinstance(state, State) or on_average(state.policy) or state.reward.answers_for_units:
        return None
    try:
        gain = function_values.expected_gain(state.copy(), _cells(best), per_cost=per_cost)
    except NoRegretError:  # Nothing may be played, such as with slopes that are refuted.
        return None
    return gain if math.isfinite(gain) else None


def shortfall(state: AnyState, best: Trial) -> float:
    """Returns max_x U(x) - L(b), in the units told, for the recommended trial b: what it loses at most.

    The arguments are those of `expected_gain`. Without a posterior it is infinite.
    """
    return function_values.shortfall(state.copy(), _cells(best)) if isinstance(state, State) else math.inf


def noise_of(state: AnyState) -> float:
    """Returns the standard deviation of the noise of an answer that the model learned, in the units told."""
    if not isinstance(state, State):
        return 0.0
    posterior = state.reward.posterior
    return math.sqrt(posterior.ridge) * posterior.units.unit


def _cells(best: Trial) -> function_values.Cells:
    return best.point[None], None if best.context is None else best.context[None]


FINER = 8  # Multiple of the points of a line that find where limits begin.
NOTHING = 1e-13  # Share of an ingredient that takes part in the rest although there is none.
PLACES, FEWEST = 11, 5  # Values along a number at the end of its range, and the fewest that it must have.
AT_END = 0.01  # Share of a range from its end within which a trial is at the end.
SURE = 1.5  # Standard deviations. At 1, runs whose optimum lies inside say it twice as often (7% under noise, not 4%).
ENDS = "The best {} is at the {} end of its range, {}, and values improve up to there. Consider a wider range: `widen`."
SAME = 1e-9  # Tolerance of two equal coordinates or parameters, as a share of the side.

Settings = tuple[tuple[str, Any], ...] | None  # Name and value of each parameter.


class Axis(NamedTuple):
    """A parameter or a coordinate of a domain.

    Attributes:
        name: shown to people.
        parameter: its values. A coordinate is a `Float` between its lowest and highest value.
        columns: columns of a point that hold it.
    """

    name: str
    parameter: Parameter
    columns: slice


def settings_at(domain: Domain, point: Array) -> Settings:
    """Returns the named parameters of a point, or None if its domain has none."""
    space = space_of(domain)
    return None if space is None else tuple(space.decode(point).items())


def settings_of(domain: Domain | None, points: Sequence[Array | None]) -> Iterable[Settings]:
    """Returns what `settings_at` does of each point of a domain, or None without a domain."""
    space = None if domain is None else space_of(domain)
    if space is None or not points:
        return [None] * len(points)
    return [tuple(settings.items()) for settings in space.decoded(np.array(points))]


def context_settings(domain: Domain | None, context: Array | None, given: Facts = ()) -> Settings:
    """Returns the named parameters of a context (see `with_facts`), or None if there are none."""
    return with_facts(None if domain is None or context is None else settings_at(domain, context), given)


def with_facts(settings: Settings, given: Facts) -> Settings:
    """Returns the named parameters of a context, with the entries as they came that its coordinates do not say."""
    known = dict(given)
    return settings if settings is None or not given else tuple((name, known.get(name, x)) for name, x in settings)


def axes(domain: Domain) -> list[Axis]:
    """Returns the named parameters with their columns of a point, else the coordinates in which points differ."""
    space = space_of(domain)
    if space is not None:
        return [Axis(name, *of) for name, of in zip(space.parameters, space.columns(), strict=True)]
    corners = domain.points if isinstance(domain, Arms) else np.stack([domain.lower, domain.upper])
    names = ["point"] if domain.dimension == 1 else [f"point[{i}]" for i in range(domain.dimension)]
    ends = zip(corners.min(axis=0).tolist(), corners.max(axis=0).tolist(), strict=True)
    return [
        Axis(name, Float(low, high), slice(i, i + 1))
        for i, (name, (low, high)) in enumerate(zip(names, ends, strict=True))
        if low < high
    ]


def value_at(domain: Domain, point: Array, axis: Axis) -> Any:
    """Returns the value of a parameter or coordinate at a point."""
    if space_of(domain) is None:
        return float(point[axis.columns.start])
    return axis.parameter.decode(point[axis.columns])


def agrees(domain: Domain, points: Array, other: Array, but: tuple[Axis, ...]) -> npt.NDArray[np.bool_]:
    """Returns which points `(n, d)` agree with another point `(d,)` outside of some axes, `(n,)`."""
    mine = np.concatenate([np.arange(len(other))[axis.columns] for axis in but])
    others = np.delete((points - other) / sides(domain), mine, axis=1)
    return np.asarray((np.abs(others) <= SAME).all(axis=1))


def active_axes(domain: Domain, point: Array) -> list[Axis]:
    """Returns the axes that count at a point: all but parameters whose conditions do not hold there."""
    counting = domain.active(point[None]) if isinstance(domain, Space) else None
    return [axis for axis in axes(domain) if counting is None or counting[0, axis.columns.start]]


def is_active(domain: Domain, point: Array, axis: Axis) -> bool:
    """Returns whether a parameter counts at a point."""
    space = space_of(domain)
    counting = None if space is None else space.active(point[None])
    return counting is None or bool(counting[0, axis.columns.start])


def cell_of(domain: Domain, point: Any, named: Mapping[str, Any] | None, axis: Axis) -> Any:
    """Returns the cell of a trial in a sheet.

    Values are those that the trial records, since the space of now may not have them (`Study.widen`).

    Args:
        domain: of points, or of contexts.
        point: of the trial in the domain.
        named: recorded values by name, or None.
        axis: of the cell.
    """
    if not counts(domain, point, named, axis):
        return ""
    value = recorded_at(domain, point, named, axis)
    if isinstance(axis.parameter, Choice) and not isinstance(value, float):
        choice = with_option(axis.parameter, value)
        return option_texts(choice)[choice.find(value) or 0]
    return value


def counts(domain: Domain, point: Any, named: Mapping[str, Any] | None, axis: Axis) -> bool:
    """Returns whether a parameter counts at a trial, by its record or by its point."""
    return axis.name in (named or ()) or is_active(domain, point, axis)


def recorded_at(domain: Domain, point: Any, named: Mapping[str, Any] | None, axis: Axis) -> Any:
    """Returns the value of a parameter that a trial records, or else that at its point."""
    return named[axis.name] if named and axis.name in named else value_at(domain, point, axis)


def with_option(choice: Choice, value: Any) -> Choice:
    """Returns a choice that has an option, which may be unknown or gone."""
    return choice if choice.find(value) is not None else Choice(*choice.options, value)


def is_recorded(
    domain: Domain, point: Any, named: Mapping[str, Any] | None, axis: Axis, cell: Any, *, near: float, texts: bool
) -> bool:
    """Returns whether a cell, None if it is empty, has the value of a trial (see `cell_of`).

    Args:
        domain: of points, or of contexts.
        point: of the trial in the domain.
        named: recorded values by name, or None.
        axis: of the cell.
        cell: an option or its text, or a number.
        near: share of a number that may be rounded away.
        texts: see `option_place`.
    """
    value = recorded_at(domain, point, named, axis)
    if not counts(domain, point, named, axis):
        return True
    if cell is None:
        return value is None or axis.name not in (named or ())
    if isinstance(axis.parameter, Choice):
        choice = with_option(axis.parameter, value)
        return option_place(choice, cell, texts=texts) == choice.find(value)
    return value is not None and bool(abs(cell - value) <= near * abs(value))


def line_through(domain: Domain, point: Array, axis: Axis, *, count: int) -> tuple[list[Any], Array]:
    """Returns the values of an axis and the points `(n, d)` that differ from one point along that axis only.

    Points that break a known limit are left out. Of a real parameter, the values are those around the point up to the
    first limit. Ingredients of a mixture differ together (see `section`).

    Args:
        domain: of the points. Of arms, only existing arms are returned.
        point: `(d,)`.
        axis: along which the points differ.
        count: number of points on a real parameter of a continuous domain.
    """
    if isinstance(domain, Arms):
        points = domain.points[agrees(domain, domain.points, point, (axis,))]
        if not isinstance(axis.parameter, Choice):
            points = points[np.argsort(points[:, axis.columns.start], kind="stable")]
    elif domain.limits is None:
        points = section(domain, point, [(axis, axis.parameter.values(count))])
    else:
        finer = (count - 1) * FINER + 1 if axis.parameter.real else count
        points = section(domain, point, [(axis, axis.parameter.values(finer))])
        kept = np.flatnonzero(permitted(domain, points))
        if axis.parameter.real and len(kept):
            runs = np.split(kept, np.flatnonzero(np.diff(kept) > 1) + 1)
            far = np.abs(points[:, axis.columns.start] - point[axis.columns.start])
            kept = min(runs, key=lambda run: far[run].min())
            kept = kept[np.unique(np.linspace(0, len(kept) - 1, min(count, len(kept))).round().astype(np.intp))]
        points = points[kept]
    return [value_at(domain, each, axis) for each in points], points


def reached_ends(study: Any) -> list[str]:
    """Returns a sentence about each number whose range ends at the recommended trial though values improve up to there.

    Along the number, the posterior mean must be best at the end. A tenth of the range inside it must be worse by more
    than 1.5 standard deviations. Nothing is said about arms, limits, constraints, contexts and several objectives, and
    of ends that are natural (0, 1 of a range from 0, 1 of whole numbers).

    Args:
        study: a study.
    """
    policy, domain, found = study.policy, study.policy.domain, list[str]()
    if policy.objective_count > 1 or policy.constraint_count or policy.context is not None:
        return found
    if not isinstance(domain, Space) or domain.limits is not None or study.replica.query(answers_for_units):
        return found
    try:
        best = study.best()
        for axis in active_axes(domain, best.point):
            low = _end_at(axis.parameter, best.point[axis.columns.start])
            if low is None:
                continue
            values, points = line_through(domain, best.point, axis, count=PLACES)
            mean, std = (each[:: 1 if low else -1] for each in study.predict(points))
            better = mean[0] - mean if study.goals[0] == "maximize" else mean - mean[0]
            if better.min() >= 0.0 and better[1] > SURE * std[1]:
                side, end = ("lower", values[0]) if low else ("upper", values[-1])
                found.append(ENDS.format(printable(axis.name), side, exact(end)))
    except NoRegretError:  # There is no answer, or no posterior.
        pass
    return found


def _end_at(parameter: Parameter, column: float) -> bool | None:
    """Returns True for the lower end of a range, False for the upper one, and None elsewhere and at natural ends."""
    if isinstance(parameter, Choice) or (parameter.known_count or PLACES) < FEWEST:
        return None
    if column <= AT_END:
        return None if parameter.low in ((0,) if isinstance(parameter, Float) else (0, 1)) else True
    return None if column < 1.0 - AT_END or (parameter.low, parameter.high) == (0, 1) else False


def section(domain: Box | Space, point: Array, lines: Sequence[tuple[Axis, Sequence[Any]]]) -> Array:
    """Returns the points that differ from one point in some axes, `(n, d)`, for all values, the first axis fastest."""
    points = point[None]
    for axis, values in lines:
        rows = np.array([axis.parameter.encode(value) if isinstance(domain, Space) else [value] for value in values])
        points, rows = np.tile(points, (len(rows), 1)), np.repeat(rows, len(points), axis=0)
        points[:, axis.columns] = rows
    return on_equalities(domain, points, [axis for axis, _ in lines])


def on_equalities(domain: Domain, points: Array, axes: Sequence[Axis]) -> Array:
    """Returns valid points `(n, d)` on the equalities of a space, such as the total of a mixture.

    The axes keep their values. Other ingredients share the rest in the proportions that they have above their least
    amounts (Cox 1971). Those at an end of their range stay there.
    """
    if not isinstance(domain, Space):
        return points
    points = domain.snap(points)
    if domain.limits is None:
        return points
    amounts = points + NOTHING
    for axis in axes:
        amounts[:, axis.columns] = 0.0
    return domain.limits.on_equalities(points, amounts)


def permitted(domain: Domain, points: Array) -> npt.NDArray[np.bool_]:
    """Returns which points `(n, d)` of a section keep the ranges and the known limits, `(n,)`."""
    if not isinstance(domain, Space) or domain.limits is None:
        return np.ones(len(points), dtype=bool)
    inside = ((points >= domain.lower - SAME) & (points <= domain.upper + SAME)).all(axis=1)
    return inside & domain.limits.holds(np.clip(points, domain.lower, domain.upper))


def outside(domain: Domain, points: list[tuple[int, Array]]) -> set[int]:
    """Returns the numbers of the points that a domain does not have exactly as they are.

    If the domain refuses some, each is looked at alone.
    """
    if not points:
        return set()
    try:
        rows = np.array([point for _, point in points]).reshape(len(points), domain.dimension)
        right = are_at(domain.inside("point", rows), rows)
    except ValueError:  # `InvalidInput` is one.
        alone = ({points[0][0]} if len(points) == 1 else outside(domain, [each]) for each in points)
        return set().union(*alone)
    return {number for (number, _), is_right in zip(points, right.tolist(), strict=True) if not is_right}


def are_at(places: Array, points: Array) -> npt.NDArray[np.bool_]:
    """Returns whether rows are equal up to rounding, which differs between processors and libraries."""
    return np.asarray((np.abs(places - points) <= SAME * np.maximum(1.0, np.abs(places))).all(axis=-1))


def agree(space: Space | None, stored: Settings, decoded: Settings) -> bool:
    """Returns whether two settings are equal up to rounding, which differs between processors and libraries."""
    if stored is None or decoded is None or space is None:
        return stored is decoded
    old, new = dict(stored), dict(decoded)
    return old.keys() == new.keys() and all(_same(space.parameters[name], old[name], new[name]) for name in new)


def _same(parameter: Parameter, old: object, new: object) -> bool:
    if isinstance(parameter, Choice):
        return json_of(old) == json_of(new)
    if type(old) is not type(new):
        return False
    if isinstance(parameter, Float) and parameter.real and isinstance(old, float) and isinstance(new, float):
        margin = 0.0 if parameter.log else SAME * (parameter.high - parameter.low)
        return math.isclose(old, new, rel_tol=SAME, abs_tol=margin)
    return old == new
