"""Importance of parameters: Sobol indices of the model of a study.

With f the objective and all parameters independent and uniform over the space (or its logarithm),

    first order   S_i  = Var(E[f | x_i]) / Var(f)             parameter i alone
    total         ST_i = 1 - Var(E[f | all but x_i]) / Var(f)    with all its interactions

Indices are correlations between values at points that share some parameters (Martinez 2011), on a scrambled Sobol
sequence. Values come from the posterior median of f, which is the posterior mean unless rewards are warped. Values
worse than the worst one told count as that one, since a warp knows nothing of their size.

If limits tie parameters, points are uniform over the permitted ones. The first order is then what the best function of
parameter i explains. The total is what no function of all others explains, or the first order if that is more. Pairs
share parameter i as neighbours in it (Gamboa et al. 2022), or all but i as permitted redraws of i.

Intervals are the index of the median plus what functions drawn from the posterior add to it. Draws have fewer points
than the median, so the index of the median at those points is subtracted: both have nearly the same integration error.
The integration error of the median widens the interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen
from .._utils.dataclass import dataclass
from .._utils.randomness import Draws, sobol_points
from ..domains.domain import Arms, Domain, Space, space_of
from ..domains.parameters import Choice
from ..domains.search.feasible import region
from ..errors import InvalidInput, needs, printable
from ..policy.policy import Policy
from .direction import AnyPolicy
from .function import Axis, axes
from .quantities import Quantity

if TYPE_CHECKING:
    import pandas as pd


class Factor(NamedTuple):
    """An input that varies apart from all others.

    Attributes:
        name: shown to people.
        values: the columns that the factor may have, `(m, columns)`, all equally likely. None for a real coordinate.
        columns: its columns in a (context, point) row.
        low: lower end of a real coordinate.
        high: upper end of a real coordinate.
    """

    name: str
    values: Array | None
    columns: Sequence[int]
    low: float = 0.0
    high: float = 1.0

    def at(self, shares: Array) -> Array:
        """Returns the columns at numbers in [0, 1], `(n, columns)`."""
        if self.values is None:
            return (self.low + shares * (self.high - self.low))[:, None]
        return self.values[np.minimum((shares * len(self.values)).astype(np.intp), len(self.values) - 1)]


@final
class Factors:
    """The factors of a study: those of its contexts first, then those of its points.

    Arms that are a full grid have a factor for each coordinate. All other arms are one factor, since their coordinates
    do not vary independently. A conditional parameter varies on, and counts only where it is active.

    Args:
        policy: the policy of the study.

    Attributes:
        each: the factors.
        contexts: number of those of contexts.
        tied: True if limits tie parameters.
    """

    def __init__(self, policy: AnyPolicy) -> None:
        self._domain, self._context = cast(Any, policy.domain), policy.context
        self.tied = self._domain.limits is not None
        self._before = 0 if self._context is None else self._context.dimension
        self.each = [] if self._context is None else _factors(self._context, 0, "context")
        self.contexts = len(self.each)
        self.each += _factors(self._domain, self._before, "arm")

    @property
    def names(self) -> list[str]:
        """The names of all factors."""
        return [factor.name for factor in self.each]

    def rows(self, shares: Array) -> tuple[Array, Array | None]:
        """Returns points `(n, d)` and their contexts `(n, c)`, or None, at numbers in [0, 1], `(n, factors)`."""
        rows = np.empty((len(shares), self._before + self._domain.dimension))
        for factor, share in zip(self.each, shares.T, strict=True):
            rows[:, factor.columns] = factor.at(share)
        return self.split(rows)

    def split(self, rows: Array) -> tuple[Array, Array | None]:
        """Returns points and contexts of (context, point) rows, likewise."""
        points, contexts = rows[:, self._before :], rows[:, : self._before]
        return _settled(self._domain, points), None if self._context is None else _settled(self._context, contexts)

    def permitted(self, count: int) -> tuple[Array, IndexArray]:
        """Returns uniform (context, point) rows that keep the limits, and these with one factor drawn anew for each.

        Returns:
            `(1 + p, n, columns)`, with n about `count`, and the rank of each row's value of each factor, `(p, n)`.
        """
        rng = Draws("importance")
        points = region(self._domain).filled(count, rng)
        points = points[: len(points) // PARTS * PARTS]
        rows = np.concatenate([np.zeros((len(points), self._before)), points], axis=1)
        counting = self._domain.active(points)
        for i, factor in enumerate(self.each):  # Contexts have no limits, and inactive parameters vary on.
            if i < self.contexts or counting is not None:
                off = i < self.contexts or ~counting[:, factor.columns[0] - self._before]
                rows[:, factor.columns] = np.where(
                    np.reshape(off, (-1, 1)), factor.at(rng.random(len(rows))), rows[:, factor.columns]
                )
        blocks = [rows, *(self._redrawn(rows, factor, rng) for factor in self.each)]
        ranks = [np.unique(rows[:, factor.columns], axis=0, return_inverse=True)[1].ravel() for factor in self.each]
        return np.stack(blocks), np.stack(ranks)

    def _redrawn(self, rows: Array, factor: Factor, rng: Draws) -> Array:
        """Returns rows with another value of a factor that keeps the limits, or the same where none is found.

        The range of a real coordinate ends at refused values on either side of the row's own. If the permitted values
        are an interval, draws are uniform on it however narrow it is (Neal 2003, Slice sampling, section 4.1).
        """
        result, left = rows.copy(), np.arange(len(rows))
        low, high = np.zeros(len(rows)), np.ones(len(rows))
        here = (rows[:, factor.columns[0]] - factor.low) / ((factor.high - factor.low) or 1.0)
        for _ in range(TRIES):
            tried, shares = rows[left], low[left] + rng.random(len(left)) * (high - low)[left]
            tried[:, factor.columns] = factor.at(shares)
            kept = self._domain.limits.holds(self.split(tried)[0])
            result[left[kept]], left, shares = tried[kept], left[~kept], shares[~kept]
            if not len(left):
                break
            if factor.values is None:
                below = shares < here[left]
                low[left[below]], high[left[~below]] = shares[below], shares[~below]
        return result


def _settled(domain: Domain, points: Array) -> Array:
    """Returns points whose inactive parameters are at their place."""
    space = space_of(domain)
    return points if space is None or space.conditions is None else space.conditions.centre_inactive(points)


def _factors(domain: Domain, first: int, word: str) -> list[Factor]:
    """Returns the factors of a domain whose columns begin at `first`."""
    if isinstance(domain, Arms):
        each = _of_arms(domain, first)
        whole = range(first, first + domain.dimension)
        return [Factor(word, domain.points, whole)] if each is None else each
    found = [_factor(axis, first, isinstance(domain, Space)) for axis in axes(domain)]
    return (
        [f._replace(name=f"{word}{f.name.removeprefix('point')}") for f in found] if _unnamed(domain, word) else found
    )


def _unnamed(domain: Domain, word: str) -> bool:
    return word == "context" and space_of(domain) is None


def _factor(axis: Axis, first: int, encoded: bool) -> Factor:
    parameter = axis.parameter
    columns = range(first + axis.columns.start, first + axis.columns.stop)
    few = not parameter.real and (parameter.count or 1) <= 1000
    if isinstance(parameter, Choice) or (few and not parameter.log):
        values = parameter.values(1000)
        return Factor(axis.name, np.array([parameter.encode(value) for value in values]), columns)
    if not parameter.real:  # Whole numbers on a logarithmic scale are as likely as their part of the scale.
        even = np.linspace(0.0, 1.0, 1001)
        return Factor(
            axis.name, np.array([parameter.encode(parameter.decode(even[i : i + 1])) for i in range(1001)]), columns
        )
    low, high = (0.0, 1.0) if encoded else (parameter.low, parameter.high)
    return Factor(axis.name, None, columns, low, high)


def _of_arms(domain: Arms, first: int) -> list[Factor] | None:
    """Returns a factor for each coordinate of a full grid, or None for other arms."""
    found, count = [], 1
    space = space_of(domain)
    conditional = space is not None and space.conditions is not None
    for axis in axes(domain):
        values = np.unique(domain.points[:, axis.columns], axis=0)
        columns = range(first + axis.columns.start, first + axis.columns.stop)
        found.append(Factor(axis.name, values, columns))
        count *= len(values)
    full = count == len(np.unique(domain.points, axis=0))
    return found if full and not conditional else None


def check_several(factors: Factors) -> None:
    """Raises `InvalidInput` unless there are two factors or more."""
    if len(factors.each) < 2:
        of = factors.names[0] if factors.each else "point"
        raise InvalidInput(
            f"There is only one thing that varies, {of}, so importance has nothing to compare.",
            advice="Arms count as one unless they are a full grid, such as `Space(...).grid(9)`."
            if of == "arm"
            else "",
        )


POINTS = 4096  # Base points of the indices of the median, a power of two.
MOST_TOLD = 2000  # Values told that are compared with the model, the latest.
POINTS_OF_DRAWS = 256  # Base points of the indices of each draw.
DRAWS = 32
LEVELS = (0.05, 0.95)  # Ends of the interval.
NORMAL = 1.645  # Standard errors of integration on either side, for the same 90%.
TRIES = 64  # Draws of one parameter until one keeps the limits.
CELLS = 8  # Groups of values of a parameter, whose pairs tell interactions under limits.
PARTS = 8  # Random parts of the points, whose indices tell the error of integration, or more.
BEST = 0.1  # Share of the space that counts as best.
LEAST = 1e-300  # Against a division by zero.
LITTLE = 0.5  # Share of the variation that the trials determine, below which the order may change.
OF_PART = " (shares are of this part)"
LARGE = 0.5  # Share of the largest total index from which a summary names a parameter.
MOST_NAMED = 3  # Parameters that a summary names.
MENTIONED = 0.05  # Share from which a summary mentions noise, or names what moves the determined variation.
FLAT = 1e-12  # Variance, as a share of the mean square, below which f is constant.


@final
@dataclass(frozen=True, eq=False)
class Indices:
    """Sobol indices of p parameters with 90% intervals.

    Attributes:
        first: first-order indices, `(p,)`.
        total: total indices, `(p,)`.
        first_interval: ends of the intervals of `first`, `(2, p)`.
        total_interval: ends of the intervals of `total`, `(2, p)`.
    """

    first: Array
    total: Array
    first_interval: Array
    total_interval: Array

    @property
    def leaders(self) -> list[int]:
        """The parameters that may be the most important one, by the intervals of `total`. None if all are 0."""
        low, high = self.total_interval
        top = int(self.total.argmax())
        if not self.total[top] > 0.0:
            return []
        ranked = np.argsort(-self.total, kind="stable").tolist()
        return [top, *(i for i in ranked if i != top and high[i] >= low[top])]

    @property
    def named(self) -> list[int]:
        """The parameters that a summary names, most important first. None if more than three matter alike.

        These are the `leaders` and those with half the largest total. The latter alone if they are too many.
        """
        leaders, ranked = self.leaders, np.argsort(-self.total, kind="stable").tolist()
        large = [i for i in ranked if leaders and self.total[i] >= LARGE * self.total.max()]
        either = [i for i in ranked if i in leaders or i in large]
        return next((each for each in (either, large) if len(each) <= MOST_NAMED), [])


@final
@dataclass(frozen=True, eq=False, repr=False)
class Importance:
    """The importance of each parameter, as `study.importance()` returns it.

    Attributes:
        names: of the p parameters, those of contexts first.
        value: indices of the objective over the whole space.
        best: indices of being among the best tenth of the space, which no outlier can move. Ties with the last of the
            tenth belong to it, so it is more than a tenth of few choices or of a plateau. Of a constraint: indices of
            satisfying it. Of a metric: of being among the highest tenth.
        explained: share of the variation of the model that the trials determine, from 0 to 1.
        noise: share of the variation of the values told that the model takes for noise, from 0 to 1.
        interactions: second-order indices of the objective, `(p, p)`, symmetric, 0 on the diagonal.
    """

    names: tuple[str, ...]
    value: Indices
    best: Indices
    explained: float
    noise: float
    interactions: Array

    @cached_property
    def order(self) -> npt.NDArray[np.intp]:
        """Indices of the parameters, the most important one first."""
        return np.argsort(-self.value.total, kind="stable")

    @property
    def certainty(self) -> str:
        """Says how much the trials determine."""
        part, little = ("", "") if self.explained >= LITTLE else (OF_PART, "; more trials may change the order")
        noise = f", and take {self.noise:.0%} of what was told for noise" if self.noise >= MENTIONED else ""
        return f"the trials determine {self.explained:.0%} of the variation{part}{noise}{little}"

    def pairs(self, count: int | None = None) -> list[tuple[str, str]]:
        """Returns the pairs of parameters that interact most, the strongest first, or all pairs."""
        rows, columns = np.triu_indices(len(self.names), 1)
        strongest = np.argsort(-self.interactions[rows, columns], kind="stable")[:count]
        return [(self.names[rows[i]], self.names[columns[i]]) for i in strongest]

    def to_pandas(self) -> pd.DataFrame:
        """Returns a table with a row for each parameter, the most important first."""
        with needs("`to_pandas`", "pandas", "export"):
            import pandas as pd
        columns: dict[str, Array] = {}
        for prefix, indices in (("", self.value), ("best_", self.best)):
            for name in ("first", "total"):
                low, high = getattr(indices, f"{name}_interval")
                columns |= {
                    f"{prefix}{name}": getattr(indices, name), f"{prefix}{name}_low": low, f"{prefix}{name}_high": high
                }  # fmt: skip
        table = pd.DataFrame(columns, index=pd.Index(self.names, name="parameter"))
        return table.iloc[self.order]

    def __repr__(self) -> str:
        names = [printable(name) for name in self.names]
        wide = max(map(len, names))
        lines = [f"{'':{wide}}  alone  total  90% interval  best tenth"]
        for i in self.order:
            low, high = self.value.total_interval[:, i]
            lines.append(
                f"{names[i]:{wide}}  {self.value.first[i]:5.2f}  {self.value.total[i]:5.2f}  "
                f"{low:4.2f} to {high:4.2f}  {self.best.total[i]:10.2f}"
            )
        return "\n".join([*lines, f"{self.certainty[0].upper()}{self.certainty[1:]}."])


def importance(of: Quantity) -> Importance:
    """Returns the importance of each parameter for a number that trials tell, computed once until the next event.

    Args:
        of: an objective, a constraint or a metric.

    Raises:
        InvalidInput: fewer than two trials were answered, only one thing varies, or the policy has no posterior.
    """
    found: Importance = of.study.replica.kept(("indices", of.key), lambda: _importance(of))
    return found


def _importance(of: Quantity) -> Importance:
    told = of.values
    if len(told) < 2:
        raise InvalidInput(
            f"Importance needs at least two answered trials, and this study has {len(told) or 'none'}.",
            advice="Ten trials a parameter say something, fewer little.",
        )
    factors, function = Factors(of.study.policy), of.function
    check_several(factors)
    count, sign = len(factors.each), 1.0 if of.upward else -1.0
    low, high = (float(told.min()), np.inf) if of.upward else (-np.inf, float(told.max()))
    low, high = (-np.inf, np.inf) if of.limited else (low, high)  # Both sides of a limit matter.

    def within(values: Array) -> Array:
        return np.clip(values, low, high)

    many, few = _Design(factors, POINTS, both=True), _Design(factors, POINTS_OF_DRAWS, both=False)
    values = many.blocks(within(function.median(*many.rows))[None])
    drawn = few.blocks(within(function.draws(*few.rows, size=DRAWS)))
    known = few.blocks(within(function.median(*few.rows))[None])
    whole = float(drawn[:, 0].var(axis=-1).mean())
    among = _satisfied if of.limited else _among_best
    return Importance(
        tuple(factors.names),
        _indices(values, known, drawn, tied=factors.tied),
        _indices(*(among(sign * each) for each in (values, known, drawn)), tied=factors.tied),
        min(float(known[:, 0].var()) / whole, 1.0) if whole > 0.0 else 1.0,
        _noise(of, within),
        frozen(_second(values[0], count) if many.ranks is None else _beyond_sums(values[0, 0], many.ranks)),
    )


def _noise(of: Quantity, within: Callable[[Array], Array]) -> float:
    """Returns the share of the variation of the values told that is not that of the model at their points."""
    policy, since = of.study.policy, max(of.study.restarts, default=0)
    if isinstance(policy, Policy) and of.modelled:
        since = policy.memory.first_counted(since, len(of.study.trials))
    trials = [trial for trial in of.trials if trial.number >= since][-MOST_TOLD:]
    if not trials:
        return 0.0
    told = within(of.values[-len(trials) :])
    contexts = None if policy.context is None else np.array([trial.context for trial in trials])
    rest = told - within(of.function.median(np.array([trial.point for trial in trials]), contexts))
    return min(float(rest.var() / told.var()), 1.0) if told.var() > 0.0 else 0.0


def _shares(count: int, points: int, *, both: bool) -> Array:
    """Returns numbers in [0, 1]: A, B, A with column i of B for each i, and if `both` B with column i of A for each i.

    Returns:
        `(2 + p or 2 + 2 p, points, p)`.
    """
    a, b = np.split(sobol_points(2 * count, points, Draws("importance")), 2, axis=1)
    found = [a, b]
    for one, other in ((a, b), (b, a))[: 1 + both]:
        for i in range(count):
            mixed = one.copy()
            mixed[:, i] = other[:, i]
            found.append(mixed)
    return np.stack(found)


@final
class _Design:
    """Points that share parameters: blocks A, B and A with column i of B for each i, and if `both` B with that of A.

    Under limits the blocks are permitted points A, A with column i redrawn for each i, and the neighbour of A in i.

    Attributes:
        rows: points and contexts of all blocks but neighbours.
        ranks: of each value of A among those of its factor, `(p, n)`, or None without limits.
    """

    def __init__(self, factors: Factors, points: int, *, both: bool) -> None:
        if not factors.tied:
            shares = _shares(len(factors.each), points, both=both)
            self.ranks: IndexArray | None = None
            self.rows, self._size = factors.rows(shares.reshape(-1, shares.shape[2])), points
            return
        found, self.ranks = factors.permitted(points)
        self.rows, self._size = factors.split(found.reshape(-1, found.shape[2])), found.shape[1]

    def blocks(self, values: Array) -> Array:
        """Returns the values of functions at all rows `(size, n)` as blocks, `(size, blocks, points)`."""
        found = values.reshape(len(values), -1, self._size)
        if self.ranks is None:
            return found
        order = np.argsort(self.ranks, axis=1, kind="stable")  # Of equal values, in the random order of the points.
        near = np.empty_like(order)
        np.put_along_axis(near, order, np.concatenate([order[:, 1:], order[:, -2:-1]], axis=1), axis=1)
        return np.concatenate([found, found[:, 0][:, near]], axis=1)


def _indices(values: Array, known: Array, drawn: Array, *, tied: bool = False) -> Indices:
    """Returns indices of the median with intervals.

    Args:
        values: of the median, `(1, blocks, n)`.
        known: of the median at the points of the draws, `(1, blocks, m)`.
        drawn: of functions drawn from the posterior, `(size, blocks, m)`.
        tied: True for the blocks of permitted points (see `_Design`).
    """
    count = (drawn.shape[1] - 1) // 2 if tied else drawn.shape[1] - 2
    shuffled = Draws("parts").permutation(values.shape[-1]).reshape(PARTS, -1)
    parts = values[0][:, shuffled].swapaxes(0, 1)
    found, intervals = [], []
    for (index,), at_draws, draws, each in zip(
        *(_first_and_total(of, count, tied=tied) for of in (values, known, drawn, parts)), strict=True
    ):
        error = NORMAL * each.std(axis=0, ddof=1) / np.sqrt(PARTS)
        # Ranks k of n draws count as k / (n + 1), so that a further draw is inside with the probability stated.
        low, high = np.quantile(draws - at_draws, LEVELS, axis=0, method="weibull")
        ends = index - np.hypot(np.minimum(low, 0.0), error), index + np.hypot(np.maximum(high, 0.0), error)
        found.append(index)
        intervals.append(np.clip(ends, 0.0, 1.0))
    return Indices(*map(frozen, (*found, *intervals)))


def _first_and_total(values: Array, count: int, *, tied: bool = False) -> tuple[Array, Array]:
    """Returns first-order and total indices of functions, each `(size, p)`."""
    a, b = values[:, :1], values[:, 0 if tied else 1][:, None]
    one = values[:, 1 : 1 + count] if tied else values[:, 2 : 2 + count]  # A with column i of B, or redrawn.
    like = values[:, 1 + count :] if tied else one  # It has column i of B, or of A.
    varies = ~_flat(values[:, :1])
    first = np.clip(np.where(varies, _correlation(b, like), 0.0), 0.0, 1.0)
    total = np.clip(np.where(varies, 1.0 - _correlation(a, one), 0.0), 0.0, 1.0)
    return first, np.maximum(total, first)  # The error of integration may turn them round.


def _second(values: Array, count: int) -> Array:
    """Returns second-order indices of one function, `(p, p)`."""
    a_of_b, b_of_a = values[2 : 2 + count], values[2 + count :]
    if _flat(values[:1])[0]:
        return np.zeros((count, count))
    first = np.clip(_correlation(values[1], a_of_b), 0.0, 1.0)
    closed = _correlation(a_of_b[:, None], b_of_a[None])  # They share columns i and j.
    found = np.maximum(0.5 * (closed + closed.T) - first[:, None] - first[None], 0.0)
    np.fill_diagonal(found, 0.0)
    return found


def _beyond_sums(values: Array, ranks: IndexArray) -> Array:
    """Returns what functions of two parameters explain beyond sums of functions of each, `(p, p)`.

    Args:
        values: of one function, `(n,)`.
        ranks: of the points' values of each parameter, `(p, n)`.
    """
    count, found = len(ranks), np.zeros((len(ranks), len(ranks)))
    kinds = ranks.max(axis=1, keepdims=True) + 1
    groups = np.where(kinds > CELLS, ranks * CELLS // kinds, ranks)
    own = np.eye(CELLS)
    sums = np.concatenate([np.repeat(own, CELLS, axis=0), np.tile(own, (CELLS, 1))], axis=1)
    for i, j in zip(*np.tril_indices(count, -1), strict=True):
        cells = groups[i] * CELLS + groups[j]
        root = np.sqrt(np.bincount(cells, minlength=CELLS**2))
        means = np.bincount(cells, values - values.mean(), minlength=CELLS**2) / np.maximum(root, 1.0)
        weighted, whole, filled = root[:, None] * sums, len(values) * float(values.var()), int((root > 0.0).sum())
        fitted, _, rank, _ = np.linalg.lstsq(weighted, means)
        rest, inside = means - weighted @ fitted, float(whole - means @ means) / max(len(values) - filled, 1)
        found[i, j] = found[j, i] = float(rest @ rest - (filled - rank) * inside) / max(whole, LEAST)
    return np.maximum(found, 0.0)


def _flat(values: Array) -> npt.NDArray[np.bool_]:
    """Returns which functions are constant, along the last axis."""
    return np.asarray(values.var(axis=-1) <= FLAT * np.maximum((values**2).mean(axis=-1), LEAST))


def _correlation(left: Array, right: Array) -> Array:
    """Returns correlations along the last axis, 0 if one side is constant."""
    left, right = left - left.mean(axis=-1, keepdims=True), right - right.mean(axis=-1, keepdims=True)
    size = np.sqrt((left**2).mean(axis=-1) * (right**2).mean(axis=-1))
    return np.asarray((left * right).mean(axis=-1) / np.where(size > 0.0, size, 1.0))


def _satisfied(values: Array) -> Array:
    """Returns 1.0 where minus the value of a constraint is at least 0, else 0.0."""
    return (values >= 0.0).astype(np.float64)


def _among_best(values: Array) -> Array:
    """Returns 1.0 where a function is in its best tenth, or ties with the last of it, else 0.0. More is better."""
    return (values >= np.quantile(values[:, :1], 1.0 - BEST, axis=-1, keepdims=True)).astype(np.float64)
