"""The value of a policy of slates, from a log of slates that another policy made.

| symbol | name | meaning | shape |
|---|---|---|---|
| s | | a slate: an arm for each of L places | (L,) |
| r_l, r | `rewards` | reward of a place, and their sum | (L,) |
| p_l | `propensities` | probability of the arm of place l, given the places before | (L,) |
| pi(s), mu(s) | | probability of a slate under the policy, and under the log's | |
| 1_s | | which arm is in which place | (L N,) |
| q | `marginals` | mean of 1_s: probability of each arm in each place | (L, N) |
| Gamma | `gamma` | mean of 1_s 1_s^T under the log's policy | (L N, L N) |

| estimate | mean over the slates of | right if |
|---|---|---|
| "slate" | pi(s) / mu(s) r | always |
| "cascade" | sum_l prod_{j <= l} pi(s_j given before) / p_j r_l | a reward depends on its place and those before |
| "independent" | sum_l q_pi(l, s_l) / q_mu(l, s_l) r_l | a reward depends on its place and its arm alone |
| "pi" | q_pi^T Gamma^+ 1_s r | the mean of r is a sum over the places |
| "wpi" | the same, over the mean of q_pi^T Gamma^+ 1_s | likewise, with less variance and some bias |

"slate" and "cascade" need the propensities of the log alone. "cascade" is the reward interaction estimator of
McInerney, Brost, Chandar, Mehrotra & Carterette (2020, "Counterfactual evaluation of slate recommendations with
sequential reward interactions"). "pi" and "wpi" are the pseudo-inverse estimators of Swaminathan, Krishnamurthy,
Agarwal, Dudik, Langford, Jose & Zitouni (2017, "Off-policy evaluation for slate recommendation", section 3).
"independent" is that of Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay & Wen (2018, "Offline evaluation of ranking
policies with click models", the item-position model).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, final, get_args

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, many, number, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from .._utils.tables import Table, given_table
from ..errors import InvalidInput, warn
from ..policy.policy import Policy
from ..study.study import Study
from ..study.visits import error_of_mean, units_of
from .estimators import effective_sample_size
from .log import UNIT, coded, codes_of, column, contexts_of
from .slate_laws import Next, Slate, slates_of_study
from .studies import arms_of, means
from .target import SUM

SlateEstimator = Literal["slate", "cascade", "independent", "pi", "wpi"]
SLATE_ESTIMATORS: tuple[SlateEstimator, ...] = get_args(SlateEstimator)
OF_LOG = ("slate", "cascade")  # They need the recorded propensities alone.
MOST_SLATES = 20_000  # of one law, which are listed
ROUNDING = 1e-10  # share of the largest eigenvalue below which one is 0
NAMES = {"slate": ("slate", "slate_id"), "place": ("place", "position")}
UNKNOWN = (
    "The log's policy is not known, and {!r} needs the probability of each arm in each place. A study that draws by "
    "a known law has it, if pending trials change no decision."
)
SAY = 'Say it by `logging=\'uniform\'`, or a function of the context; or take "slate" or "cascade".'


class Law(NamedTuple):
    """The law of slates under a policy.

    Attributes:
        marginals: q, `(L N,)`.
        gamma: `(L N, L N)`.
    """

    marginals: Array
    gamma: Array


def law_of(next_: Next, places: int, count: int) -> Law:
    """Returns the law of slates, from the law of each place given those before.

    Args:
        next_: the law of the next place.
        places: L.
        count: number of arms, N.

    Raises:
        InvalidInput: there are too many slates to list.
    """
    found: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for _ in range(places):
        found = [
            ((*before, arm), chance * float(p[arm]))
            for before, chance in found
            for p in (next_(before),)
            for arm in np.flatnonzero(p > 0.0).tolist()
        ]
        if len(found) > MOST_SLATES:
            raise InvalidInput(
                f"A policy can make more than {MOST_SLATES:,} slates here, too many to list.",
                advice='Take the estimator "cascade" or "slate", which need the propensities of the log alone.',
            )
    at = np.array([slate for slate, _ in found], dtype=np.intp) + count * np.arange(places)
    chances = np.array([chance for _, chance in found])
    marginals, gamma = np.zeros(places * count), np.zeros((places * count, places * count))
    np.add.at(marginals, at, chances[:, None])
    np.add.at(gamma, (at[:, :, None], at[:, None, :]), chances[:, None, None])
    return Law(marginals, gamma)


def pseudo_inverse(gamma: Array) -> Array:
    """Returns Gamma^+, `(m, m)`. Arms that no slate has in a place take no part."""
    return np.asarray(np.linalg.pinv(gamma, rcond=ROUNDING, hermitian=True))


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class SlateEvaluation:
    """The value of a policy of slates, its mean sum of rewards for each slate.

    Attributes:
        estimator: name of the estimate that is `value`.
        value: the estimate, in the units of the rewards.
        lower: lower end of the interval of `value`, by the normal law. It holds for many slates, or units.
        upper: upper end.
        delta: probability of an error.
        estimates: value by estimator. NaN where the log's policy is not known.
        effective_sample_size: number of the policy's own slates that would say as much, by the weights of `estimator`.
        overlap: share of the policy's probability, over places, of arms that the log could have there. NaN if the log's
            policy is not known.
        slates: number of slates that the estimates use.
        left_out: number of others, by reason.
        logged: mean sum of rewards of these slates, the value of the log's own policy.
        cautions: sentences about what weakens or breaks the result.
    """

    estimator: SlateEstimator
    value: float
    lower: float
    upper: float
    delta: float
    estimates: Mapping[str, float]
    effective_sample_size: float
    overlap: float
    slates: int
    left_out: Mapping[str, int]
    logged: float
    cautions: tuple[str, ...]

    def __str__(self) -> str:
        sure = f"{numeral(100 * (1.0 - self.delta))}%"
        said = [
            f"The policy's value is {numeral(self.value)} a slate ({sure} interval {numeral(self.lower)} to "
            f"{numeral(self.upper)}, by {self.estimator!r}); that of the log is {numeral(self.logged)}.",
            f"{many(self.slates, 'slate')} of the log say{'s' * (self.slates == 1)} as much as "
            f"{self.effective_sample_size:.0f} of the policy's own.",
        ]
        if self.left_out:
            said.append(f"Left out: {', '.join(f'{count} {reason}' for reason, count in self.left_out.items())}.")
        return "\n".join([*said, *(f"Caution: {each}" for each in self.cautions)])

    def __repr__(self) -> str:
        return (
            f"SlateEvaluation(value={numeral(self.value)}, lower={numeral(self.lower)}, upper={numeral(self.upper)}, "
            f"estimator={self.estimator!r}, slates={self.slates})"
        )


def evaluate_slates(
    log: Any, policy: Any, *, estimator: SlateEstimator, logging: Any = None, delta: float = 0.05,
    actions: Sequence[Any] | None = None, default_reward: float | None = None,
) -> SlateEvaluation:  # fmt: skip
    """Returns what a policy of slates would have earned on a log of slates (see `nilregret.evaluate`)."""
    fill = None
    if default_reward is not None:
        fill = number("default_reward", default_reward, low=-LARGEST_REWARD, high=LARGEST_REWARD)
    needs = logging is None and estimator not in OF_LOG
    read = _of_study(log, needs, fill) if isinstance(log, Study) else _of_table(log, actions, fill)
    target = _Laws(policy, read, "policy")
    logged = None if logging is None else _Laws(logging, read, "logging")
    sums = _Sums()
    for slate in read.slates:
        sums.add(slate, target, logged, len(read.actions), estimator)
    if not sums.rewards:
        out = "".join(f" {many(count, 'slate')} {reason}." for reason, count in read.left_out.items())
        raise InvalidInput(f"No slate of the log can be used, so nothing can be evaluated.{out}")
    result = sums.evaluation(estimator, delta, {reason: n for reason, n in read.left_out.items() if n}, target)
    for sentence in result.cautions:
        warn(sentence)
    return result


class _Sums:
    """The terms of the estimates, a number for each slate."""

    def __init__(self) -> None:
        self.rewards: list[float] = []
        self.terms: dict[str, list[float]] = {name: [] for name in SLATE_ESTIMATORS}
        self.weights: dict[str, list[float]] = {name: [] for name in SLATE_ESTIMATORS}
        self.covered: list[float] = []
        self.units: list[Any] = []

    def add(self, slate: Slate, target: _Laws, logged: _Laws | None, count: int, estimator: str) -> None:
        places, next_ = len(slate.taken), target.next_of(slate)
        chances = [float(next_(slate.taken[:place])[arm]) for place, arm in enumerate(slate.taken)]
        ratios = np.cumprod(np.array(chances) / slate.propensities)
        total = float(slate.rewards.sum())
        self.rewards.append(total)
        self.units.append(slate.unit)
        self._keep("slate", float(ratios[-1]), float(ratios[-1]) * total)
        self._keep("cascade", float(ratios.mean()), float(ratios @ slate.rewards))
        law = None if logged is None else logged.law_of(slate, places, count)
        if law is None and slate.next is not None:
            law = law_of(slate.next, places, count)
        if law is None:
            if estimator not in OF_LOG:
                raise InvalidInput(UNKNOWN.format(estimator), advice=SAY, topic="logging")
            return
        q, at = target.law_of(slate, places, count).marginals, np.array(slate.taken) + count * np.arange(places)
        each = q[at] / law.marginals[at]
        self._keep("independent", float(each.mean()), float(each @ slate.rewards))
        inverse = pseudo_inverse(law.gamma) if logged is None else logged.inverse_of(slate, places, count)
        weight = float((q @ inverse)[at].sum())
        self._keep("pi", weight, weight * total)
        self._keep("wpi", weight, weight * total)
        self.covered.append(float(q[law.marginals > 0.0].sum()) / places)

    def _keep(self, name: str, weight: float, term: float) -> None:
        self.weights[name].append(weight)
        self.terms[name].append(term)

    def evaluation(
        self, estimator: SlateEstimator, delta: float, left_out: Mapping[str, int], target: _Laws
    ) -> SlateEvaluation:
        from scipy.special import ndtri

        n = len(self.rewards)
        found = {name: float(np.mean(terms)) if terms else math.nan for name, terms in self.terms.items()}
        weights = np.array(self.weights[estimator])
        terms = np.array(self.terms[estimator])
        if self.terms["wpi"]:
            mean = float(np.mean(self.weights["wpi"]))
            found["wpi"] = found["wpi"] / mean if mean != 0.0 else math.nan
            if estimator == "wpi":  # The linear part of the ratio.
                terms = found["wpi"] + (terms - weights * found["wpi"]) / mean
        units = units_of(self.units)
        several = n if units is None else len(np.unique(units))
        half = math.inf
        if several > 1:
            error = float(terms.std(ddof=1)) / math.sqrt(n)
            if units is not None:
                error = error_of_mean(terms, units) * math.sqrt(several / (several - 1.0))
            half = float(-ndtri(0.5 * delta)) * error
        overlap = float(np.mean(self.covered)) if self.covered else math.nan
        effective = effective_sample_size(np.abs(weights), units)
        return SlateEvaluation(
            estimator=estimator, value=found[estimator], lower=found[estimator] - half, upper=found[estimator] + half,
            delta=delta, estimates=found, effective_sample_size=effective, overlap=overlap, slates=n,
            left_out=left_out, logged=float(np.mean(self.rewards)),
            cautions=tuple(_cautions(effective, overlap, target)),
        )  # fmt: skip


FEW = 100.0  # the policy's own slates below which the normal law is no guide
FEW_SAID = (
    "The slates of the log say as much as {:.0f} of the policy's own: too few for the interval. Estimators that assume "
    'more ("independent", "pi") use more of them.'
)
UNCOVERED = (
    "The log never has some of the policy's arms in their places: {:.1f}% of its choices. Of these nothing is known, "
    "and estimates take their rewards for 0."
)
FLATTERED = (
    "The policy was chosen by means of the very log that it is evaluated on, which flatters it. Evaluate it on slates "
    "that come after it was chosen."
)


def _cautions(effective: float, overlap: float, target: _Laws) -> Iterator[str]:
    if effective < FEW:
        yield FEW_SAID.format(effective)
    if overlap < 1.0 - SUM:
        yield UNCOVERED.format(100.0 * (1.0 - overlap))
    if target.from_log:
        yield FLATTERED


# -- policies --------------------------------------------------------------------------------------------------------

FORMS = (
    'A policy of slates is "uniform", "best" (of a study), a sequence of actions, one for each place, a dictionary of '
    "probabilities by action, or a function of the context that returns actions, or probabilities (N,). By "
    "probabilities, each place draws among the actions that are left."
)


class _Laws:
    """The laws of a policy of slates under contexts.

    Args:
        policy: in one of the forms above.
        read: the log.
        name: of the argument.
    """

    def __init__(self, policy: Any, read: _Read, name: str) -> None:
        self._policy, self._read, self._name = policy, read, name
        self.from_log = isinstance(policy, str) and policy == "best"
        self._code = codes_of(read.actions, read.study)
        self._laws: dict[Any, Law] = {}
        self._inverses: dict[Any, Array] = {}
        self._nexts: dict[str, Next] = {}
        if isinstance(policy, Policy | Study) or policy is None:
            raise InvalidInput(f"`{name}` is {shown(policy)}, which is no policy of slates.", advice=FORMS)

    def next_of(self, slate: Slate) -> Next:
        """Returns the law of each place under the context of a slate."""
        key = self._key(slate)
        if key not in self._nexts:
            self._nexts[key] = self._next(slate.context)
        return self._nexts[key]

    def law_of(self, slate: Slate, places: int, count: int) -> Law:
        """Returns the law of slates under the context of a slate."""
        key = self._key(slate), places
        if key not in self._laws:
            self._laws[key] = law_of(self.next_of(slate), places, count)
        return self._laws[key]

    def inverse_of(self, slate: Slate, places: int, count: int) -> Array:
        """Returns Gamma^+ under the context of a slate."""
        key = self._key(slate), places
        if key not in self._inverses:
            self._inverses[key] = pseudo_inverse(self.law_of(slate, places, count).gamma)
        return self._inverses[key]

    def _key(self, slate: Slate) -> str:
        given, context = callable(self._policy) or self.from_log, slate.context
        if not given or context is None:
            return ""
        return repr(context.tolist() if isinstance(context, np.ndarray) else context)

    def _next(self, context: Any) -> Next:
        policy, count = self._policy, len(self._read.actions)
        if isinstance(policy, str):
            if policy == "uniform":
                return _drawing(np.full(count, 1.0 / count))
            if policy == "best" and self._read.study is not None:
                ranks = means(self._read.study, context)
                return _fixed(np.argsort(-ranks, kind="stable").tolist(), count)
        if callable(policy):
            policy = policy(context)
        if isinstance(policy, Mapping):
            listed = np.zeros(count)
            for action, chance in policy.items():
                listed[self._index(action)] = number(self._name, chance, low=0.0)
            policy = listed
        values = np.asarray(policy)
        if values.shape == (count,) and values.dtype.kind == "f":
            if not (values >= 0.0).all() or abs(float(values.sum()) - 1.0) > SUM:
                raise InvalidInput(f"`{self._name}` gives {shown(policy)}: probabilities are at least 0 and sum to 1.")
            return _drawing(values)
        if isinstance(policy, str | bytes) or values.ndim != 1:
            raise InvalidInput(f"`{self._name}` gives {shown(policy)}, which is no policy of slates.", advice=FORMS)
        return _fixed([self._index(action) for action in values.tolist()], count)

    def _index(self, action: Any) -> int:
        try:
            return self._code[action]
        except (KeyError, TypeError):
            raise InvalidInput(
                f"`{self._name}` has the action {shown(action)}, which is none of {shown(list(self._read.actions))}.",
                advice="Actions that the log never took are named by `actions=`.",
            ) from None


def _drawing(chances: Array) -> Next:
    """Returns the law of draws without replacement."""

    def next_(before: tuple[int, ...]) -> Array:
        left = chances.copy()
        left[list(before)] = 0.0
        total = float(left.sum())
        return left / total if total > 0.0 else left

    return next_


def _fixed(slate: Sequence[int], count: int) -> Next:
    """Returns the law of one slate, which may be longer than those of the log."""
    if len(set(slate)) < len(slate):
        raise InvalidInput(f"A slate has {shown(list(slate))}: each place has another arm.")

    def next_(before: tuple[int, ...]) -> Array:
        found = np.zeros(count)
        if len(before) >= len(slate):
            raise InvalidInput(
                f"The policy has {many(len(slate), 'place')}, and a slate of the log has more: give an action for each."
            )
        found[slate[len(before)]] = 1.0
        return found

    return next_


# -- logs ------------------------------------------------------------------------------------------------------------


@dataclass()
class _Read:
    """A log of slates.

    Attributes:
        actions: names of the N arms.
        slates: those of use, read once.
        left_out: number of others by reason, filled as `slates` is read.
        study: where the log comes from, or None.
    """

    actions: tuple[Any, ...]
    slates: Iterator[Slate]
    left_out: dict[str, int]
    study: Study | None = None

    def leave(self, reason: str) -> None:
        """Counts a slate that is left out."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def _of_study(study: Study, needs: bool, fill: float | None) -> _Read:
    """Returns the slates of a study. If the estimator `needs` the law of the log's policy, a replay finds it."""
    read = _Read(tuple(range(len(arms_of(study)))), iter(()), {}, study)
    read.slates = slates_of_study(study, needs, fill, read.leave)
    return read


