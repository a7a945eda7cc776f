"""What a study says of what it knows, which changes nothing."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .._utils.checks import Array, IndexArray, integer
from ..policy.availability import Some, available
from ..policy.state import State
from ..slots.envelope import Envelope
from ..slots.lengthscales import Lengthscales
from ..slots.memory import Evidence, Restart
from ..storage.trial import Trial
from . import export
from .best import best_trial
from .direction import AnyPolicy, AnyState, Goal, has_channels, of_rewards
from .explain import DRAWS, MOST_DRAWS, explanation
from .explanation import Explanation
from .fitted import Fitted, fitted_of
from .inputs import Inputs
from .prices import multiplier_history
from .replica import Replica

if TYPE_CHECKING:
    import pandas as pd

    from ..storage import Storage


class Queries(ABC):
    """The part of a study that looks: after every answer, at what is known."""

    policy: AnyPolicy
    goal: Goal
    seed: int
    _given: Inputs
    _kept: Replica

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials by number, those of other processes included."""
        kept = self._kept
        with kept.lock:
            kept.sync()
            return kept.record

    @property
    def fits(self) -> list[Fitted]:
        """Hyperparameters that were fitted, in the order in which they came into force.

        Each is on record with the trial from which on it counts (see `nilregret.study.fitted.Fitted`).
        """
        trials = self.trials
        return fitted_of(trials[: len(trials)], self.goal)

    @property
    def storage(self) -> Storage | None:
        """Where the record is; None where it is in memory alone."""
        return None if self._kept.place is None else self._kept.place.storage

    def to_pandas(self) -> pd.DataFrame:
        """All trials as a table, a row each: columns "parameters.NAME" (or "point.0", ...), "reward", and so on."""
        return export.to_pandas(self.policy, self.trials)

    def export(self, path: str | Path) -> Path:
        """Write all trials to a file that ends in .csv, .jsonl (an object each), .parquet or .arrow; gives its path."""
        return export.write(self.policy, self.trials, path)

    def predict(
        self,
        points: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        context: npt.ArrayLike | None = None,
        channel: int = 0,
    ) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of the reward (noise not included) at `(n, d)` points, each `(n,)`.

        Where the goal is to minimise, of the loss. Under constraints, of what is learned: the reward less (the loss
        plus) what the multipliers in force charge for violations.
        A dict of parameters, a list of them or a table will do as well. Without points: at every arm.

        Where rewards are warped (`nr.auto`, `nr.slots.Refit`) the belief is a normal distribution of the warped reward,
        and both numbers are those of the reward behind it. It is skew, so the band to draw is `bounds`.

        Args:
            points: see above.
            context: under which they would be played, where the policy has contexts.
            channel: see `bounds`.
        """
        envelope = self._envelope(points, context, channel)
        return envelope.mean, envelope.std

    def bounds(
        self,
        points: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        context: npt.ArrayLike | None = None,
        channel: int = 0,
    ) -> tuple[Array, Array]:
        """The policy's lower and upper confidence bounds in the next round, each `(n,)`; see `predict`.

        Of warped rewards they are quantiles of the belief: those of the warped reward, mapped back.

        Args:
            points: see `predict`.
            context: see `predict`.
            channel: 0 for the reward; j for constraint j, from 1, in its own units, where the policy was made with
                `constraints=nr.EveryRound(...)` or one of its relatives.
        """
        envelope = self._envelope(points, context, channel)
        return envelope.lower, envelope.upper

    def feasible(
        self, points: npt.ArrayLike | Mapping[str, Any] | None = None, *, context: npt.ArrayLike | None = None
    ) -> Array:
        """What is known of points `(n, d)` satisfying all constraints, `(n,)`, as the policy's world says.

        With `nr.EveryRound` and `nr.OnAverage` the posterior probability that all g_j <= 0. With `nr.Safe` the
        certificate: 1.0 where it certifies and at the points of `start`, else 0.0; and 0.0 where the values told are
        above 0 on average.
        """
        seen = self._given.context(context)
        with self._kept.lock:
            return self._look().certain(points, seen)

    def infeasible(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None) -> float | None:
        """Whether no point can satisfy all constraints any more: None, or how sure that is.

        A number says that the lower bound of some constraint is above 0 at every arm (of a continuous domain, at every
        candidate of the search and every point tried), and how probable it is at least that all those bounds hold; 0
        where nothing is proved for them.
        """
        seen = self._given.context(context)
        with self._kept.lock:
            return self._look().infeasible(seen)

    def best(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None) -> Trial:
        """The answered trial of the highest posterior mean (the earliest, where several are at that point).

        Where the goal is to minimise, of the lowest, here and below. After a restart of the memory, of the trials
        since. With `context`, the trial whose point has the highest posterior mean under that context, whatever the
        context was in which it was tried. The mean is that of `predict`, also where rewards are warped.

        Under constraints, of those that satisfied them: at whose point the values told are at most 0 on average. What
        counts is then the reward, without the penalty that is learned with it. An error says so where there are none.
        With `context`, of those whose points satisfy them there in the posterior mean too; under multipliers, and where
        there are none, of the trials of that very context.
        """
        seen = None if context is None else self._given.context(context)
        with self._kept.lock:
            return best_trial(self.policy, self.goal, self._look(), self._kept.record, seen)

    @property
    def valid_for(self) -> str:
        """What the bounds of the next round are proved for, those of the reward and of every constraint together.

        "f", at all points and in all rounds; "played", at the points played; or "none" where nothing is proved of one
        of them.
        """
        with self._kept.lock:
            return self._look().proved

    @property
    def width(self) -> float:
        """What multiplies the standard deviation in the next round; NaN where the bounds are no such multiple.

        Such are those of warped rewards (`nr.auto`): quantiles of a belief that is not symmetric.
        """
        with self._kept.lock:
            return self._look().width(now=self._window_clock())

    @property
    def information_gain(self) -> float:
        """Realised information gain of the answered trials, 1/2 log det(I + K / lambda), nats."""
        with self._kept.lock:
            return self._look().information_gain

    @property
    def shortfall(self) -> float:
        """Rho of a `Sketch`: deviations are right to a factor of about 1 + rho / 2; 0 where the posterior is exact."""
        with self._kept.lock:
            state = of_rewards(self._look())
            return state.shortfall if isinstance(state, State) else 0.0

    @property
    def minimum(self) -> float | None:
        """What unanswered trials count as in the next round, reward units; None where they are not censored.

        Where the policy was made with `minimum=None` it is the smallest reward told so far, and moves with it. Where
        the goal is to minimise, both are the largest loss.
        """
        with self._kept.lock:
            return self._look().minimum

    @property
    def restarts(self) -> list[int]:
        """Rounds, counted from 0, from which on trials count: each is a cut of the memory (see `restart_reasons`)."""
        return [restart.round for restart in self._restarts()]

    @property
    def restart_reasons(self) -> list[str]:
        """Why the memory was cut, in words, one for each of `restarts`."""
        return [restart.reason for restart in self._restarts()]

    @property
    def evidence(self) -> Evidence | None:
        """How much spoke for a change of the world after each answer, natural logs, and from where on memory is cut.

        None of policies whose memory does not put it into a number (`memory="adaptive"` does). See `plots.evidence`.
        """
        with self._kept.lock:
            return self._look().evidence

    def _restarts(self) -> list[Restart]:
        with self._kept.lock:
            return self._look().restarts

    @property
    def multipliers(self) -> Array:
        """What violating each constraint costs in the next round, `(m,)`, reward units; empty without constraints."""
        with self._kept.lock:
            return self._look().multipliers.copy()

    @property
    def last_multipliers(self) -> Array:
        """The multipliers under which the last question was decided, `(m,)`; the first ones before any."""
        return self._kept.state.multipliers.copy()

    def multiplier_history(self) -> tuple[IndexArray, Array]:
        """The multipliers under which each trial was decided: numbers of the trials asked for `(n,)`, and `(n, m)`.

        m is 0 of policies that charge nothing for violations. Worked out from the record, which takes some microseconds
        a trial: where answers were corrected, as if they had been right in the first place (`explain` says of one trial
        what was charged then).
        """
        with self._kept.lock:
            state, trials = self._look(), self._kept.record[:]
        return multiplier_history(self.policy, state, trials)

    @property
    def remarks(self) -> Mapping[str, str]:
        """What the last decision had to go against, a sentence for each kind: under `nr.Safe` what was told says."""
        return self._kept.state.remarks

    @property
    def saturated(self) -> bool:
        """Whether a multiplier or a penalty has grown so large (1e6) that it was cut off, as of the last question."""
        return self._kept.state.saturated

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """Guesses of the norm bound, (rounds so far, guess), the first one and every doubling of it.

        Empty where the norm bound was given (see `igp_ucb(guess_norm=True)`).
        """
        with self._kept.lock:
            return self._look().norm_bounds

    @property
    def lengthscales(self) -> Lengthscales | None:
        """Candidates for the lengthscales and their weights, by what they have predicted; None where one kernel counts.

        Of policies made with `refit=nr.slots.LengthscaleBank(...)`, and of `nr.algorithms.lb_gp_ucb`.
        """
        with self._kept.lock:
            return self._look().lengthscales

    def explain(
        self, trial: Trial | int, *, among: Some | None = None, exclude: Some | None = None, draws: int = DRAWS
    ) -> Explanation:
        """Why a trial was chosen: score, bounds, runner-up, what was pending and forgotten, how probable it was.

        Recomputed from the record of what had happened before the trial was asked for, which costs a replay of it, and
        nothing is stored. It is exact on the machine and with the libraries that decided (see the page on studies).

        Args:
            trial: as `ask` returned it, or its number.
            among: what was passed to `ask` then; the record does not hold it.
            exclude: likewise.
            draws: from which the propensity is estimated where the policy draws (Thompson sampling): its random numbers
                are keyed by (seed, trial number). 0 for none.
        """
        offered = None if among is None and exclude is None else available(self.policy.domain, among, exclude)
        draws = integer("draws", draws, low=0, high=MOST_DRAWS)
        kept = self._kept
        with kept.lock:
            kept.sync()
            number, trials = kept.record.found(trial).number, kept.record[:]
        return explanation(self.policy, self.goal, trials, number, seed=self.seed, available=offered, draws=draws)

    # -- inside --------------------------------------------------------------------------------------------------

    def _look(self) -> AnyState:
        return self._kept.look()

    def _envelope(self, points: Any, context: Any, channel: int = 0) -> Envelope:
        most = self.policy.constraint_count if has_channels(self.policy) else 0
        if type(channel) is not int or (channel and most):  # of other policies it is said that they have none
            why = "It is 0 for the reward, or the number of a constraint, from 1."
            channel = integer("channel", channel, low=0, high=most or None, why=why)
        seen = self._given.context(context)
        with self._kept.lock:
            if channel:
                return self._look().limit(channel, points, seen)
            return self._look().envelope(points, seen, now=self._window_clock())

    def _window_clock(self) -> float:
        """The time where a width depends on it."""
        window = self.policy.window
        return self._kept.now() if window is not None and window.in_time else math.inf
