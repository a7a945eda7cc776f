"""Known limits of a space: which points keep them, and by how much.

| symbol | name | meaning | shape |
|---|---|---|---|
| u | `points` | encoded points | (n, d) |
| g(u) | `gaps` | left side less right side of each comparison, in the user's units; it holds where g <= 0 | (n, m) |
| A u = b | `equalities` | in columns of real parameters | (k, d), (k,) |
| A u <= b | `linear` | comparisons that are linear in the columns | (l, d), (l,) |
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, number_in, shown
from .._utils.numerals import exact
from ..errors import InvalidInput, printable, warn
from .conditions import Conditions, Mask, columns_by_name
from .limits_terms import ROUNDING, Truth, Values, comparison, signs
from .limits_text import Reader
from .parameters import Choice, Float, Parameter

MOST_LIMITS = 100  # of a space
LEAST = 1e-9  # Slope or singular value, as a share of the largest, that is none.
MOVED = (
    "Amounts miss the limit {} by a hundredth or less. That is taken as rounding, and they are recorded in proportion, "
    "so that they meet it. Check them for typing errors."
)
ROUNDED = 0.01  # Share of a total by which given amounts may miss it, as amounts of two or three decimals do.
MOST_CHARACTERS = 10_000  # of all its limits, since each is evaluated at each point that is considered

Limit = str | Callable[..., Any]


@final
class Limits:
    """The limits of a space, all of which every trial keeps.

    Args:
        conditions: the parameters of the space, and the conditions of those that do not always count.
        given: texts or functions.

    Attributes:
        given: the limits, with texts as Python writes them, each once.
        owner: place in `texts` of each comparison, `(m,)`.
        real: True for columns of parameters that vary continuously, `(d,)`.
    """

    def __init__(self, conditions: Conditions, given: tuple[Limit, ...]) -> None:
        if len(given) > MOST_LIMITS:
            raise InvalidInput(f"These are {len(given):,} limits, and the most is {MOST_LIMITS}: join some by `and`.")
        length = sum(len(limit) for limit in given if isinstance(limit, str))
        if length > MOST_CHARACTERS:
            raise InvalidInput(f"These limits have {length:,} characters, and the most of all is {MOST_CHARACTERS:,}.")
        self._conditions, parameters = conditions, conditions.parameters
        self.columns, self.dimension = columns_by_name(parameters), sum(p.columns for p in parameters.values())
        self.parameters: Mapping[str, Parameter] = parameters
        self.real = np.concatenate([np.full(p.columns, p.real) for p in parameters.values()])
        reader = Reader(parameters, self.columns, self.dimension)
        self.given: tuple[Limit, ...] = ()
        self._truths: list[Truth] = []
        owner: list[int] = []
        for limit in given:
            kept, truths = reader.read(limit) if isinstance(limit, str) else (limit, [self._of_function(limit)])
            if kept in self.given:
                continue
            for truth in truths:
                _check_equality(kept, truth, self)
            owner += [len(self.given)] * len(truths)
            self.given = (*self.given, kept)
            self._truths += truths
        self.owner: IndexArray = np.array(owner, dtype=np.intp)

    def __reduce__(self) -> tuple[Any, ...]:
        return Limits, (self._conditions, self.given)

    def __repr__(self) -> str:
        return f"Limits({', '.join(map(repr, self.texts))})"

    @property
    def functions(self) -> list[Limit]:
        """The limits that are functions."""
        return [limit for limit in self.given if not isinstance(limit, str)]

    @property
    def texts(self) -> tuple[str, ...]:
        """Each limit as a text. A function is its name between < and >."""
        return tuple(limit if isinstance(limit, str) else f"<{_name(limit)}>" for limit in self.given)

    def plain(self) -> list[str]:
        """Returns the texts, as a description has them.

        Raises:
            InvalidInput: a limit is a function.
        """
        for limit in self.functions:
            raise InvalidInput(
                f"The limit <{_name(limit)}> is a function, and a record has no functions. Write it as a text, such as "
                "'a + b <= 1'; a study in memory takes functions, too."
            )
        return [str(limit) for limit in self.given]

    @cached_property
    def equal(self) -> Mask:
        """True for comparisons that are equalities of `equalities`, `(m,)`."""
        return np.array([_is_plane(truth) for truth in self._truths], dtype=bool)

    def holds(self, points: Array) -> Mask:
        """Returns which encoded, valid points `(n, d)` keep all limits, `(n,)`.

        Rounding may miss one of real numbers by 1e-10 of the size of its terms.
        """
        return np.asarray(~self.missed(points).any(axis=1))

    def tight(self, points: Array) -> Mask:
        """Returns which points `(n, d)` keep all limits without rounding, equalities excepted, `(n,)`.

        A search makes only such points. Their decoded values keep a limit as Python evaluates it.
        """
        gaps, slacks = self._evaluated(points)
        result = np.asarray(((gaps <= 0.0) | (self.equal & (slacks <= 0.0))).all(axis=1))
        near = np.flatnonzero(~result & (slacks <= 0.0).all(axis=1))
        if len(near):  # within the margin, where the last digit decides
            gaps, slacks = self._evaluated(points[near], exact=True)
            result[near] = ((gaps <= 0.0) | (self.equal & (slacks <= 0.0))).all(axis=1)
        return result

    def balanced(self, point: Array) -> Array:
        """Returns a given point `(d,)` on the equalities, to which rounded amounts are moved.

        Amounts change in proportion, so those of 0 stay. Other limits that the given point keeps are kept.

        Raises:
            InvalidInput: it misses an equality by more than a hundredth of its total.
        """
        gaps, slacks = (each[0] for each in self._evaluated(point[None]))
        missed = np.flatnonzero(self.equal & (slacks > 0.0)).tolist()
        for place in missed:
            text, (row, bound, _) = self.texts[self.owner[place]], self.line(place)
            total, over = number_in(text.rpartition(" == ")[2]), float(row @ point - bound)
            most = ROUNDED * (abs(total or 0.0) or float(gaps[place] - slacks[place]) / ROUNDING / 2.0)
            if abs(over) > most * (1.0 + 1e-9):
                what = f"differ by {over:.6g}" if total is None else f"add up to {total + over:.6g}, not {exact(total)}"
                raise InvalidInput(
                    f"The parameters of the limit {shown(text)} {what}. Up to {most:.2g} is taken as rounding. Usually "
                    "an amount is missing or wrong."
                )
        if not missed:
            return point
        warn(MOVED.format(shown(self.texts[self.owner[missed[0]]])))
        amounts, (C, ends) = np.zeros((1, len(point))), self.linear or (np.zeros((0, len(point))), np.zeros(0))
        for name, at in self.columns.items():
            if (parameter := self.parameters[name]).real:
                span, value = parameter.high - parameter.low, float(parameter.decode(point[at]))  # type: ignore[union-attr]
                amounts[0, at] = abs(value) / span
        held, stay = C @ point <= ends + ROUNDING, np.zeros(len(C), dtype=bool)
        moved = self.on_equalities(point[None], amounts)[0]
        while (passed := held & ~stay & (C @ moved > ends + ROUNDING)).any():  # These stay at their bound.
            stay |= passed
            moved = self.on_equalities(point[None], amounts, (C[stay], ends[stay]))[0]
        return np.asarray(moved)

    def on_equalities(self, points: Array, amounts: Array, more: tuple[Array, Array] | None = None) -> Array:
        """Returns the points `(n, d)` on the equalities, to which columns change in proportion to amounts `(n, d)`.

        A column that reaches an end of its range stays there.

        Args:
            points: encoded points `(n, d)`.
            amounts: at least 0, in units of the columns. A column of 0 stays.
            more: A and b of more equalities, or None.
        """
        if self.equalities is None:
            return points
        A, b = self.equalities
        weights = amounts / np.maximum(np.abs(A).sum(axis=0), LEAST) * A.any(axis=0)
        A, b = (np.concatenate(each) for each in zip((A, b), more or (A[:0], b[:0]), strict=True))
        while weights.any():  # Each round but the last leaves columns at an end.
            roots = np.sqrt(weights)
            back = np.linalg.pinv(A * roots[:, None], rcond=LEAST)
            found = points + roots * (back @ (b - points @ A.T)[:, :, None])[:, :, 0]
            points = np.where(weights > 0.0, found.clip(0.0, 1.0), points)
            weights = np.where(found == points, weights, 0.0)
            if (found == points).all():
                break
        return np.asarray(points)

    def missed(self, points: Array) -> Mask:
        """Returns which comparisons do not hold at encoded, valid points `(n, d)`, `(n, m)`."""
        return np.asarray(self._evaluated(points)[1] > 0.0)

    def gaps(self, points: Array) -> Array:
        """Returns how far each comparison is missed at encoded, valid points `(n, d)`, in the user's units, `(n, m)`.

        A gap is left side less right side, and infinite where it is not finite. If a parameter in it is real, 5e-11 of
        the size of its terms is added. So decoded values keep a limit where its gap is at most 0.
        Of `and` it is the largest, of `or` the smallest. Of options and functions it is -1 or 1.
        """
        return self._evaluated(points)[0]

    def jacobian(self, points: Array, *, step: float = 1e-6) -> Array:
        """Returns the slopes of the gaps in the columns of real parameters, and 0 in the others, `(n, m, d)`.

        They are exact for linear comparisons, 0 for functions, and otherwise central differences, one-sided at the ends
        of a range.
        """
        n, bent, columns = len(points), *self._bent
        result, places = np.zeros((n, len(self._truths), self.dimension)), np.arange(len(columns))
        for place in self.straight:
            row, bound, equal = self.line(place)
            side = np.sign(points @ row - bound)[:, None] if equal else 1.0
            result[:, place] = side * np.where(self.real, row, 0.0)
        ends = np.clip(points[:, columns].T + np.array([-step, step])[:, None, None], 0.0, 1.0)
        moved = np.broadcast_to(points, (2, len(columns), *points.shape)).copy()
        moved[:, places, :, columns] = ends.swapaxes(0, 1)
        gaps = self._evaluated(moved.reshape(-1, self.dimension), places=bent)[0]
        low, high = gaps.reshape(2, len(columns), n, len(bent))
        with np.errstate(invalid="ignore"):
            rise = (high - low) / (ends[1] - ends[0])[..., None]
        result[:, bent[:, None], columns] = rise.transpose(1, 2, 0)
        return np.where(np.isfinite(result), result, 0.0)

    @cached_property
    def _bent(self) -> tuple[IndexArray, IndexArray]:
        """Places of the texts' comparisons that are not linear, and columns of the real parameters in them."""
        places = [i for i, truth in enumerate(self._truths) if truth.names and i not in self.straight]
        names = frozenset[str]().union(*(self._truths[place].names for place in places))
        columns = [self.columns[name].start for name in names if self.parameters[name].real]
        return np.array(places, dtype=np.intp), np.sort(np.array(columns, dtype=np.intp))

    @property
    def conditional(self) -> frozenset[str]:
        """Parameters that do not always count."""
        return frozenset(self._conditions.needs)

    @cached_property
    def equalities(self) -> tuple[Array, Array] | None:
        """A and b of A u = b, with rows that do not follow from others, `(k, d)` and `(k,)`, or None."""
        rows = [self.line(place)[:2] for place in self.straight if _is_plane(self._truths[place])]
        if not rows:
            return None
        A, b = np.array([row for row, _ in rows]), np.array([bound for _, bound in rows])
        scale = np.abs(A).max(axis=1)
        A, b = A / scale[:, None], b / scale
        kept: list[int] = []
        for row in range(len(A)):
            if np.linalg.matrix_rank(A[[*kept, row]], tol=1e-9) > len(kept):
                kept.append(row)
        return A[kept], b[kept]

    @cached_property
    def linear(self) -> tuple[Array, Array] | None:
        """A and b of A u <= b, of the comparisons that are linear, `(l, d)` and `(l,)`, or None."""
        lines = [self.line(place)[:2] for place in self.straight if not _is_plane(self._truths[place])]
        if not lines:
            return None
        return np.array([row for row, _ in lines]), np.array([bound for _, bound in lines])

    @cached_property
    def straight(self) -> IndexArray:
        """Places of the comparisons that are linear, equalities included, of parameters that always count."""
        always = [truth.line is not None and not truth.names & self.conditional for truth in self._truths]
        return np.flatnonzero([flat and bool(np.any(t.line[0])) for flat, t in zip(always, self._truths, strict=True)])  # type: ignore[index]

    @property
    def curved(self) -> bool:
        """True if some comparisons are not linear, so that only `holds` knows them."""
        return len(self.straight) < len(self._truths)

    def line(self, place: int) -> tuple[Array, float, bool]:
        """Returns a and b of a linear comparison, and True if it is a u = b rather than a u <= b."""
        truth = self._truths[place]
        row, bound = truth.line  # type: ignore[misc]  # of those that are linear
        return row, bound, truth.equal

    def _evaluated(
        self, points: Array, *, exact: bool = False, places: IndexArray | None = None
    ) -> tuple[Array, Array]:
        """Returns gaps, and gaps less what rounding may do, each `(n, m)`.

        Args:
            points: `(n, d)`.
            exact: True to decode to the last digit, which takes longer.
            places: of the comparisons, or None for all.
        """
        truths = self._truths if places is None else [self._truths[place] for place in places]
        active = self._conditions.active(points) if self._conditions.needs else None
        starts = {name: self.columns[name].start for name in self._conditions.needs}
        values = Values(
            {name: _values(self.parameters[name], points[:, self.columns[name]], exact) for name in self._named},
            {} if active is None else {name: active[:, start] for name, start in starts.items()},
            points,
            exact,
        )
        gaps = np.empty((2, len(points), len(truths)))
        with np.errstate(all="ignore"):
            for place, truth in enumerate(truths):
                gaps[0, :, place], gaps[1, :, place] = truth.of(values)
        return gaps[0], gaps[1]

    @cached_property
    def _named(self) -> frozenset[str]:
        return frozenset[str]().union(*(truth.names for truth in self._truths))

    def _of_function(self, function: Any) -> Truth:
        """Returns the comparison of a function, which is called once for each point."""
        names, takes_all = _arguments(function, self.parameters)

        def of(v: Values) -> tuple[Array, Array]:
            rows = {name: v.points[:, self.columns[name]] for name in names}
            said = []
            for i in range(len(v.points)):
                counting = [name for name in names if name not in v.active or v.active[name][i]]
                given = {name: self.parameters[name].decode(rows[name][i]) for name in counting}
                said.append(_answer(function, given) if takes_all or len(given) == len(names) else True)
            return signs(said)

        return comparison(of, frozenset())