def _of_table(log: Any, actions: Sequence[Any] | None, fill: float | None) -> _Read:
    """Returns the slates of a table with a row for each place."""
    table = given_table("log", log, also="a study with slates, ")
    codes, names = coded(table.values(column(table, ("action", "arm"))), actions)
    read = _Read(names, iter(()), {})
    read.slates = _rows(table, codes, fill, read)
    return read


def _rows(table: Table, taken: IndexArray, fill: float | None, read: _Read) -> Iterator[Slate]:
    slates, places = (table.values(column(table, NAMES[name])) for name in ("slate", "place"))
    propensities, (reward, _) = table.numbers(column(table, ("propensity", "pscore"))), table.reward()
    rewards, contexts, unit = table.numbers(reward), contexts_of(table), table.find(UNIT)
    units = None if unit is None else table.values(unit)
    if fill is not None:
        rewards = np.where(np.isnan(rewards), fill, rewards)
    rows: dict[Any, list[int]] = {}
    for row, slate in enumerate(np.asarray(slates).tolist()):
        if slate is not None and slate == slate:
            rows.setdefault(slate, []).append(row)
    for slate, at in rows.items():
        at.sort(key=lambda row: float(places[row]))
        p = propensities[at]
        if len(set(taken[at].tolist())) < len(at):
            raise InvalidInput(f"Slate {shown(slate)} has an action twice: each place has another one.")
        if np.isnan(p).any() or np.isnan(rewards[at]).any():
            read.leave("without a propensity" if np.isnan(p).any() else "without all rewards")
        elif ((p <= 0.0) | (p > 1.0 + SUM)).any():
            raise InvalidInput(f"Slate {shown(slate)} has the propensities {p.tolist()}: they must lie in (0, 1].")
        else:
            context = None if contexts is None else contexts[at[0]]
            yield Slate(
                tuple(taken[at].tolist()), p, rewards[at], context, unit=None if units is None else units[at[0]]
            )
