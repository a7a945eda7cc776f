"""The rule to end a run as soon as further trials are not worth it.

| symbol | name | meaning | shape |
|---|---|---|---|
| eps | `least` | the gain that is not worth another trial, in units of the value | scalar |
| S | `spread` | best value less the median of the first ten, those that satisfied all constraints | scalar |
| G | `gain` | expected gain of the best next trial over the recommended one (`expected_gain`) | scalar |
| U, L, b | | certified bounds of f, and the recommended trial | |

Where bounds are certified, U - L(b) <= eps everywhere is a proof, with the confidence of the bounds (Makarova et al.
2022 stop by such bounds of a posterior). Elsewhere three things must agree, as each of them alone is often wrong:

- Ten trials as good as the best next one would gain at most eps.
- In the last third of the trials, ten at least, the best value rose by a tenth of eps at most. A model that took the
  shape of f for noise promises too little, and the record shows it.
- The noise that the model found is at most eps / 2, unless repeated answers showed noise. Else it may hide a shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, number, settle, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import numeral
from ..errors import InvalidInput
from ..policy.policy import Policy
from ..slots.costs import cost_of
from ..storage.record import Trial
from ..study.best import is_noisy
from ..study.direction import AnyPolicy, on_average, paid_by
from ..study.function import expected_gain, noise_of, shortfall
from ..study.study import Study

FIRST = 10  # The first values, whose median and the best one are the spread.
FEWEST = 20  # No run ends before so many answers, unless bounds are certified.
AHEAD = 10  # The trials whose gain must be small, in gains of the next one.
LAST, LEAST_LAST = 1 / 3, 10  # The last trials, a share of all and at least so many, in which the best value
STILL = 0.1  # rose by no more than this share of the gain that counts.
QUIET = 0.5  # The noise, as a share of that gain, up to which it hides nothing.
GROWN = ("widened", "added", "restored")  # The changes after which there are new points, and ten more trials at least.
FORMS = (
    "it must be the gain that is not worth another trial. A text such as '1%' is a share of the spread of the values, "
    "at most 100%. A number above 0 such as 0.01 is in units of the value. Python takes `nr.Enough(...)`, too."
)
PERCENT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*%\s*")


@final
@dataclass(frozen=True)
class Enough:
    """The rule to end a run once further trials are not worth it: `nr.minimize(..., stop=nr.Enough("1%"))`.

    It looks at the record and the posterior alone. So a run that is resumed ends at the same trial, and changes no
    decision. It ends no run before 20 answers, unless the bounds of the policy are certified. With several evaluations
    at once, no further trial begins, and those under way may change the answer.

    If you ask and tell by yourself: `enough = nr.Enough("1%")`, and after each answer `if enough(study): break`. It may
    also be one of `callbacks=`.

    Attributes:
        gain: the gain that is not worth another trial. A number is in units of the value. A text such as "1%" is a
            share of the spread, from the median of the first ten values to the best one so far.
        cost: value of one unit of cost, in units of the value, for policies that know what a trial costs
            (`cost="seconds"`). The run ends if no trial is worth its cost (Xie et al. 2025). With both it ends at
            whatever comes first.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(-5, 5))
    >>> result = nr.minimize(lambda x: (x - 2) ** 2, space, trials=200, stop=nr.Enough("1%"), progress=False)
    >>> len(result.trials) < 50, result.stopped.partition(":")[0]
    (True, 'enough')
    """

    gain: float | str | None = None
    cost: float | None = None

    def __post_init__(self) -> None:
        if self.gain is None and self.cost is None:
            raise InvalidInput("`Enough` needs a gain, such as 0.01 or '1%', or `cost`, what a unit of cost is worth.")
        if isinstance(self.gain, str):
            read = PERCENT.fullmatch(self.gain)
            if read is None or not 0.0 < float(read[1]) <= 100.0:
                raise InvalidInput(
                    f"`gain` is {shown(self.gain)}: a text is a share of the spread of the values, above 0% and at "
                    "most 100%, such as '1%'. A number without % is in units of the value, such as 0.01."
                )
        elif self.gain is not None:
            settle(self, gain=_above_0("gain", self.gain, "It is the gain that is not worth another trial."))
        if self.cost is not None:
            settle(self, cost=_above_0("cost", self.cost, "It is what one unit of cost is worth."))

    def __call__(self, study: Study, trial: Trial | None = None) -> bool:  # noqa: ARG002 - callbacks get a trial
        """Returns True if further trials are not worth it.

        Args:
            study: the study, after any answer.
            trial: the last trial, which callbacks are called with. It has no effect.

        Raises:
            InvalidInput: the rule says nothing of the study's policy (see `check`).
        """
        return self.reason(study) is not None

    def check(self, policy: AnyPolicy) -> None:
        """Raises `InvalidInput` if the rule says nothing of runs of a policy."""
        if not isinstance(policy, Policy):
            what = "has no posterior, so nothing is known of further gains"
        elif policy.context is not None:
            what = "decides under contexts, each of which has a best point of its own"
        elif policy.objective_count > 1:
            what = f"has {policy.objective_count} objectives, so that no single trial is the best"
        elif on_average(policy):
            what = "keeps constraints on average, so that no single trial is the best"
        elif self.cost is not None and paid_by(policy) is None:
            what = "does not know what trials cost: give `cost='seconds'`, or the name of another metric"
        else:
            return
        raise InvalidInput(f"`Enough` cannot say when to stop: {policy.algorithm} {what}.")

    def of(self, study: Study) -> Callable[[], str | None]:
        """Returns `reason` of a study, after a `check` of its policy."""
        self.check(study.policy)
        return partial(self.reason, study)

    def reason(self, study: Study) -> str | None:
        """Returns why further trials are not worth it, in words, or None if they are, or if nothing is known yet."""
        self.check(study.policy)
        restarts = [] if isinstance(study.policy, Policy) and study.policy.memory.keeps_all else study.restarts
        since = max(restarts, default=0)
        trials = [trial for trial in study.trials if trial.reward is not None and trial.number >= since]
        if not any(trial.feasible is not False for trial in trials) or study.enqueued:
            return None
        if (more := _grown(study)) is not None and sum(trial.asked_order > more for trial in trials) < LEAST_LAST:
            return None
        values = _rising(study, trials)
        return self._by_gain(study, trials, values) or self._by_cost(study, trials, values)

    def _by_gain(self, study: Study, trials: list[Trial], values: Array) -> str | None:
        least = self._least(values)
        if not least > 0.0:
            return None
        policy: Any = study.policy
        if policy.valid_for == study.valid_for == "f" and not policy.constraint_count:
            most = study.replica.query(partial(shortfall, best=study.best()))
            lost = f"enough: by certified bounds the best trial loses {numeral(most, 2)} at most"
            return lost if most <= least else None
        if len(trials) < FEWEST or _rise(values) > STILL * least:
            return None
        if study.replica.query(noise_of) > QUIET * least and not is_noisy(trials):
            return None
        gain = study.replica.query(partial(expected_gain, best=study.best()))
        if gain is None or AHEAD * gain > least:
            return None
        return f"enough: {AHEAD} more trials would gain about {numeral(AHEAD * gain, 2)}, less than {numeral(least, 2)}"

    def _least(self, values: Array) -> float:
        """Returns eps for the values so far, of which more is better, or 0 if it is not known yet."""
        if not isinstance(self.gain, str):
            return self.gain or 0.0
        known = values[np.isfinite(values)]
        if len(known) < FIRST:
            return 0.0
        return float(self.gain.strip(" %")) / 100.0 * float(known.max() - np.median(known[:FIRST]))

    def _by_cost(self, study: Study, trials: list[Trial], values: Array) -> str | None:
        if self.cost is None or len(trials) < FEWEST:
            return None
        name = str(paid_by(study.policy))
        spent = math.fsum(cost_of(trial, name) or 0.0 for trial in trials[-_last(len(trials)) :])
        if _rise(values) > self.cost * spent:
            return None
        gain = study.replica.query(partial(expected_gain, best=study.best(), per_cost=True))
        if gain is None or gain > self.cost:
            return None
        worth = numeral(self.cost, 2)
        return f"enough: no trial would gain more than {numeral(gain, 2)} for each unit of {name!r}, less than {worth}"


def stop_rule(stop: object) -> Enough | None:
    """Returns the rule to end a run: an `Enough`, or what makes one, a number or a text such as "1%"."""
    if stop is None or isinstance(stop, Enough):
        return stop
    if isinstance(stop, bool) or not isinstance(stop, float | int | str):
        raise InvalidInput(f"`stop` is {shown(stop)}: {FORMS}")
    try:
        return Enough(stop)
    except InvalidInput:
        raise InvalidInput(f"`stop` is {shown(stop)}: {FORMS}") from None


def _above_0(name: str, value: object, why: str) -> float:
    return number(name, value, low=0.0, open_low=True, high=LARGEST_REWARD, why=why)


def _rising(study: Study, trials: list[Trial]) -> Array:
    """Returns the values told, of which more is better, `(n,)`, and -inf where a constraint was violated."""
    sign = 1.0 if study.goals[0] == "maximize" else -1.0
    return np.array([-math.inf if trial.feasible is False else sign * (trial.reward or 0.0) for trial in trials])


def _grown(study: Study) -> int | None:
    """Returns the place in the order of events at which points were last added to the domain, or None."""
    return max((change.order for change in study.changes if change.kind in GROWN), default=None)


def _last(count: int) -> int:
    """Returns how many of the last trials must have won little."""
    return max(LEAST_LAST, math.ceil(LAST * count))


def _rise(values: Array) -> float:
    """Returns how much the best value rose in the last trials."""
    before = values[: len(values) - _last(len(values))]
    return math.inf if not len(before) or np.isneginf(before).all() else float(values.max() - before.max())