def _values(parameter: Parameter, columns: Array, exact: bool) -> npt.NDArray[Any]:
    """Returns the values of a parameter, or the places of its options, `(n,)`."""
    if isinstance(parameter, Choice):
        return np.asarray(columns.argmax(axis=1))
    at = np.clip(columns[:, 0], 0.0, 1.0)
    low, high = float(parameter.low), float(parameter.high)
    if exact and parameter.real:
        return np.array([float(parameter.decode(row)) for row in columns])
    if parameter.real or (not isinstance(parameter, Float) and parameter.step == 1):
        values = low * (high / low) ** at if parameter.log else low + at * (high - low)
        values = np.clip(values, low, high)
        return values if parameter.real else np.rint(values)
    each, which = np.unique(at, return_inverse=True)
    return np.array([float(parameter.decode(np.array([position]))) for position in each])[which]


def _name(function: Any) -> str:
    return printable(str(getattr(function, "__name__", type(function).__name__))).strip("<>")


def _arguments(function: Any, known: Mapping[str, Parameter]) -> tuple[list[str], bool]:
    """Returns the parameters that a function takes by name, and True if it takes any."""
    try:
        arguments = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InvalidInput(
            f"The limit {shown(function)} is a function without names of arguments.",
            advice="Write it with those of the parameters, such as lambda a, b: a + b <= 1.",
        ) from None
    if any(each.kind is each.VAR_KEYWORD for each in arguments):
        return list(known), True
    needed = [each for each in arguments if each.kind is not each.VAR_POSITIONAL]
    wrong = [each.name for each in needed if each.name not in known and each.default is each.empty]
    wrong += [each.name for each in needed if each.name in known and each.kind is each.POSITIONAL_ONLY]
    names = [each.name for each in needed if each.name in known]
    if wrong or not names:
        takes = f"takes {', '.join(wrong)}" if wrong else "takes nothing by the name of a parameter"
        raise InvalidInput(
            f"The limit <{_name(function)}> {takes}; the parameters are {shown(', '.join(known))}.",
            advice="A limit takes parameters by name, such as lambda a, b: a + b <= 1.",
        )
    return names, False


