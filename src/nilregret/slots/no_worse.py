"""A control that is kept: decisions earn, at any time, nearly what the control alone would have earned.

| symbol | name | meaning | shape |
|---|---|---|---|
| alpha | `by` | the share of the control's sum that may be lost | |
| y | `benefit` | a value of a decision, from 0 (the worst of `span`) to 1 (the best) | |
| N, C | `others`, `control` | the decisions of other arms, and those of the control | |
| m(x) | | expected y of the control in the context x | |
| phi(x) | `features` | features of a context, of which the first is 1 | (d,) |
| h | | prediction of y when the decision was made: the mean of the answers until then | |
| v | `squares` | sum of (y - h)^2 | |
| u(v) | `boundary` | what a sum of answers differs from the sum of expectations | |
| e | | the worst value over the length of `span` | |
| s | `sign` | 1 if more of the value is better, -1 if less is | |

The budget is what the decisions so far and one more earn, less (1 - alpha) times what the control would have earned.
This is the budget of Conservative UCB (Wu, Shariff, Lattimore & Szepesvari 2016), with an unknown reward of the
control. In units of `span`, with t decisions and the next, it is

    alpha e (t + 1) + sum_N y - (1 - s alpha) sum_{N, next} m + s alpha sum_C m.

While this is at least 0, any arm may be played, for the control itself adds to the budget. If a bound of it is below 0,
the control is played. The next decision counts as y = 0, so the rule is the same for all arms. It is a function of the
record, and propensities stay known.

Each bound holds at all times together, whatever the policy believes:

- sum_N y: exp(l D - psi(l) v) is a supermartingale for every l in [0, 1), with psi(l) = -ln(1 - l) - l. D is the sum
  of answers less that of their expectations, which may differ. So all other arms and contexts are one sum (Howard,
  Ramdas, McAuliffe & Sekhon 2021, Theorem 4, by the inequality of Fan, Grama & Liu 2015).
- m without contexts: the same for its answers, if m is the same in all decisions.
- sums of m(x): m(x) - 1/2 = phi(x) theta (the assumption), with a norm of theta of at most S. A ridge regression and
  its ellipsoid bound all sums at once (Abbasi-Yadkori, Pal & Szepesvari 2011, Theorem 2, as in Kazerouni, Ghavamzadeh,
  Abbasi-Yadkori & Van Roy 2017). y lies in [0, 1], so R = 1/2.

An open decision counts as the worst for the bound: 0 for other arms, 1 for the control. The bound is then not above
that of the answer to come, since psi(l) / l < 1 for l <= 3/4.

All sums are of whole numbers, so that the order of answers leaves no trace.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import (
    LARGEST_REWARD,
    LONGEST_NAME,
    Array,
    flag,
    integer,
    many,
    number,
    one_of,
    settle,
    shown,
    span_of,
)
from .._utils.copying import Copyable
from .._utils.dataclass import field, replace
from .._utils.numerals import numeral
from .._utils.process_setting import with_one_thread
from ..domains.domain import Arms, Domain, Space, arm_of
from ..domains.parameters import Choice
from ..errors import InvalidInput
from ..serialize import description
from ..storage.trial import Trial
from .base import Part, Policy

GRID = 2**20  # y is rounded to a millionth,
FINE = 2**16  # and features, and the y of a regression, so that sums of products of some 1e9 decisions are exact
RATES = 0.75 * 2.0 ** (-0.5 * np.arange(24))  # the l of the mixture, for v up to some 1e8
PSI = -np.log1p(-RATES) - RATES
STEPS = 2  # of Newton's method, which comes from above: each step is a bound
TABLE = 64  # contexts up to which each has a feature of its own, so that nothing is assumed of them
ALIKE = 1e-9  # share of the largest eigenvalue of features, below which they are alike (about the square of 1 / `FINE`)


@final
@description(frozen=True)
class NoWorse(Part):
    """A guard: with probability 1 - delta, no sum of rewards falls below 1 - by times that of the control.

    At any time, the expected rewards of all decisions so far sum up to (1 - by) times those of the control at least.
    The policy decides as long as its budget can bear the worst decision. In
    other rounds the control is played. So a policy begins with the control, and plays about `by` of its rounds freely
    until it knows more. It goes with any policy on arms: `constraints=nr.NoWorse(...)`.

    What is assumed: rewards lie in `span`. Without contexts, the expected reward of the control stays the same. Under
    contexts it is linear in their numbers and options. Of up to 64 contexts that are listed (`nr.Arms`), nothing is
    assumed. Of other arms nothing is assumed at all.

    - An unanswered decision counts as the worst: nothing for other arms, the best for the control. A failed one earns
      the worst of `span`.
    - Decisions that the rule does not make count too. These are arms named by `enqueue`, and visitors that keep their
      arm. In rounds in which the control may not be played, any arm is played. The promise holds if these earn enough.
    - Trials of `Study.add` are no decisions. Those of the control say what it earns.

    Attributes:
        than: the control: its number, the option of a space of one choice, or a dict of parameters.
        by: the share that may be lost.
        delta: probability that the sum is ever below.
        metric: a metric told with each reward (`tell(..., metrics=...)`), which is guarded in its place. None for the
            reward.
        higher: "better", or "worse" for a metric such as a latency, whose sum then stays below 1 + by times that of the
            control. Of the reward the goal of the study says so.
        span: least and largest value, from 0 on, in the units told. Values beyond count as the nearest. None, the
            default, for that of `reward="bernoulli"` or "bounded".
        norm_bound: S under contexts, or None for what follows from `span` (see `nilregret.slots.no_worse`).
        losses: True if rewards are minus the values told. A study that minimises sets it.

    >>> import nilregret as nr
    >>> banners = nr.Space(banner=nr.Choice("control", "sale", "new")).grid()
    >>> policy = nr.auto(banners, reward="bernoulli", constraints=nr.NoWorse("control", by=0.1))
    >>> nr.Study(policy, propensities=True).probabilities()  # nothing is known yet
    array([1., 0., 0.])
    """

    than: int | str | dict[str, Any]
    by: float = 0.05
    delta: float = field(default=0.05, kw_only=True)
    metric: str | None = field(default=None, kw_only=True)
    higher: Literal["better", "worse"] = field(default="better", kw_only=True)
    span: tuple[float, float] | None = field(default=None, kw_only=True)
    norm_bound: float | None = field(default=None, kw_only=True)
    losses: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.than, str | dict):
            settle(self, than=integer("than", self.than, low=0, why="It is the number of an arm."))
        settle(
            self,
            by=number("by", self.by, low=0.0, high=1.0, open_low=True, open_high=True, why=SHARE),
            delta=number("delta", self.delta, low=0.0, high=1.0, open_low=True, open_high=True),
            higher=one_of("higher", self.higher, ["better", "worse"]),
            losses=flag("losses", self.losses),
        )
        if self.metric is not None and not (isinstance(self.metric, str) and 0 < len(self.metric) <= LONGEST_NAME):
            raise InvalidInput(f"`metric` is {shown(self.metric)}: it must be the name of a metric, or None.")
        if self.metric is None and self.higher == "worse":
            raise InvalidInput(
                "`higher` is 'worse' for the reward itself, of which the goal of the study says so: leave it out, or "
                "name a `metric`."
            )
        if self.span is not None:
            settle(self, span=span_of("span", self.span, low=0.0, why=SIGNS))
        if self.norm_bound is not None:
            why = "It bounds the coefficients of the control's reward, as a share of `span`."
            settle(self, norm_bound=number("norm_bound", self.norm_bound, low=0.0, high=LARGEST_REWARD, why=why))

    def within(self, policy: Policy) -> NoWorse:
        """Returns the guard of a policy: the control by number, and the span of its rewards.

        Raises:
            InvalidInput: the control is no arm of the policy, or nothing says the span.
        """
        than, span = arm_of("than", policy.domain, self.than), self.span
        of_reward, counts = getattr(policy.objective, "span", None), getattr(policy.objective, "counts", False)
        if span is None and self.metric is None and of_reward is not None and not counts:
            span = span_of("span", (of_reward[0], of_reward[0] + of_reward[1]), low=0.0, why=SIGNS)
        if span is None:
            raise InvalidInput(
                f"`NoWorse` needs the least and the largest {'reward' if self.metric is None else shown(self.metric)}: "
                "its bounds hold for numbers between them, whatever the policy believes.",
                advice="Such as `span=(0, 100)`. Larger values then count as 100.",
            )
        return self if (than, span) == (self.than, self.span) else replace(self, than=than, span=span)

    def turned(self) -> NoWorse:
        """Returns the guard in a study that minimises, whose state sees minus the losses."""
        return self if self.metric is not None else replace(self, losses=not self.losses)

    @property
    def arm(self) -> int:
        """The number of the control, of a guard that a policy has."""
        return cast(int, self.than)

    @property
    def sign(self) -> float:
        """1 if more of the value is better, and -1 if less is."""
        return -1.0 if self.losses or self.higher == "worse" else 1.0

    @property
    def ends(self) -> tuple[float, float]:
        """The worst and the best value."""
        low, high = (0.0, 1.0) if self.span is None else self.span
        return (low, high) if self.sign > 0.0 else (high, low)

    def benefit(self, trial: Trial) -> int | None:
        """Returns y of an answered trial, in units of 1 / `GRID`, or None while the value is not known."""
        if trial.state == "failed":
            return 0
        value = trial.reward if self.metric is None else trial.metrics.get(self.metric)
        if value is None:
            return None
        worst, best = self.ends
        share = ((-value if self.losses else value) - worst) / (best - worst)
        return round(min(max(share, 0.0), 1.0) * GRID)

    def __hash__(self) -> int:
        return hash((str(self.than), self.by, self.delta, self.metric, self.span))


SIGNS = "A share of a sum that may be negative says nothing: guard numbers from 0 on."
SHARE = "It is the share of what the control earns that may be lost, such as 0.05."


def checked_guards(policy: Policy) -> tuple[NoWorse, ...] | None:
    """Returns the guards of a policy with the control by number, or None without any.

    Raises:
        InvalidInput: the policy cannot keep them.
    """
    given = policy.guards
    if given is None:
        return None
    if not isinstance(given, tuple | list) or not all(isinstance(each, NoWorse) for each in given):
        raise InvalidInput(
            f"`guards` is {shown(given)}: it must be a list of rules that keep a control.",
            advice="Such as `constraints=nr.NoWorse(0, by=0.05)`, which fills this slot.",
        )
    if not given:
        return None
    guards = tuple(each.within(policy) for each in given)
    if len({each.than for each in guards}) > 1:
        raise InvalidInput(f"Several `NoWorse` have the controls {[each.than for each in guards]}: name one arm.")
    if len({each.metric for each in guards}) < len(guards):
        raise InvalidInput("Several `NoWorse` guard the same number: leave the weaker one out.")
    slot = next((slot for slot in ("switching", "fidelity") if getattr(policy, slot) is not None), None)
    if slot is not None or policy.objective_count > 1:
        raise InvalidInput(
            f"`NoWorse` decides in each round anew about one reward, and the policy has "
            f"{'several objectives' if slot is None else f'the slot `{slot}`'}: leave one of the two out."
        )
    return guards


def parted(parts: dict[str, Any]) -> dict[str, Any]:
    """Returns the parts by slot, with each `NoWorse` of `constraints` in the slot `guards`."""
    given = parts.get("constraints")
    listed = list(given) if isinstance(given, tuple | list) else [given]
    guards = tuple(each for each in listed if isinstance(each, NoWorse))
    if not guards and len(listed) == 1:
        alone = {"constraints": listed[0]} if "constraints" in parts else {}
        return parts | alone | ({"guards": None} if alone and given is None else {})
    if not guards:
        return parts  # Whoever reads `constraints` says what is wrong with it.
    others = [each for each in listed if not isinstance(each, NoWorse)]
    if len(others) > 1:
        raise InvalidInput(f"`constraints` has {len(others)} rules beside `NoWorse`: give one at most.")
    rest = {slot: part for slot, part in parts.items() if slot != "constraints"}
    return rest | {"guards": guards} | ({"constraints": others[0]} if others else {})


# -- bounds ----------------------------------------------------------------------------------------------------------


def boundary(squares: Array | float, delta: float) -> Any:
    """Returns u(v), by which sums of answers exceed those of their expectations with probability delta at any time.

    The mixture over `RATES` is solved from above, so that each step of Newton's method is a bound (the mixture is
    convex).

    Args:
        squares: v, of any shape.
        delta: a probability.
    """
    v = np.asarray(squares, dtype=np.float64)[..., None]
    excess = ((math.log(len(RATES) / delta) + PSI * v) / RATES).min(axis=-1)
    for _ in range(STEPS):
        terms = np.exp(RATES * excess[..., None] - PSI * v)
        total = terms.mean(axis=-1)
        excess = excess - total * np.log(total * delta) / (RATES * terms).mean(axis=-1)
    return excess


@final
class Answers(Copyable):
    """Sums of the answers of some decisions, of which open ones count as the worst for a bound.

    Args:
        worst: y of an open decision, in units of 1 / `GRID`.

    Attributes:
        count: decisions, open ones included.
    """

    OWNED = ("_open",)
    SUMS = ("count", "_told", "_sum", "_squares", "_open_squares", "_open")

    def __init__(self, worst: int) -> None:
        self._worst = worst
        self.count = self._told = self._sum = self._squares = self._open_squares = 0
        self._open: dict[int, int] = {}  # h of each open decision, in units of 1 / `GRID`

    @property
    def open(self) -> int:
        """Decisions without an answer."""
        return len(self._open)

    def ask(self, trial: int) -> None:
        """Takes in a decision."""
        self.count += 1
        h = self._open[trial] = (self._sum + GRID // 2) // (self._told + 1)
        self._open_squares += (self._worst - h) ** 2

    def tell(self, trial: int, y: int) -> None:
        """Takes in its answer."""
        if (h := self._open.pop(trial, None)) is not None:
            self._open_squares -= (self._worst - h) ** 2
            self._told += 1
            self._sum += y
            self._squares += (y - h) ** 2

    def bound(self, delta: float) -> float:
        """Returns the bound of the sum of expectations: a lower one if `worst` is 0, else an upper one."""
        total = (self._sum + self._worst * len(self._open)) / GRID
        spread = float(boundary((self._squares + self._open_squares) / GRID**2, delta))
        return max(total - spread, 0.0) if self._worst == 0 else min(total + spread, float(self.count))


@final
class Regression(Copyable):
    """A model of what the control earns, linear in the context.

    Args:
        context: domain of the contexts.
        norm_bound: S, or None for the one that follows from y in [0, 1].

    Attributes:
        others: sum of the features of the decisions of other arms, in units of 1 / `FINE`, `(d,)`.
        control: the same for the control.
    """

    OWNED = ("_open",)
    SUMS = ("_gram", "_target", "others", "control", "_open")

    def __init__(self, context: Domain, norm_bound: float | None) -> None:
        self._context = context
        self._listed = isinstance(context, Arms) and len(context) <= TABLE
        size = len(context) if self._listed and isinstance(context, Arms) else context.dimension + 1
        self.norm_bound = _largest_norm(context, listed=self._listed) if norm_bound is None else norm_bound
        self._gram = np.zeros((size, size), dtype=np.int64)
        self._target = np.zeros(size, dtype=np.int64)
        self.others, self.control = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        self._open: dict[int, npt.NDArray[np.int64]] = {}
        self._solved: tuple[Array, float] | None = None

    def features(self, context: Array) -> npt.NDArray[np.int64]:
        """Returns phi(x) in units of 1 / `FINE`, `(d,)`: 1 and the columns of the context.

        Numbers go from -1 to 1, and options are 0 or 1. Of listed contexts each has a column of its own.
        """
        domain = self._context
        if self._listed:
            return np.where(np.arange(len(self._target)) == self._context.index(context[None])[0], FINE, 0)  # type: ignore[union-attr]  # Arms
        found: npt.NDArray[np.int64] = np.rint(FINE * _columns(domain, context[None])[0]).astype(np.int64)
        return found

    def ask(self, trial: int, phi: npt.NDArray[np.int64]) -> None:
        """Takes in a decision of the control."""
        self._open[trial] = phi
        self._gram = self._gram + np.outer(phi, phi)
        self._solved = None

    def tell(self, trial: int, y: int) -> None:
        """Takes in its answer."""
        if (phi := self._open.pop(trial, None)) is not None:
            self._target = self._target + phi * (y * FINE // GRID - FINE // 2)

    @with_one_thread
    def bound(self, z: npt.NDArray[np.float64], delta: float) -> float:
        """Returns the upper bound of the sum of m - 1/2 over contexts whose features have the sum z."""
        if self._solved is None:
            V: Array = self._gram / FINE**2 + np.eye(len(self._gram))
            self._solved = np.asarray(np.linalg.inv(V)), float(np.linalg.slogdet(V)[1])
        inverse, log_determinant = self._solved
        across = inverse @ (z / FINE)
        waiting = np.abs(np.array(list(self._open.values())).reshape(-1, len(z)) @ across).sum() / (2.0 * FINE)
        # Theorem 2, with R = 1/2 and lambda = 1.
        width = 0.5 * math.sqrt(2.0 * math.log(1.0 / delta) + log_determinant) + self.norm_bound
        return float(across @ self._target) / FINE**2 + float(waiting) + width * math.sqrt(float(across @ z) / FINE)


def _options(domain: Domain) -> npt.NDArray[np.bool_]:
    """Returns which columns of contexts are options of a choice, `(c,)`."""
    space = domain.space if isinstance(domain, Arms) else domain
    found = np.zeros(domain.dimension, dtype=bool)
    for parameter, columns in space.columns() if isinstance(space, Space) else ():
        found[columns] = isinstance(parameter, Choice)
    return found


def _columns(domain: Domain, contexts: Array) -> Array:
    """Returns phi(x) of contexts that have no columns of their own, `(n, d)`."""
    points = domain.points if isinstance(domain, Arms) else np.stack([domain.lower, domain.upper])
    low, high = points.min(axis=0), points.max(axis=0)
    columns = (contexts - low) / np.where(high > low, high - low, 1.0)
    return np.column_stack([np.ones(len(contexts)), np.where(_options(domain), columns, 2.0 * columns - 1.0)])


@with_one_thread
def _largest_norm(domain: Domain, *, listed: bool) -> float:
    """Returns a bound of the norm of theta that follows from 0 <= m <= 1 in all contexts.

    |b| and half the range that each parameter spans have a sum of at most 1/2. An option differs from the middle of its
    choice by half of the range at most. So the norm is at most sqrt(k) / 2 if no choice has more than k options.

    Of N contexts in a list, which may lie near a line, it is at most sqrt(N) / 2 over the least singular value of their
    features. Directions in which features hardly differ count as none.
    """
    if listed:
        return 0.5 * math.sqrt(len(domain))  # type: ignore[arg-type]  # Each of N contexts has a number within 1/2.
    if isinstance(domain, Arms):
        features = _columns(domain, domain.points)
        squares = np.linalg.eigvalsh(features.T @ features)
        return 0.5 * math.sqrt(len(features) / float(squares[squares > ALIKE * squares[-1]][0]))
    widths = [columns.stop - columns.start for _, columns in domain.columns()] if isinstance(domain, Space) else [1]
    return 0.5 * math.sqrt(max(widths))


# -- the rule --------------------------------------------------------------------------------------------------------


class Standing(NamedTuple):
    """A budget before a decision, in units of the guarded value.

    Attributes:
        metric: the guarded metric, or None for the reward.
        than: number of the control.
        by: share that may be lost.
        delta: probability of a violation.
        others: decisions of other arms so far.
        control: decisions of the control so far.
        bound: what the decisions of other arms and one more come to at the worst: at least, or (`less`) at most.
        limit: what they must come to at least, or (`less`) at most.
        less: True if less of the value is better.
        open: decisions so far without an answer, which count as the worst.
    """

    metric: str | None
    than: int
    by: float
    delta: float
    others: int
    control: int
    bound: float
    limit: float
    less: bool
    open: int = 0

    @property
    def bears(self) -> bool:
        """True if the budget can bear any decision."""
        return self.bound <= self.limit if self.less else self.bound >= self.limit

    def __str__(self) -> str:
        name, side = ("reward" if self.metric is None else self.metric), "at most" if self.less else "at least"
        return (
            f"{name}: {many(self.others, 'decision')} of other arms and one more come to {side} "
            f"{numeral(self.bound, 4)}, and must come to {side} {numeral(self.limit, 4)}, so that no more than "
            f"{numeral(100.0 * self.by, 3)}% of the control's is lost with probability {numeral(1.0 - self.delta, 4)}"
        )


@final
class Budget(Copyable):
    """The budget of a guard in a run (`NoWorse`).

    Args:
        guard: with the control by number.
        context: domain of the contexts, or None.
    """

    OWNED = ("_others", "_control", "_model")

    def __init__(self, guard: NoWorse, context: Domain | None) -> None:
        self._guard = guard
        self._others, self._control = Answers(0), Answers(GRID)
        self._model = None if context is None else Regression(context, guard.norm_bound)
        self._held = 0  # decisions of the control, without those that were added
        self._known: tuple[bytes | None, Standing] | None = None

    def ask(self, trial: Trial) -> None:
        """Takes in a decision."""
        self._known = None
        ours = trial.arm == self._guard.arm
        self._held += ours
        (self._control if ours else self._others).ask(trial.number)
        if self._model is not None and trial.context is not None:
            phi = self._model.features(trial.context)
            if ours:
                self._model.ask(trial.number, phi)
                self._model.control = self._model.control + phi
            else:
                self._model.others = self._model.others + phi

    def tell(self, trial: Trial, *, added: bool) -> None:
        """Takes in an outcome. A trial that was added with its outcome is no decision."""
        y, ours = self._guard.benefit(trial), trial.arm == self._guard.arm
        if y is None or (added and not ours):
            return
        self._known = None
        if added:
            self._control.ask(trial.number)
            if self._model is not None and trial.context is not None:
                self._model.ask(trial.number, self._model.features(trial.context))
        (self._control if ours else self._others).tell(trial.number, y)
        if self._model is not None and ours:
            self._model.tell(trial.number, y)

    def learned(self) -> dict[str, Any]:
        """Returns the sums so far, as plain values and arrays in use."""
        return {name: {key: vars(part)[key] for key in part.SUMS} for name, part in self._parts()} | {
            "held": self._held
        }

    def take(self, found: dict[str, Any]) -> None:
        """Takes over what `learned` of another budget returned."""
        self._held = found["held"]
        for name, part in self._parts():
            vars(part).update({key: found[name][key] for key in part.SUMS})

    def _parts(self) -> list[tuple[str, Answers | Regression]]:
        parts = {"others": self._others, "control": self._control, "model": self._model}
        return [(name, part) for name, part in parts.items() if part is not None]

    def standing(self, context: Array | None) -> Standing:
        """Returns the budget before a decision in a context."""
        key = None if context is None else context.tobytes()
        if self._known is None or self._known[0] != key:
            self._known = key, self._standing(context)
        return self._known[1]

    def _standing(self, context: Array | None) -> Standing:
        guard, others, control = self._guard, self._others.count, self._held
        worst, best = guard.ends
        length = abs(best - worst)
        earned = self._others.bound(guard.delta / 2.0)
        owed = self._owed(context, guard.sign * guard.by) - guard.by * worst / length * (others + control + 1)
        total = (others + 1) * worst
        bound, limit = total + guard.sign * length * earned, total + guard.sign * length * owed
        waiting = self._others.open + self._control.open
        said = guard.metric, guard.arm, guard.by, guard.delta, others, control
        return Standing(*said, bound, limit, guard.sign < 0.0, waiting)

    def _owed(self, context: Array | None, share: float) -> float:
        """Returns the upper bound of (1 - s alpha) sum_{N, next} m - s alpha sum_C m.

        Args:
            context: of the next decision, or None.
            share: s alpha.
        """
        delta, played, held = self._guard.delta / 2.0, self._others.count + 1, self._held
        weight, most = (1.0 - share) * played - share * held, (1.0 - share) * played + max(-share, 0.0) * held
        if self._model is not None and context is not None:
            z = (1.0 - share) * (self._model.others + self._model.features(context)) - share * self._model.control
            return min(0.5 * weight + self._model.bound(z, delta), most)
        if weight <= 0.0 or not self._control.count:
            return max(weight, 0.0)  # since 0 <= m <= 1
        return weight * self._control.bound(delta) / self._control.count