def _answer(function: Any, parameters: Mapping[str, Any]) -> bool:
    """Returns the truth value that a function says of some parameters."""
    try:
        answer = function(**parameters)
    except Exception as error:  # It is the user's, and may raise anything.
        raise InvalidInput(
            f"The limit <{_name(function)}> raised {type(error).__name__} ({error}) at {shown(dict(parameters))}: it "
            "must say True or False of every point of the space."
        ) from error
    if not isinstance(answer, bool | np.bool_):
        raise InvalidInput(
            f"The limit <{_name(function)}> returned {shown(answer)}, and it must return True or False. Where it is a "
            "number g that must not be positive, return g <= 0."
        )
    return bool(answer)


def _is_plane(truth: Truth) -> bool:
    return truth.equal and truth.line is not None and not truth.cyclic


def _check_equality(text: Limit, truth: Truth, limits: Limits) -> None:
    """Raises an error for an equality that cannot be kept exactly, with what to write instead."""
    if not truth.equal or truth.cyclic:
        return
    named = {name: limits.parameters[name] for name in limits.parameters if name in truth.names}
    instead = (
        "Leave one of its parameters out of the space, compute it from the others in the objective, and keep it in its "
        "range by a limit, such as '0 <= 1 - a <= 1' for 1 - a."
    )
    for name, parameter in named.items():
        if len(named) == 1:
            why, advice = (
                f"leaves `{printable(name)}` one value",
                "Leave it out, or declare it as a Choice of one option.",
            )
        elif isinstance(parameter, Choice):
            why, advice = f"is an equality with `{printable(name)}`, which is a choice", instead
        elif parameter.low == parameter.high:
            continue
        elif not parameter.real:
            why, advice = f"is an equality with `{printable(name)}`, which has steps", instead
        elif parameter.log:
            why = f"is an equality with `{printable(name)}`, which varies by its logarithm"
            advice = f"Declare {name} without log=True."
        elif name in limits.conditional:
            why, advice = f"is an equality with `{printable(name)}`, which does not always count", instead
        else:
            continue
        raise InvalidInput(f"Limit {text!r} {why}, so no point could be drawn that meets it exactly. {advice}")
    if truth.line is None:
        raise InvalidInput(
            f"Limit {text!r} is an equality that is not linear, so no point could be drawn that meets it exactly. "
            f"{instead}"
        )
